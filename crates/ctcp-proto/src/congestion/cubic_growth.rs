//! The growth of CUBIC's window after a reduction (RFC 9438 sections 4.2, 4.3 and 4.7).

use core::time::Duration;

use ctcp_base::Instant;

use super::WINDOW_MAX;

/// Section 5: aggressiveness, in packets per second cubed.
const C: f64 = 0.4;

/// Section 4.6: the multiplicative decrease factor.
pub(super) const BETA: f64 = 0.7;

/// The growth since the last reduction.
#[derive(Debug)]
pub(super) struct Growth {
    /// The window before the last reduction, in packets.
    pub(super) window_max: f64,
    /// Reno's increase in packets per round trip, for the last full reduction.
    alpha: f64,
    epoch: Option<Epoch>,
}

/// A part that differs by more than this changes the curve. Parts vary with every round trip.
const PART_CHANGED: f64 = 0.1;

/// State of congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// The part of a share for which the curve holds.
    part: f64,
    /// Seconds until the window is back at its old size.
    k: f64,
    /// The window at the plateau.
    origin: f64,
    /// The window that Reno would have.
    estimate: f64,
}

impl Default for Growth {
    fn default() -> Self {
        Self::from_plateau(0.0)
    }
}

impl Growth {
    /// The growth of a flow that has had `window` packets for a while.
    pub(super) fn from_plateau(window: f64) -> Self {
        Self { window_max: window, alpha: alpha_of_reno(BETA), epoch: None }
    }

    /// A window of `window` packets is multiplied by `beta`.
    pub(super) fn on_reduction(&mut self, window: f64, beta: f64) {
        // Section 4.7: a flow that did not regain its old window releases capacity to others.
        let has_lost_ground = window < self.window_max;
        self.window_max = if has_lost_ground { window * (1.0 + beta) / 2.0 } else { window };
        // A softer reduction keeps the increase of the last full one.
        if beta <= BETA {
            self.alpha = alpha_of_reno(beta);
        }
        self.epoch = None;
    }

    /// The window does not grow, because there is nothing to send (section 5.8) or the flow recovers.
    pub(super) fn pause(&mut self) {
        self.epoch = None;
    }

    /// The window after an acknowledgement: grows towards the value of the cubic function a round trip later. If the flow takes `part` of a
    /// share, its average window under the same loss is that part.
    pub(super) fn grow(&mut self, now: Instant, rtt: Duration, window: f64, part: f64) -> f64 {
        let window_max = self.window_max;
        // Reno's average window grows with the root of its increase, and CUBIC's with the fourth root of its aggressiveness.
        let reno = part * part;
        let c = C * reno * reno;
        debug_assert!(part > 0.0, "a flow has a part of its share");
        let estimate = self.epoch.map_or(window, |epoch| epoch.estimate);
        // The old curve belongs to another part: the new one begins here.
        let is_same = |epoch: &Epoch| (epoch.part - part).abs() <= PART_CHANGED * epoch.part;
        self.epoch = self.epoch.filter(is_same);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            part,
            k: cube_root((window_max - window).max(0.0) / c),
            origin: window.max(window_max),
            estimate,
        });
        let t = (now - epoch.start).as_secs_f64() + rtt.as_secs_f64() - epoch.k;
        let target = (epoch.origin + c * t * t * t).clamp(window, 1.5 * window);
        // Once the estimate of Reno's window exceeds the old maximum, it grows as fast as Reno.
        let alpha = if epoch.estimate < window_max { self.alpha } else { 1.0 };
        epoch.estimate += alpha * reno / window.max(1.0);
        (window + (target - window) / window.max(1.0)).max(epoch.estimate).min(WINDOW_MAX)
    }
}

/// Growth in packets per round trip that gives Reno's share with back-offs to `beta` (RFC 9438 section 4.3).
pub(super) fn alpha_of_reno(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
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

    /// The window after `seconds` from `window` packets on.
    fn run(growth: &mut Growth, mut window: f64, seconds: f64, rtt: Duration, part: f64) -> f64 {
        let mut now = Instant::ZERO;
        while now.saturating_since(Instant::ZERO) < Duration::from_secs_f64(seconds) {
            now += rtt;
            for _ in 0..window as u32 {
                window = growth.grow(now, rtt, window, part);
            }
        }
        window
    }

    #[test]
    fn cube_roots_are_exact_enough() {
        for (value, root) in [(0.0, 0.0), (1e-6, 0.01), (1.0, 1.0), (27.0, 3.0), (1e9, 1_000.0)] {
            assert!((cube_root(value) - root).abs() <= 1e-9 * root, "{value}: {}", cube_root(value));
        }
    }

    #[test]
    fn a_small_window_grows_like_reno_and_that_of_half_a_share_a_quarter_as_fast() {
        let grown = |part| {
            let mut growth = Growth::default();
            growth.on_reduction(20.0, 0.7);
            run(&mut growth, 14.0, 0.16, Duration::from_millis(20), part) - 14.0
        };
        let [whole, half] = [1.0, 0.5].map(grown);
        assert!((whole - 8.0 * alpha_of_reno(0.7)).abs() < 0.5, "{whole}");
        assert!((half - whole / 4.0).abs() < 0.1, "{whole} and {half}");
    }

    #[test]
    fn a_large_window_is_back_at_its_plateau_after_k_seconds_and_half_a_share_of_half_of_it_after_twice_that()
    {
        // K is the cube root of 0.3 * 4,000 / 0.4.
        let k = 14.4;
        let regained = |window: f64, part, seconds: f64| {
            let mut growth = Growth::default();
            growth.on_reduction(window, 0.7);
            run(&mut growth, 0.7 * window, seconds, Duration::from_millis(100), part) / window
        };
        assert!(regained(4_000.0, 1.0, k / 2.0) < 0.98);
        assert!((regained(4_000.0, 1.0, k) - 1.0).abs() < 0.01);
        assert!(regained(2_000.0, 0.5, k) < 0.98);
        assert!((regained(2_000.0, 0.5, 2.0 * k) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_smaller_part_does_not_move_the_window_at_once() {
        let mut growth = Growth::default();
        growth.on_reduction(4_000.0, 0.7);
        let rtt = Duration::from_millis(100);
        let before = run(&mut growth, 2_800.0, 1.0, rtt, 1.0);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let mut window = before;
        for _ in 0..3 {
            now += rtt;
            for _ in 0..before as u32 {
                window = growth.grow(now, rtt, window, 0.5);
            }
        }
        assert!(window - before < 100.0, "{before} to {window}");
    }

    #[test]
    fn a_plateau_is_left_slowly_at_first() {
        let grown = |seconds| {
            let mut growth = Growth::from_plateau(4_000.0);
            run(&mut growth, 4_000.0, seconds, Duration::from_millis(100), 1.0) - 4_000.0
        };
        let [early, late] = [grown(2.0), grown(8.0)];
        assert!((early - 20.0).abs() < 5.0 && (late - 210.0).abs() < 15.0, "{early} and {late}");
    }
}
