//! The bottleneck that the tests run flows over, and what they measure on it.

use core::time::Duration;

use ctcp_base::{Instant, Probability, Rate};
use ctcp_netem::{LinkConfig, LinkStats, LossModel, PathConfig, QueueLimit, Schedule};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;
use ctcp_sim::{Scrutiny, Simulation};

/// What the bottleneck is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) megabits: u64,
    pub(crate) rtt: Duration,
    /// The queue in bandwidth-delay products.
    pub(crate) queue: f64,
    /// The share of packets lost at random in each direction, before the queue.
    pub(crate) loss: f64,
    /// The sender's machine is busy: it reads ACKs late, by up to this.
    pub(crate) late_acks: Duration,
    /// And its packets reach the bottleneck late, by up to this.
    pub(crate) late_packets: Duration,
    /// For all that is random.
    pub(crate) seed: u64,
}

impl Conditions {
    pub(crate) fn new(megabits: u64, rtt_millis: u64, queue: f64, loss: f64) -> Self {
        let rtt = Duration::from_millis(rtt_millis);
        let (late_acks, late_packets) = (Duration::ZERO, Duration::ZERO);
        Self { megabits, rtt, queue, loss, late_acks, late_packets, seed: 1 }
    }

    /// The link of the CTCP paper's Fig. 3a: 25 Mbit/s, 20 ms, a queue of one bandwidth-delay product.
    pub(crate) fn papers(loss: f64) -> Self {
        Self::new(25, 20, 1.0, loss)
    }

    pub(crate) fn with_late_acks(self, millis: u64) -> Self {
        Self { late_acks: Duration::from_millis(millis), ..self }
    }

    pub(crate) fn with_late_acks_and_packets(self, millis: u64) -> Self {
        Self { late_packets: Duration::from_millis(millis), ..self.with_late_acks(millis) }
    }

    fn rate(&self) -> Rate {
        Rate::from_megabits_per_second(self.megabits)
    }

    /// What makes packets and ACKs late: a link between sender and bottleneck that has no limit and no delay but jitter.
    /// It keeps their order, so that they come in bursts, as when a timer fires late.
    fn access(&self) -> Option<PathConfig> {
        let late = |most| LinkConfig::default().with_jitter(most);
        let is_late = !(self.late_acks + self.late_packets).is_zero();
        is_late.then(|| PathConfig { forward: late(self.late_packets), backward: late(self.late_acks) })
    }

    pub(crate) fn path(&self) -> PathConfig {
        let loss = LossModel::Bernoulli(Probability::new(self.loss).expect("a share"));
        let path = PathConfig::new(self.rate(), self.rtt, loss);
        let queue = QueueLimit::bandwidth_delay_products(self.queue, self.rate(), self.rtt);
        PathConfig { forward: path.forward.with_queue(queue), ..path }
    }
}

/// A connection of this profile that the windows of flow control do not hold back.
pub(crate) fn transport(profile: Profile) -> TransportConfig {
    TransportConfig {
        profile,
        stream_credit: 64 << 20,
        stream_credit_max: 256 << 20,
        connection_credit: 256 << 20,
        connection_credit_max: 256 << 20,
        ..TransportConfig::default()
    }
}

/// A bottleneck with endless flows on it.
pub(crate) struct Bottleneck {
    conditions: Conditions,
    network: Network,
}

impl Bottleneck {
    /// Each flow begins after the time beside its configuration.
    pub(crate) fn new(conditions: Conditions, flows: &[(TransportConfig, Duration)]) -> Self {
        let mut chain = Chain::dumbbell(conditions.seed, &conditions.path());
        for (transport, start) in flows {
            let flow = FlowConfig::new(Script::endless(), transport).starting_after(*start);
            chain.flow(FlowConfig { access: conditions.access(), ..flow });
        }
        let mut network = chain.build();
        network.simulation.set_scrutiny(Scrutiny::LIGHT);
        Self { conditions, network }
    }

    /// One flow of this profile.
    pub(crate) fn with_flow(conditions: Conditions, profile: Profile) -> Self {
        Self::new(conditions, &[(transport(profile), Duration::ZERO)])
    }

    /// Runs for `time` and returns what happened in it.
    pub(crate) fn run(&mut self, time: Duration) -> Measured {
        let before = (self.stats(), self.arrived());
        self.network.run_for(time);
        let after = (self.stats(), self.arrived());
        let all = self.conditions.rate().bytes_in(time) as f64;
        let shares = before.1.iter().zip(&after.1).map(|(before, after)| (after - before) as f64 / all);
        Measured { before: before.0, after: after.0, shares: shares.collect() }
    }

    /// Rate, round trip and loss change. The queue holds as many packets as before.
    pub(crate) fn change(&mut self, conditions: Conditions) {
        let link = self.network.hops()[0];
        let simulation = &mut self.network.simulation;
        let queue = simulation.link(link).way(Direction::Forward).config().queue;
        let path = conditions.path();
        simulation.set_link(link, Direction::Forward, path.forward.with_queue(queue));
        simulation.set_link(link, Direction::Backward, path.backward);
        self.conditions = conditions;
    }

    pub(crate) fn set_schedule(&mut self, direction: Direction, schedule: Schedule) {
        self.network.simulation.set_schedule(self.network.hops()[0], direction, schedule);
    }

    /// The congestion window of the first flow.
    pub(crate) fn window(&self) -> f64 {
        self.network.sender_stats(0).window
    }

    /// The shortest round trip of the last seconds, as the first flow knows it.
    pub(crate) fn rtt_minimum(&self) -> Duration {
        self.network.sender_stats(0).rtt.minimum
    }

    fn stats(&self) -> LinkStats {
        self.network.simulation.link(self.network.hops()[0]).way(Direction::Forward).stats()
    }

    /// Bytes of each flow that have arrived so far, as the link counts them.
    fn arrived(&self) -> Vec<u64> {
        (0..self.network.flows().len()).map(|flow| self.network.bytes_arrived(flow)).collect()
    }
}

/// What happened in a part of a run.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    before: LinkStats,
    after: LinkStats,
    /// The share of the link's rate at which packets of each flow arrived.
    pub(crate) shares: Vec<f64>,
}

impl Measured {
    pub(crate) fn utilisation(&self) -> f64 {
        self.shares.iter().sum()
    }

    /// Packets sent, also those that were lost.
    pub(crate) fn sent(&self) -> u64 {
        self.after.offered - self.before.offered
    }

    /// How long a packet waited in the queue on average.
    pub(crate) fn queueing(&self) -> Duration {
        let transmitted = self.after.transmitted - self.before.transmitted;
        Duration::from_secs_f64(
            (self.after.waited - self.before.waited).as_secs_f64() / transmitted.max(1) as f64,
        )
    }

    /// Packets that reached the queue for each that arrived: 1 unless it overflows.
    pub(crate) fn cost(&self) -> f64 {
        let lost = self.after.lost - self.before.lost;
        (self.sent() - lost) as f64 / (self.after.delivered - self.before.delivered).max(1) as f64
    }
}

/// When a simulation is so old.
pub(crate) fn at(time: Duration) -> Instant {
    Simulation::START + time
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
