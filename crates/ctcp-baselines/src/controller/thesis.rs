//! The congestion control of the thesis (2012, section 3.4, Algorithm 2). It compares the round trip of each packet
//! with the smoothed round trip.
//!
//! ```text
//!   srtt = (1 - phi) srtt + phi rtt          with each acknowledgement, then
//!   v = 1 - srtt / rtt
//!
//!              0.05 = v_alpha     0.2 = v_beta
//!   -- window + 1/window --|-- stay --|-- window - 1/window -->
//! ```
//! Slow start is "TCP Reno's with no changes". It runs at the beginning and after every time-out and adds a packet per
//! acknowledgement. It ends with a loss, which halves the window, or at the threshold, which is half of the window at
//! the last time-out. Outside slow start a loss changes nothing: erasures "slide the window", they do not shrink it.
//!
//! Line 3 of Algorithm 2 prints `increment <- 1` before `increment <- -1`. This is a slip; the second assignment is
//! meant. The thesis does not state the initial window (here ten packets, as in our other controllers) or how packets
//! leave (here paced, as in our other controllers).
//!
//! Unlike Vegas, which compares with the smallest round trip, this controller compares with the mean of the last 25 or
//! so. A standing queue is part of that mean, so the controller detects only a queue that grows by a twentieth within
//! those packets. A window above two dozen packets that grows by one per round trip never causes that. Such a window
//! grows until something else stops it: the two blocks of the sparse code, the peer's window, or a time-out. The test
//! `the_thesis_does_not_see_a_standing_queue` demonstrates it.
//!
//! Requirement: U6

use core::time::Duration;

use ctcp_proto::congestion::{
    Acked, Algorithm, AlgorithmSpec, Controller, Lost, Phase, Round, RttView, Sent, TimedOut, WINDOW_MAX,
    WINDOW_MIN, WindowOf, pacing_rate,
};

pub(super) const PARTS: &[Algorithm] = &[THESIS];

/// The thesis's controller, which compares a round trip with the smoothed one and ignores loss.
pub const THESIS: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 3,
    name: "thesis",
    make: |datagram_size| Box::new(Thesis::new(datagram_size)),
    answers_to_marks: false,
    is_punctual: false,
    window: Some(WindowOf::Packets),
});

/// The window grows while v is below this.
const V_ALPHA: f64 = 0.05;
/// The window shrinks while v is above this.
const V_BETA: f64 = 0.2;
/// The weight of a sample in the smoothed round trip: 1 / (`BLOCK_SIZE` / 5), about 0.04.
const PHI: f64 = 5.0 / 128.0;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// RFC 5681 3.1: the loss window after a time-out.
const LOSS_WINDOW: f64 = 1.0;
/// RFC 5681 3.1: half.
const BACK_OFF: f64 = 0.5;

const PACING_GAIN: f64 = 1.2;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Algorithm 2 of the thesis.
#[derive(Debug)]
pub(super) struct Thesis {
    window: f64,
    is_slow_start: bool,
    /// The window at which slow start ends.
    threshold: f64,
    /// Smoothed round trip in seconds.
    smoothed: Option<f64>,
    /// When slow start began. Losses of packets sent earlier carry no new information.
    slow_start: Round,
    datagram: u64,
    rtt: Option<RttView>,
}

impl Thesis {
    /// Creates a controller in slow start.
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

    /// Updates the smoothed round trip with the sample, and returns v, the share of the sample that exceeds it.
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
        // Slow start does not resume if the window falls below the threshold: it runs only at the beginning and after
        // time-outs.
        self.is_slow_start &= self.window < self.threshold;
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.is_slow_start && self.slow_start.is_after(lost.number) {
            self.window = (self.window * BACK_OFF).max(WINDOW_MIN);
            self.is_slow_start = false;
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        // A second time-out in a row carries no new information about the path.
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
