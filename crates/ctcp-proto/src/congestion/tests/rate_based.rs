//! The design we did not take: the rate is the largest delivery rate measured, probed by a gain cycle, and loss is
//! compensated without asking whose it is (BBR's model, draft-ietf-ccwg-bbr, without its reaction to loss). It
//! fills every link too; what it does to its neighbours and to short queues decided against it.

use super::*;
use crate::congestion::round::{Plateau, Round};

/// Gains of the pacing rate: start-up, emptying the queue of start-up, and a cycle of round trips.
const GAIN_STARTUP: f64 = 2.77;
const GAIN_DRAIN: f64 = 0.5;
const GAIN_CYCLE: [f64; 8] = [1.25, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

#[derive(Debug)]
struct RateBased {
    round: Round,
    rounds: usize,
    plateau: Plateau,
    is_full: bool,
    is_drained: bool,
    startup_window: f64,
    rate: f64,
    loss: f64,
    rtt: Option<RttView>,
    probed_rtt_at: Instant,
    is_probing_rtt: bool,
}

impl RateBased {
    fn new() -> Self {
        Self {
            round: Round::default(),
            rounds: 0,
            plateau: Plateau::default(),
            is_full: false,
            is_drained: false,
            startup_window: 32.0,
            rate: 0.0,
            loss: 0.0,
            rtt: None,
            probed_rtt_at: Instant::ZERO,
            is_probing_rtt: false,
        }
    }

    fn product(&self) -> f64 {
        self.rtt.map_or(32.0, |rtt| self.rate * rtt.minimum.as_secs_f64() / DATAGRAM as f64)
    }
}

impl Controller for RateBased {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        self.loss = acked.loss_average.min(0.5);
        self.rate = acked.delivery_rate.unwrap_or(0.0);
        self.startup_window += 1.0;
        self.is_full |= self.plateau.on_ack(acked);
        self.is_drained |= self.is_full && (acked.in_flight as f64) < self.product();
        if self.round.is_behind(acked.number) {
            self.round.begin(acked.largest_sent);
            self.rounds += 1;
            self.is_probing_rtt = self.is_drained && acked.now - self.probed_rtt_at > Duration::from_secs(5);
            if self.is_probing_rtt {
                self.probed_rtt_at = acked.now;
            }
        }
    }

    fn on_loss(&mut self, _: &Lost) {}

    fn on_timeout(&mut self, _: &TimedOut) {
        *self = Self { rtt: self.rtt, ..Self::new() };
    }

    fn on_datagram_size(&mut self, _: u64) {}

    fn window(&self) -> f64 {
        let tokens = match (self.is_full, self.is_probing_rtt) {
            (false, _) => self.startup_window,
            (true, true) => 0.5 * self.product(),
            (true, false) => 2.0 * self.product() + 3.0,
        };
        (tokens / (1.0 - self.loss)).clamp(4.0, WINDOW_MAX)
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = match (self.is_full, self.is_drained) {
            (false, _) => GAIN_STARTUP,
            (true, false) => GAIN_DRAIN,
            (true, true) => GAIN_CYCLE[self.rounds % GAIN_CYCLE.len()],
        };
        let unmeasured = self.rtt.map(|rtt| pacing_rate(2.0, 32.0, DATAGRAM, rtt.smoothed));
        if self.rate > 0.0 { Some(gain * self.rate / (1.0 - self.loss)) } else { unmeasured }
    }

    fn phase(&self) -> Phase {
        if self.is_full { Phase::Avoidance } else { Phase::SlowStart }
    }

    fn name(&self) -> &'static str {
        "rate"
    }
}

#[test]
fn a_rate_based_controller_fills_the_papers_link_as_well() {
    for loss in [0.0, 0.05, 0.2] {
        let outcome = alone(Box::new(RateBased::new()), papers_link(loss), 5);
        assert!(outcome.utilisation > 0.97, "loss {loss}: {outcome:?}");
    }
}

#[test]
fn but_it_starves_reno_where_the_default_shares() {
    let beside_reno = |controller: Box<dyn Controller>| {
        let reno = Algorithm::RENO.controller(DATAGRAM);
        let mut model = Model::new(papers_link(0.0), 1).flow(controller, Instant::ZERO).flow(reno, secs(2));
        model.run(secs(10));
        model.run(secs(40))[1].arrived as f64 / papers_link(0.0).packets_in(Duration::from_secs(30))
    };
    let beside_rate = beside_reno(Box::new(RateBased::new()));
    let beside_default = beside_reno(Algorithm::DEFAULT.controller(DATAGRAM));
    assert!(beside_rate < 0.1, "{beside_rate}");
    assert!(beside_default > 0.38, "{beside_default}");
}

#[test]
fn and_two_of_it_flood_the_link_that_two_of_the_default_share() {
    let cost = |make: &dyn Fn() -> Box<dyn Controller>| {
        let mut model = Model::new(papers_link(0.0), 1).flow(make(), Instant::ZERO).flow(make(), secs(2));
        model.run(secs(5));
        let measured = model.run(secs(15));
        let (sent, arrived): (u64, u64) =
            measured.iter().fold((0, 0), |sum, flow| (sum.0 + flow.sent, sum.1 + flow.arrived));
        sent as f64 / arrived as f64
    };
    let (rate, default) =
        (cost(&|| Box::new(RateBased::new())), cost(&|| Algorithm::DEFAULT.controller(DATAGRAM)));
    assert!(rate > 1.5, "{rate}");
    assert!(default < 1.01, "{default}");
}
