//! CUBIC (RFC 9438), counted in packets: the default of most kernels, used as a baseline.
//!
//! ```text
//!   window
//!     W_max -------------------------.-------'
//!               .'                         plateau K seconds after the reduction
//!             .'   W(t) = C (t - K)^3 + W_max
//!     0.7 W_max
//! ```
//!
//! Where a Reno flow would be faster, it grows as fast as Reno (section 4.3). Slow start is that of RFC 5681, without HyStart++.

use super::cubic_growth::{BETA, Growth};
use super::round::Round;
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// RFC 5681 3.1.
const LOSS_WINDOW: f64 = 1.0;

const PACING_GAIN: f64 = 1.2;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// CUBIC.
#[derive(Debug)]
pub(super) struct Cubic {
    window: f64,
    threshold: f64,
    growth: Growth,
    backed_off: Round,
    is_recovering: bool,
    datagram: u64,
    rtt: Option<RttView>,
}

impl Cubic {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            growth: Growth::default(),
            backed_off: Round::default(),
            is_recovering: false,
            datagram,
            rtt: None,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn reduce(&mut self) {
        self.growth.on_reduction(self.window, BETA);
        self.threshold = (self.window * BETA).max(WINDOW_MIN);
    }

    fn back_off(&mut self, largest_sent: PacketNumber) {
        self.reduce();
        self.window = self.threshold;
        self.backed_off.begin(largest_sent);
        self.is_recovering = true;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        if !self.backed_off.is_after(acked.number) {
            return;
        }
        self.is_recovering = false;
        if acked.ecn_ce {
            self.back_off(acked.largest_sent);
        } else if acked.is_app_limited {
            // Section 5.8: the window does not grow while there is nothing to send.
            self.growth.pause();
        } else if self.is_slow_start() {
            self.window = (self.window + 1.0).min(WINDOW_MAX);
        } else {
            self.window = self.growth.grow(acked.now, acked.rtt.smoothed, self.window, 1.0);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.backed_off.is_after(lost.number) {
            self.back_off(lost.largest_sent);
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        // A second timeout in a row says nothing new about the path (RFC 5681 3.1).
        if self.window > LOSS_WINDOW {
            self.reduce();
        }
        self.window = LOSS_WINDOW;
        self.backed_off.begin(timed_out.largest_sent);
        self.is_recovering = false;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.is_slow_start() { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        self.rtt.map(|rtt| pacing_rate(gain, self.window, self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        match (self.is_recovering, self.is_slow_start()) {
            (true, _) => Phase::Recovery,
            (false, true) => Phase::SlowStart,
            (false, false) => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use ctcp_base::Instant;

    use super::super::cubic_growth::alpha_of_reno;
    use super::*;
    use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};

    /// Acknowledges `window` packets every 100 ms for this many seconds. Returns the window at the end.
    fn run(cubic: &mut Cubic, now: &mut Instant, seconds: u64) -> f64 {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        rtt.on_sample(*now, Duration::from_millis(100), Duration::ZERO);
        for _ in 0..seconds * 10 {
            *now += Duration::from_millis(100);
            for _ in 0..cubic.window() as u64 {
                cubic.on_ack(&Acked {
                    now: *now,
                    number: PacketNumber(1_000_000),
                    sent_time: *now,
                    sample: None,
                    size: 0,
                    in_flight: 0,
                    largest_sent: PacketNumber(1_000_000),
                    rtt: rtt.view(*now),
                    loss_average: 0.0,
                    is_app_limited: false,
                    delivery_rate: None,
                    ecn_ce: false,
                });
            }
        }
        cubic.window()
    }

    #[test]
    fn the_window_regains_its_size_k_seconds_after_a_reduction_and_then_grows_further() {
        let mut now = Instant::from_secs(10);
        let mut cubic = Cubic { window: 1_000.0, ..Cubic::new(1200) };
        cubic.back_off(PacketNumber(5));
        assert_eq!((cubic.window(), cubic.phase()), (700.0, Phase::Recovery));
        // K is the cube root of 300 / 0.4, 9.09 s.
        let [early, middle, plateau, late] = [2, 3, 4, 9].map(|seconds| run(&mut cubic, &mut now, seconds));
        assert!(early > 700.0 && middle > early && middle < 1_000.0, "{early} {middle}");
        assert!((plateau - 1_000.0).abs() < 15.0, "{plateau}");
        assert!(late > 1_150.0, "{late}");
    }

    #[test]
    fn a_small_window_grows_as_renos_does() {
        let mut now = Instant::from_secs(10);
        let mut cubic = Cubic { window: 20.0, ..Cubic::new(1200) };
        cubic.back_off(PacketNumber(5));
        let grown = run(&mut cubic, &mut now, 2) - 14.0;
        assert!(grown > 0.9 * 20.0 * alpha_of_reno(BETA), "{grown} in twenty round trips");
    }

    #[test]
    fn a_second_reduction_releases_capacity_and_consecutive_timeouts_count_once() {
        let mut cubic = Cubic { window: 100.0, ..Cubic::new(1200) };
        cubic.back_off(PacketNumber(5));
        cubic.back_off(PacketNumber(6));
        assert!((cubic.growth.window_max - 70.0 * 0.85).abs() < 1e-9 && (cubic.window() - 49.0).abs() < 1e-9);
        let rtt = RttEstimator::new(INITIAL_RTT).view(Instant::ZERO);
        let timed_out = TimedOut { now: Instant::ZERO, in_flight: 9, largest_sent: PacketNumber(9), rtt };
        for _ in 0..3 {
            cubic.on_timeout(&timed_out);
            assert!(cubic.window() == 1.0 && (cubic.threshold - 49.0 * 0.7).abs() < 1e-9);
        }
    }
}
