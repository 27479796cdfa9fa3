//! One direction of a path: the parts of the model combined.

use core::time::Duration;

use ctcp_base::{Instant, Prng, Probability, Rate};

use crate::delay::{DelayLine, Flying};
use crate::flow_queue::{self, FlowQueues};
use crate::loss::LossProcess;
use crate::policer::Policer;
use crate::queue::{DropTailQueue, Waiting};
use crate::rate::Transmitter;
use crate::{Change, Discipline, LinkConfig, LinkStats, LossModel, LossPlace, Packet};

/// A link that transports packets of type `P`.
///
/// Methods may be called in any order. Time never runs backwards: an instant before the latest one seen counts as the
/// latest one.
#[derive(Clone, Debug)]
pub struct Link<P> {
    config: LinkConfig,
    is_down: bool,
    loss: LossProcess,
    policer: Option<Policer>,
    /// The queued packets of [`Discipline::FlowQueueCodel`]. `queue` then holds only the packet being transmitted.
    flows: Option<Box<FlowQueues<P>>>,
    queue: DropTailQueue,
    transmitter: Transmitter,
    delay_line: DelayLine<P>,
    draws: Draws,
    stats: LinkStats,
    now: Instant,
}

/// One generator per kind of event, so that enabling jitter, for example, does not change the losses.
#[derive(Clone, Debug)]
struct Draws {
    loss: Prng,
    corruption: Prng,
    duplication: Prng,
    jitter: Prng,
    reordering: Prng,
}

impl<P: Packet> Link<P> {
    /// Creates an idle link. All randomness is derived from `prng`.
    #[must_use]
    pub fn new(config: LinkConfig, prng: Prng) -> Self {
        Self {
            is_down: false,
            loss: LossProcess::new(&config.loss),
            policer: config.policer.map(|policer| Policer::new(Instant::ZERO, policer)),
            flows: new_flows(config.discipline),
            queue: DropTailQueue::new(config.queue),
            transmitter: Transmitter::new(config.rate),
            delay_line: DelayLine::new(),
            draws: Draws {
                loss: prng.fork("loss"),
                corruption: prng.fork("corruption"),
                duplication: prng.fork("duplication"),
                jitter: prng.fork("jitter"),
                reordering: prng.fork("reordering"),
            },
            stats: LinkStats::default(),
            now: Instant::ZERO,
            config,
        }
    }

    /// Handles a packet that arrives at the link at `now`.
    pub fn handle_packet(&mut self, now: Instant, packet: P) {
        self.advance(now);
        self.stats.offered += 1;
        self.stats.bytes_offered += packet.as_ref().len() as u64;
        let lost = self.is_lost_at(LossPlace::BeforeQueue, self.now);
        if self.is_down || lost {
            self.stats.lost += 1;
            self.stats.lost_while_down += u64::from(self.is_down);
            return;
        }
        if strikes(self.config.duplicate, &mut self.draws.duplication) {
            self.stats.duplicated += 1;
            self.enqueue(packet.clone());
        }
        self.enqueue(packet);
    }

    /// Returns the next packet due at or before `now`, in the order of delivery, or of arrival for equal times. After a
    /// late call, repeated calls return all packets that have become due, one at a time.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<P> {
        self.advance(now);
        let delivery = self.delay_line.poll(self.now)?;
        self.stats.delivered += 1;
        self.stats.bytes_delivered += delivery.packet.as_ref().len() as u64;
        self.stats.reordered += u64::from(delivery.was_overtaken);
        Some(delivery.packet)
    }

    /// Returns the next instant at which something happens: a packet is due, or a flow queue starts to transmit its
    /// next packet. Returns `None` if nothing is queued or in transit.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.delay_line.next_delivery(), self.next_turn()) {
            (Some(delivery), Some(turn)) => Some(delivery.min(turn)),
            (one, other) => one.or(other),
        }
    }

    /// Changes the configuration from `now` on. Queued packets are transmitted at the new rate but keep the delay they
    /// got on arrival. A shorter delay does not let new packets overtake old ones.
    ///
    /// The loss process and the policer restart only if their configuration changes. If the discipline changes, packets
    /// in flow queues are transmitted first, without marks or drops.
    pub fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.set_rate(now, config.rate);
        if config.policer != self.config.policer {
            self.policer = config.policer.map(|policer| Policer::new(self.now, policer));
        }
        if config.discipline != self.config.discipline {
            self.leave_flows();
            self.flows = new_flows(config.discipline);
        }
        self.queue.set_limit(config.queue);
        if config.loss != self.config.loss {
            self.loss = LossProcess::new(&config.loss);
        }
        self.config = config;
    }

    /// Transmits at `rate` from `now` on, including the rest of the packet being transmitted.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.advance(now);
        let before = self.transmitter.rate();
        self.config.rate = rate;
        if rate == before {
            return;
        }
        let now = self.now;
        self.transmitter.restart(now, rate);
        for (index, waiting) in self.queue.iter_mut().enumerate() {
            waiting.departure = if index == 0 {
                self.transmitter.transmit_rest(now, waiting.departure - now, before)
            } else {
                self.transmitter.transmit(now, waiting.bytes)
            };
        }
        let still_there = self.queue.iter().filter(|waiting| !waiting.is_lost);
        self.delay_line.reschedule(now, still_there.map(|waiting| waiting.departure));
    }

    /// Changes the loss model from the next packet on. The loss process starts from its beginning.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.loss = LossProcess::new(&loss);
        self.config.loss = loss;
    }

    /// Starts or ends a blackout: every packet offered while the link is down is lost. Packets accepted earlier are
    /// still delivered.
    pub fn set_down(&mut self, is_down: bool) {
        self.is_down = is_down;
    }

    /// Applies a change of a [`Schedule`](crate::Schedule).
    pub fn apply(&mut self, now: Instant, change: Change) {
        match change {
            Change::Config(config) => self.set_config(now, config),
            Change::Rate(rate) => self.set_rate(now, rate),
            Change::Queue(limit) => {
                self.queue.set_limit(limit);
                self.config.queue = limit;
            }
            Change::Loss(loss) => self.set_loss(loss),
            Change::Delay(delay) => self.config.delay = delay,
            Change::Down(is_down) => self.set_down(is_down),
        }
    }

    /// Returns the present configuration.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Returns whether the link is down.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Returns the number of packets queued or being transmitted at `now`, which must not be before the latest call.
    #[must_use]
    pub fn queued_packets(&self, now: Instant) -> u64 {
        self.queue.packets_at(now) + self.packets_of_flows()
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        let (packets, bytes) = self.flows.as_ref().map_or((0, 0), |flows| flows.max());
        LinkStats {
            held: self.delay_line.len() as u64 + self.packets_of_flows(),
            queue_max_packets: self.queue.max_packets().max(packets as u64),
            queue_max_bytes: self.queue.max_bytes().max(bytes),
            ..self.stats
        }
    }

    /// Returns the number of packets in flow queues.
    fn packets_of_flows(&self) -> u64 {
        self.flows.as_ref().map_or(0, |flows| flows.held().0 as u64)
    }

    fn advance(&mut self, now: Instant) {
        while let Some(turn) = self.next_turn().filter(|turn| *turn <= now) {
            self.now = self.now.max(turn);
            self.queue.on_time(self.now);
            self.take_turn();
        }
        self.now = self.now.max(now);
        self.queue.on_time(self.now);
    }

    /// Returns when the next packet leaves the flow queues: as soon as the transmitter is free.
    fn next_turn(&self) -> Option<Instant> {
        let flows = self.flows.as_ref().filter(|flows| !flows.is_empty());
        flows.map(|_| self.transmitter.busy_until().max(self.now))
    }

    /// Transmits the next packet of the flow queues. The transmitter must be free.
    fn take_turn(&mut self) {
        let Some(flows) = &mut self.flows else { return };
        if let Some(flow_queue::Waiting { packet, bytes, arrival }) = flows.pop(self.now, &mut self.stats) {
            self.transmit(packet, bytes, arrival);
        }
    }

    /// Transmits all packets in flow queues.
    fn leave_flows(&mut self) {
        let Some(mut flows) = self.flows.take() else { return };
        while let Some(flow_queue::Waiting { packet, bytes, arrival }) = flows.pop_unmanaged() {
            self.transmit(packet, bytes, arrival);
        }
    }

    /// Passes one packet, original or copy, through corruption, policer, queue, transmitter and delay.
    fn enqueue(&mut self, mut packet: P) {
        self.corrupt(&mut packet);
        let payload = packet.as_ref().len();
        let bytes = self.config.charge.of(payload, self.config.overhead);
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(self.now, bytes)) {
            self.stats.policed += 1;
            self.stats.dropped += 1;
            return;
        }
        if self.flows.is_none() && !self.queue.has_room(bytes) {
            self.stats.dropped += 1;
            return;
        }
        let waiting = self.flows.as_ref().map_or((0, 0), |flows| flows.held());
        if !self.delay_line.has_room(payload, waiting) {
            self.stats.overflowed += 1;
            return;
        }
        if let Some(flows) = &mut self.flows {
            let waiting = flow_queue::Waiting { packet, bytes, arrival: self.now };
            flows.push(waiting, self.config.queue, &mut self.stats);
            if self.transmitter.busy_until() <= self.now {
                self.take_turn();
            }
            return;
        }
        if let Discipline::StepMarking { threshold } = self.config.discipline
            && self.transmitter.busy_until() > self.now + threshold
            && packet.is_ecn_capable()
        {
            packet.set_congestion_experienced();
            self.stats.marked += 1;
        }
        self.transmit(packet, bytes, self.now);
    }

    /// Transmits a packet after all earlier ones and puts it on the delay line.
    fn transmit(&mut self, packet: P, bytes: u64, arrival: Instant) {
        let begin = self.transmitter.busy_until().max(self.now);
        self.stats.waited += begin - arrival;
        self.stats.transmitted += 1;
        let departure = self.transmitter.transmit(self.now, bytes);
        let is_lost = self.is_lost_at(LossPlace::BehindQueue, departure);
        if departure > self.now {
            self.queue.push(Waiting { departure, bytes, is_lost });
        }
        if is_lost {
            self.stats.lost += 1;
            return;
        }
        let propagation = self.config.delay.saturating_add(self.draws.jitter_up_to(self.config.jitter));
        let is_held_back = strikes(self.config.reorder, &mut self.draws.reordering);
        let held_back = if is_held_back { self.config.reorder_extra } else { Duration::ZERO };
        self.delay_line.push(Flying { departure, propagation, held_back, packet });
    }

    /// Returns whether the packet is lost at `place`. Draws only if this is the configured place.
    fn is_lost_at(&mut self, place: LossPlace, now: Instant) -> bool {
        self.config.loss_place == place && self.loss.is_lost(now, &mut self.draws.loss)
    }

    /// Changes one byte with the configured probability of corruption. Empty packets are left unchanged.
    fn corrupt(&mut self, packet: &mut P) {
        if !strikes(self.config.corrupt, &mut self.draws.corruption) {
            return;
        }
        let bytes = packet.as_mut();
        let place = self.draws.corruption.below(bytes.len() as u64) as usize;
        if let Some(byte) = bytes.get_mut(place) {
            // Between 1 and 255, so that at least one bit flips.
            *byte ^= 1 + self.draws.corruption.below(255) as u8;
            self.stats.corrupted += 1;
        }
    }
}

fn new_flows<P: Packet>(discipline: Discipline) -> Option<Box<FlowQueues<P>>> {
    match discipline {
        Discipline::FlowQueueCodel(config) => Some(Box::new(FlowQueues::new(config))),
        Discipline::DropTail | Discipline::StepMarking { .. } => None,
    }
}

impl Draws {
    fn jitter_up_to(&mut self, limit: Duration) -> Duration {
        if limit.is_zero() {
            return Duration::ZERO;
        }
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.jitter.below(nanos.saturating_add(1)))
    }
}

/// Draws only if the probability is not zero, which on most links saves most draws.
fn strikes(probability: Probability, prng: &mut Prng) -> bool {
    probability > Probability::ZERO && prng.chance(probability)
}

#[cfg(test)]
mod tests;
