//! The design that profile `default` did not take: the rate is the largest delivery rate measured, probed by a gain cycle,
//! and loss is compensated without asking whose it is (BBR's model, draft-ietf-ccwg-bbr, without its reaction to
//! loss). It fills every link too. What it does to its neighbours and to short queues decided against it.
//!
//! It is plugged in from outside, as a laboratory's controller is.

use core::time::Duration;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::congestion::{
    Acked, Algorithm, AlgorithmSpec, Controller, Lost, Phase, Round, RttView, Sent, TimedOut, WINDOW_MAX,
    pacing_rate,
};
use ctcp_proto::{Catalogue, Profile, TransportConfig};

use crate::bottleneck::{Bottleneck, Conditions, secs, transport};

const RATE_BASED: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 77,
    name: "rate-based",
    make: |datagram| Box::new(RateBased::new(datagram)),
    answers_to_marks: false,
    is_punctual: false,
    window: None,
});

/// Gains of the pacing rate: start-up, emptying the queue of start-up, and a cycle of round trips.
const GAIN_STARTUP: f64 = 2.77;
const GAIN_DRAIN: f64 = 0.5;
const GAIN_CYCLE: [f64; 8] = [1.25, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

const INITIAL_WINDOW: f64 = 32.0;

/// Start-up is over after so many round trips in which the delivery rate grew by less than a quarter.
const FLAT_ROUNDS: u32 = 3;
const GROWTH: f64 = 1.25;

#[derive(Debug)]
struct RateBased {
    datagram: u64,
    round: Round,
    rounds: usize,
    best_rate: f64,
    flat_rounds: u32,
    is_drained: bool,
    startup_window: f64,
    rate: f64,
    loss: f64,
    rtt: Option<RttView>,
    probed_rtt_at: Instant,
    is_probing_rtt: bool,
}

impl RateBased {
    fn new(datagram: u64) -> Self {
        Self {
            datagram,
            round: Round::default(),
            rounds: 0,
            best_rate: 0.0,
            flat_rounds: 0,
            is_drained: false,
            startup_window: INITIAL_WINDOW,
            rate: 0.0,
            loss: 0.0,
            rtt: None,
            probed_rtt_at: Instant::ZERO,
            is_probing_rtt: false,
        }
    }

    /// Start-up has found the rate of the link.
    fn is_full(&self) -> bool {
        self.flat_rounds >= FLAT_ROUNDS
    }

    /// The bandwidth-delay product in packets.
    fn product(&self) -> f64 {
        self.rtt.map_or(INITIAL_WINDOW, |rtt| self.rate * rtt.minimum.as_secs_f64() / self.datagram as f64)
    }

    fn on_round(&mut self, acked: &Acked) {
        self.round.begin(acked.largest_sent);
        self.rounds += 1;
        if acked.delivery_rate.is_some() && !self.is_full() {
            if self.rate > self.best_rate * GROWTH {
                (self.best_rate, self.flat_rounds) = (self.rate, 0);
            } else if !acked.is_app_limited {
                self.flat_rounds += 1;
            }
        }
        self.is_probing_rtt = self.is_drained && acked.now - self.probed_rtt_at > Duration::from_secs(5);
        if self.is_probing_rtt {
            self.probed_rtt_at = acked.now;
        }
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
        self.is_drained |= self.is_full() && (acked.in_flight as f64) < self.product();
        if self.round.is_after(acked.number) {
            self.on_round(acked);
        }
    }

    fn on_loss(&mut self, _: &Lost) {}

    fn on_timeout(&mut self, _: &TimedOut) {
        *self = Self { rtt: self.rtt, ..Self::new(self.datagram) };
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        let tokens = match (self.is_full(), self.is_probing_rtt) {
            (false, _) => self.startup_window,
            (true, true) => 0.5 * self.product(),
            (true, false) => 2.0 * self.product() + 3.0,
        };
        (tokens / (1.0 - self.loss)).clamp(4.0, WINDOW_MAX)
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = match (self.is_full(), self.is_drained) {
            (false, _) => GAIN_STARTUP,
            (true, false) => GAIN_DRAIN,
            (true, true) => GAIN_CYCLE[self.rounds % GAIN_CYCLE.len()],
        };
        let unmeasured = self.rtt.map(|rtt| pacing_rate(2.0, INITIAL_WINDOW, self.datagram, rtt.smoothed));
        if self.rate > 0.0 { Some(gain * self.rate / (1.0 - self.loss)) } else { unmeasured }
    }

    fn phase(&self) -> Phase {
        if self.is_full() { Phase::Avoidance } else { Phase::SlowStart }
    }

    fn name(&self) -> &'static str {
        "rate-based"
    }
}

/// Profile `default` with the other controller.
fn rate_based() -> TransportConfig {
    let catalogue = Arc::new(Catalogue::default().with_control(RATE_BASED));
    let profile = Profile { congestion: RATE_BASED, ..Profile::DEFAULT };
    TransportConfig { catalogue, ..transport(profile) }
}

#[test]
fn a_rate_based_controller_fills_the_papers_link_as_well() {
    for loss in [0.0, 0.05, 0.2] {
        let mut bottleneck = Bottleneck::new(Conditions::papers(loss), &[(rate_based(), secs(0))]);
        bottleneck.run(secs(2));
        let utilisation = bottleneck.run(secs(5)).utilisation();
        assert!(utilisation > 0.98, "loss {loss}: {utilisation:.3}");
    }
}

#[test]
fn it_starves_reno_where_the_default_shares() {
    let beside_reno = |ours: TransportConfig| {
        let flows = [(ours, secs(0)), (transport(Profile::TCP), secs(2))];
        let mut bottleneck = Bottleneck::new(Conditions::papers(0.0), &flows);
        bottleneck.run(secs(10));
        bottleneck.run(secs(20)).shares[1]
    };
    let (beside_rate_based, beside_default) =
        (beside_reno(rate_based()), beside_reno(transport(Profile::DEFAULT)));
    assert!(beside_rate_based < 0.05, "{beside_rate_based:.3}");
    assert!(beside_default > 0.42, "{beside_default:.3}");
}

#[test]
fn two_of_it_flood_the_link_that_two_of_the_default_share() {
    let cost = |ours: TransportConfig| {
        let mut bottleneck =
            Bottleneck::new(Conditions::papers(0.0), &[(ours.clone(), secs(0)), (ours, secs(2))]);
        bottleneck.run(secs(5));
        bottleneck.run(secs(5)).cost()
    };
    let (rate_based, default) = (cost(rate_based()), cost(transport(Profile::DEFAULT)));
    assert!(rate_based > 1.5, "{rate_based:.3}");
    assert!(default < 1.01, "{default:.3}");
}
