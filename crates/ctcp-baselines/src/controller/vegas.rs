//! TCP Vegas (Brakmo and Peterson 1995), with the parameters that TCP/NC and its successors simulate.
//!
//! Once per round trip it compares the rate that an empty path would give with the actual rate. The difference times
//! the smallest round-trip time is the number of its own packets in queues:
//!
//! ```text
//!   queued = flight (1 - BaseRTT / RTT)          flight: packets in flight, at most the window
//!
//!        0          alpha       beta
//!        |-- window+1 --|-- stay --|-- window-1 -->
//! ```
//!
//! In slow start the window doubles every other round trip, until more than gamma packets are queued.
//!
//! The paper does not state which RTT of a round counts; here it is the mean of the samples. A packet that was sent
//! more than once gives no sample. An unused window does not grow (RFC 7661). The receiver's window may be the limit,
//! and a congestion window that had grown beyond it would shrink for as long before it gave way to another flow.
//!
//! Under TCP/NC the packets are symbols. A round trip ends when a symbol is acknowledged as seen: the effective RTT.
//!
//! Requirement: N3

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_proto::congestion::{
    Acked, Algorithm, AlgorithmSpec, Controller, Lost, Phase, Round, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN,
    WindowOf,
};

pub(super) const PARTS: &[Algorithm] = &[VEGAS];

/// TCP Vegas, for classical TCP and TCP/NC.
pub const VEGAS: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 2,
    name: "vegas",
    make: |_| Box::new(Vegas::new()),
    answers_to_marks: false,
    is_punctual: false,
    window: Some(WindowOf::Symbols),
});

/// The window grows while fewer packets than this are queued (TCP/NC section V-A, EOT/PB section II).
const ALPHA: f64 = 28.0;
/// The window shrinks while more packets than this are queued.
const BETA: f64 = 30.0;
/// Slow start ends when more packets than this are queued.
const GAMMA: f64 = 2.0;

/// The initial window of TCP in 1995 (RFC 2001).
const INITIAL_WINDOW: f64 = 2.0;
/// The factor applied to the window when slow start ends.
const SLOW_START_EXIT: f64 = 7.0 / 8.0;
const BACK_OFF: f64 = 3.0 / 4.0;

/// The Vegas controller.
#[derive(Debug)]
pub(super) struct Vegas {
    window: f64,
    is_slow_start: bool,
    /// The window at which slow start ends at the latest.
    threshold: f64,
    /// In slow start: whether the window grows during this round trip.
    is_growing: bool,
    /// The smallest round-trip time, assumed to be that of the empty path.
    base: Option<Duration>,
    round: Round,
    samples: Samples,
    /// Packets in flight when the last one was sent.
    flight: u64,
    backed_off: Option<Instant>,
}

/// Measurements of one round trip.
#[derive(Debug, Default)]
struct Samples {
    sum: Duration,
    count: u32,
    /// The maximum number of packets in flight.
    flight: u64,
    is_app_limited: bool,
}

impl Vegas {
    /// Creates a controller in slow start.
    pub(super) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            is_slow_start: true,
            threshold: f64::INFINITY,
            is_growing: true,
            base: None,
            round: Round::default(),
            samples: Samples::default(),
            flight: 0,
            backed_off: None,
        }
    }

    /// Returns the number of own packets in queues during the round trip.
    fn queued(&self) -> Option<f64> {
        let base = self.base?.as_secs_f64();
        let mean = self.samples.sum.checked_div(self.samples.count)?.as_secs_f64();
        let flight = (self.samples.flight as f64).min(self.window);
        Some(flight * (1.0 - base / mean.max(base)))
    }

    /// Returns whether the window limits the flow. In slow start it may be up to twice as large as the packets in
    /// flight.
    fn is_used(&self) -> bool {
        let flight = self.flight as f64;
        if self.is_slow_start { self.window < 2.0 * flight } else { self.window < flight + 1.0 }
    }

    fn finish_round(&mut self) {
        let queued = self.queued();
        let is_app_limited = self.samples.is_app_limited;
        self.samples = Samples::default();
        let Some(queued) = queued else { return };
        if self.is_slow_start {
            self.is_growing = !self.is_growing;
            if queued > GAMMA || self.window >= self.threshold {
                self.is_slow_start = false;
                self.window *= SLOW_START_EXIT;
            }
        } else if queued > BETA {
            self.window -= 1.0;
        } else if queued < ALPHA && !is_app_limited && self.is_used() {
            self.window += 1.0;
        }
        self.window = self.window.clamp(WINDOW_MIN, WINDOW_MAX);
    }
}

impl Controller for Vegas {
    fn on_sent(&mut self, sent: &Sent) {
        self.flight = sent.in_flight;
        self.samples.flight = self.samples.flight.max(sent.in_flight);
    }

    fn on_ack(&mut self, acked: &Acked) {
        if self.round.is_after(acked.number) {
            self.finish_round();
            self.round.begin(acked.largest_sent);
        }
        if let Some(sample) = acked.sample {
            self.base = Some(self.base.map_or(sample, |base| base.min(sample)));
            self.samples.sum += sample;
            self.samples.count += 1;
        }
        self.samples.is_app_limited |= acked.is_app_limited;
        if self.is_slow_start && self.is_growing && !acked.is_app_limited && self.is_used() {
            self.window = (self.window + 1.0).min(self.threshold).min(WINDOW_MAX);
        }
    }

    /// Losses of packets sent before the last reduction are ignored.
    fn on_loss(&mut self, lost: &Lost) {
        if self.backed_off.is_some_and(|time| lost.sent_time <= time) {
            return;
        }
        self.window = (self.window * BACK_OFF).max(WINDOW_MIN);
        self.threshold = self.window;
        self.is_slow_start = false;
        self.backed_off = Some(lost.now);
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        self.threshold = (self.window / 2.0).max(WINDOW_MIN);
        self.window = WINDOW_MIN;
        self.is_slow_start = true;
        self.is_growing = true;
        self.samples = Samples::default();
        self.round.begin(timed_out.largest_sent);
        self.backed_off = Some(timed_out.now);
    }

    fn on_datagram_size(&mut self, _: u64) {}

    fn window(&self) -> f64 {
        self.window
    }

    /// Packets leave with the acknowledgements, as in the paper.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    fn phase(&self) -> Phase {
        if self.is_slow_start { Phase::SlowStart } else { Phase::Avoidance }
    }

    fn name(&self) -> &'static str {
        "vegas"
    }
}

#[cfg(test)]
mod tests;
