//! The thesis's congestion control (2012, section 3.4, Algorithm 2): it looks at how far the round trip of a packet is above the
//! smoothed one.
//!
//! ```text
//!   srtt = (1 - phi) srtt + phi rtt          with each acknowledgement, then
//!   v = 1 - srtt / rtt
//!
//!              0.05 = v_alpha     0.2 = v_beta
//!   -- window + 1/window --|-- stay --|-- window - 1/window -->
//! ```
//!
//! Slow start is "TCP Reno's with no changes", at the beginning and behind every time-out: a packet more for each acknowledgement, until a
//! loss, which halves the window, or the threshold, half of the window at the last time-out. Outside slow start a loss changes nothing:
//! erasures "slide the window", they do not shrink it.
//!
//! Printed in line 3 of Algorithm 2 is `increment <- 1` before `increment <- -1`: a slip, the second counts. Silent are the initial
//! window (ten packets, as our others) and how packets leave (paced, as our others do).
//!
//! What it does not have: Vegas compares with the smallest round trip, this one with the mean of the last 25 or so. A queue that stands is
//! in that mean already, so only one that grows by a twentieth within those packets is seen, which a window above two dozen
//! packets, growing by one a round trip, never makes. Then it grows until something else stops it: the two blocks of the
//! sparse code, the peer's window, a time-out. The test `a_standing_queue_is_not_seen` shows it.
//!
//! Requirement: U6

use core::time::Duration;

use ctcp_proto::congestion::{
    Acked, Algorithm, AlgorithmSpec, Controller, Lost, Phase, Round, RttView, Sent, TimedOut, WINDOW_MAX,
    WINDOW_MIN, pacing_rate,
};

pub(super) const PARTS: &[Algorithm] = &[THESIS];

/// The thesis's, which compares a round trip with the smoothed one and ignores loss.
pub const THESIS: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 3,
    name: "thesis",
    make: |datagram_size| Box::new(Thesis::new(datagram_size)),
    answers_to_marks: false,
    is_punctual: false,
    needs_symbols: false,
});

/// v below it: the window grows.
const V_ALPHA: f64 = 0.05;
/// v above it: it shrinks.
const V_BETA: f64 = 0.2;
/// The weight of a round trip in the smoothed one: 1 / (`BLOCK_SIZE` / 5), about 0.04.
const PHI: f64 = 5.0 / 128.0;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// RFC 5681 3.1: the loss window behind a time-out.
const LOSS_WINDOW: f64 = 1.0;
/// RFC 5681 3.1: half.
const BACK_OFF: f64 = 0.5;

const PACING_GAIN: f64 = 1.2;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The thesis's Algorithm 2.
#[derive(Debug)]
pub(super) struct Thesis {
    window: f64,
    is_slow_start: bool,
    /// Slow start ends here.
    threshold: f64,
    /// In seconds.
    smoothed: Option<f64>,
    /// Since slow start began: losses of packets sent before say nothing new.
    slow_start: Round,
    datagram: u64,
    rtt: Option<RttView>,
}

impl Thesis {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            window: INITIAL_WINDOW,
            is_slow_start: true,
            threshold: f64::INFINITY,
            smoothed: None,
            slow_start: Round::default(),
            datagram,
            rtt: None,
        }
    }

    /// v: the share of a round trip that is above the smoothed one, which it goes into first.
    fn excess(&mut self, sample: Duration) -> f64 {
        let rtt = sample.as_secs_f64();
        let before = self.smoothed.unwrap_or(rtt);
        let smoothed = (1.0 - PHI) * before + PHI * rtt;
        self.smoothed = Some(smoothed);
        if rtt > 0.0 { 1.0 - smoothed / rtt } else { 0.0 }
    }
}

impl Controller for Thesis {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        let excess = acked.sample.map_or(0.0, |sample| self.excess(sample));
        let change = if self.is_slow_start {
            1.0
        } else if excess > V_BETA {
            -1.0 / self.window
        } else if excess > V_ALPHA {
            0.0
        } else {
            1.0 / self.window
        };
        if change < 0.0 || !acked.is_app_limited {
            self.window = (self.window + change).clamp(WINDOW_MIN, WINDOW_MAX);
        }
        // Not again where the window falls below it: the thesis starts slowly only at the beginning and behind time-outs.
        self.is_slow_start &= self.window < self.threshold;
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.is_slow_start && self.slow_start.is_behind(lost.number) {
            self.window = (self.window * BACK_OFF).max(WINDOW_MIN);
            self.is_slow_start = false;
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        // A second time-out in a row says nothing new of the path.
        if self.window > LOSS_WINDOW {
            self.threshold = (self.window * BACK_OFF).max(WINDOW_MIN);
        }
        self.window = LOSS_WINDOW;
        self.is_slow_start = true;
        self.slow_start.begin(timed_out.largest_sent);
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.is_slow_start { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        self.rtt.map(|rtt| pacing_rate(gain, self.window, self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        if self.is_slow_start { Phase::SlowStart } else { Phase::Avoidance }
    }

    fn name(&self) -> &'static str {
        "thesis"
    }
}

#[cfg(test)]
mod tests;
