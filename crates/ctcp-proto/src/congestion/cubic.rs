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

use core::time::Duration;

use ctcp_base::Instant;

use super::round::Round;
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;
/// Section 5: aggressiveness, in packets per second cubed.
const C: f64 = 0.4;
/// Section 4.6: the multiplicative decrease factor.
const BETA: f64 = 0.7;
/// Section 4.3: Reno's additive increase for this decrease factor at the same average rate.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 5681 3.1.
const LOSS_WINDOW: f64 = 1.0;

const PACING_GAIN: f64 = 1.2;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// CUBIC.
#[derive(Debug)]
pub(super) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before the last reduction.
    window_max: f64,
    epoch: Option<Epoch>,
    backed_off: Round,
    is_recovering: bool,
    datagram: u64,
    rtt: Option<RttView>,
}

/// State of congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds until the window is back at its old size.
    k: f64,
    /// The window that Reno would have.
    estimate: f64,
}

impl Cubic {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            window_max: 0.0,
            epoch: None,
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
        // Section 4.7: a flow that did not regain its old window releases capacity to others.
        let has_lost_ground = self.window < self.window_max;
        self.window_max = if has_lost_ground { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.threshold = (self.window * BETA).max(WINDOW_MIN);
        self.epoch = None;
    }

    fn back_off(&mut self, largest_sent: PacketNumber) {
        self.reduce();
        self.window = self.threshold;
        self.backed_off.begin(largest_sent);
        self.is_recovering = true;
    }

    /// Section 4.2: grows towards the value of the cubic function a round trip later.
    fn grow(&mut self, now: Instant, rtt: Duration) {
        let window = self.window;
        let window_max = self.window_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            k: cube_root((window_max - window).max(0.0) / C),
            estimate: window,
        });
        let origin = if epoch.k > 0.0 { window_max } else { window.max(window_max) };
        let t = (now - epoch.start).as_secs_f64() + rtt.as_secs_f64() - epoch.k;
        let target = (origin + C * t * t * t).clamp(window, 1.5 * window);
        // Once the estimate of Reno's window exceeds the old maximum, it grows as fast as Reno.
        epoch.estimate += if epoch.estimate < window_max { ALPHA } else { 1.0 } / window;
        self.window = (window + (target - window) / window).max(epoch.estimate).min(WINDOW_MAX);
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        if !self.backed_off.is_behind(acked.number) {
            return;
        }
        self.is_recovering = false;
        if acked.ecn_ce {
            self.back_off(acked.largest_sent);
        } else if acked.is_app_limited {
            // Section 5.8: the window does not grow while there is nothing to send.
            self.epoch = None;
        } else if self.is_slow_start() {
            self.window = (self.window + 1.0).min(WINDOW_MAX);
        } else {
            self.grow(acked.now, acked.rtt.smoothed);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.backed_off.is_behind(lost.number) {
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

/// Newton's method from above with basic operations only, so that the result has the same bits on every machine.
fn cube_root(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 0.0;
    }
    let mut root = value.max(1.0);
    loop {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
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
    fn cube_roots_are_exact_enough() {
        for (value, root) in [(0.0, 0.0), (1e-6, 0.01), (1.0, 1.0), (27.0, 3.0), (1e9, 1_000.0)] {
            assert!((cube_root(value) - root).abs() <= 1e-9 * root, "{value}: {}", cube_root(value));
        }
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
        assert!(grown > 0.9 * 20.0 * ALPHA, "{grown} in twenty round trips");
    }

    #[test]
    fn a_second_reduction_releases_capacity_and_consecutive_timeouts_count_once() {
        let mut cubic = Cubic { window: 100.0, ..Cubic::new(1200) };
        cubic.back_off(PacketNumber(5));
        cubic.back_off(PacketNumber(6));
        assert!((cubic.window_max - 70.0 * 0.85).abs() < 1e-9 && (cubic.window() - 49.0).abs() < 1e-9);
        let rtt = RttEstimator::new(INITIAL_RTT).view(Instant::ZERO);
        let timed_out = TimedOut { now: Instant::ZERO, in_flight: 9, largest_sent: PacketNumber(9), rtt };
        for _ in 0..3 {
            cubic.on_timeout(&timed_out);
            assert!(cubic.window() == 1.0 && (cubic.threshold - 49.0 * 0.7).abs() < 1e-9);
        }
    }
}
