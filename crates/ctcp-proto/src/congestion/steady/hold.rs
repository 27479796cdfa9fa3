//! Keeps the queue at its target: grows below it, backs off above it, and detects that backing off has no effect.

use core::time::Duration;

use super::seconds_ratio;

/// Number of consecutive back-offs after which another flow must be causing the queue.
const BACK_OFFS_MAX: u32 = 4;

/// Range of the queue, relative to that before the back-off, that counts as no reaction.
const UNMOVED: core::ops::Range<f64> = 0.9..1.1;

/// Number of missing reactions in a row that are not chance.
const UNMOVED_MAX: u32 = 2;

/// Maximum growth per round trip as a fraction of the window.
const GROWTH_MAX: f64 = 1.0 / 8.0;

/// Near the target the growth is one packet, or this times the root of a small window. So many small flows grow slowly, and the smallest
/// catch up.
const GROWTH_LEAST: f64 = 0.25;

/// Measurements of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The empty path, the queue beyond it, and the target queue.
    pub(super) base: Duration,
    pub(super) queue: Duration,
    pub(super) target: Duration,
    /// More is lost than the path loses by itself, which a longer path does not explain.
    pub(super) is_lossy: bool,
}

/// The action after a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// No change.
    Stay,
    /// Multiply the window by this factor.
    BackOff(f64),
    /// The queue did not react at all, so the path is longer by it. Restores the window from before the back-offs.
    PathIsLonger(f64),
    /// The queue persists despite all back-offs, so another flow causes it. Restores the window from before the back-offs.
    QueueIsNotOurs(f64),
}

/// The state of holding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    growth: f64,
    /// The last change is not visible yet: it takes a round trip to act and one to be measured.
    is_settling: bool,
    is_learning: bool,
    back_offs: u32,
    /// The window before the first back-off.
    tokens_before: f64,
    queue_before: Duration,
    unmoved: u32,
}

impl Hold {
    /// Starts with a queue that has been measured.
    pub(super) fn new() -> Self {
        Self {
            growth: 1.0,
            is_settling: false,
            is_learning: false,
            back_offs: 0,
            tokens_before: 0.0,
            queue_before: Duration::ZERO,
            unmoved: 0,
        }
    }

    /// Starts after slow start, with a new window.
    pub(super) fn behind_slow_start() -> Self {
        Self { is_settling: true, is_learning: true, ..Self::new() }
    }

    /// Ignores the next round trip, which belongs to the old window.
    pub(super) fn settle(&mut self) {
        self.is_settling = true;
    }

    /// Returns to slow growth.
    pub(super) fn slow_down(&mut self) {
        self.growth = 1.0;
    }

    /// How many packets the window may grow per round trip.
    pub(super) fn growth(&self) -> f64 {
        self.growth
    }

    /// Whether slow start has just ended, so that the delivery rate may still rise.
    pub(super) fn is_learning(&self) -> bool {
        self.is_learning
    }

    /// A round trip with a window of `tokens` is over.
    pub(super) fn on_round(&mut self, tokens: f64, seen: &Seen) -> Step {
        if self.is_settling {
            self.is_settling = false;
            return Step::Stay;
        }
        self.is_learning = false;
        if seen.queue > seen.target {
            return self.back_off(tokens, seen);
        }
        self.back_offs = 0;
        let least = (GROWTH_LEAST * tokens.sqrt()).min(1.0);
        let faster = (self.growth * 2.0).min(tokens * GROWTH_MAX).max(least);
        self.growth = if seen.queue < seen.target / 2 { faster } else { least };
        Step::Stay
    }

    /// Performs the paper's back-off, leaving half of the target, or concludes that backing off has no effect.
    fn back_off(&mut self, tokens: f64, seen: &Seen) -> Step {
        if self.back_offs == 0 {
            self.tokens_before = tokens;
            self.unmoved = 0;
        } else if UNMOVED.contains(&seconds_ratio(seen.queue, self.queue_before)) {
            self.unmoved += 1;
        } else {
            self.unmoved = 0;
        }
        if self.unmoved >= UNMOVED_MAX && !seen.is_lossy {
            return Step::PathIsLonger(self.tokens_before);
        }
        // A queue that did not react last time gets a second chance.
        if self.back_offs >= BACK_OFFS_MAX && (seen.is_lossy || self.unmoved == 0) {
            return Step::QueueIsNotOurs(self.tokens_before);
        }
        self.back_offs += 1;
        self.queue_before = seen.queue;
        self.growth = 1.0;
        self.is_settling = true;
        Step::BackOff(seconds_ratio(seen.base + seen.target / 2, seen.base + seen.queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);
    const TARGET: Duration = Duration::from_millis(2);

    fn seen(queue: Duration) -> Seen {
        Seen { base: BASE, queue, target: TARGET, is_lossy: false }
    }

    /// The steps for queues of these milliseconds, skipping every second one while settling.
    fn steps(queues: &[u64]) -> Vec<Step> {
        let mut hold = Hold::new();
        let mut tokens = 40.0;
        let mut steps = Vec::new();
        for &queue in queues {
            let step = hold.on_round(tokens, &seen(Duration::from_millis(queue)));
            if let Step::BackOff(beta) = step {
                tokens *= beta;
                let next = hold.on_round(tokens, &seen(Duration::from_millis(queue)));
                assert_eq!(next, Step::Stay);
            }
            steps.push(step);
        }
        steps
    }

    #[test]
    fn growth_doubles_while_the_queue_is_low_up_to_an_eighth_and_falls_back_near_the_target() {
        let mut hold = Hold::new();
        let growth: Vec<f64> = [0, 0, 0, 0, 0, 1_500, 0]
            .into_iter()
            .map(|micros| {
                hold.on_round(40.0, &seen(Duration::from_micros(micros)));
                hold.growth()
            })
            .collect();
        assert_eq!(growth, [2.0, 4.0, 5.0, 5.0, 5.0, 1.0, 2.0]);
    }

    #[test]
    fn a_back_off_leaves_half_of_the_target_and_is_measured_before_the_next() {
        let steps = steps(&[10, 1]);
        assert!(matches!(steps[0], Step::BackOff(beta) if (beta - 21.0 / 30.0).abs() < 1e-12), "{steps:?}");
        assert_eq!(steps[1], Step::Stay);
    }

    #[test]
    fn a_queue_that_reacts_but_persists_is_caused_by_another_flow() {
        let steps = steps(&[20, 10, 20, 10, 20]);
        assert!(steps[..4].iter().all(|step| matches!(step, Step::BackOff(_))));
        assert_eq!(steps[4], Step::QueueIsNotOurs(40.0));
    }

    #[test]
    fn a_queue_that_drops_packets_without_reacting_is_caused_by_another_flow() {
        let mut hold = Hold::new();
        let queue = Seen { is_lossy: true, ..seen(Duration::from_millis(20)) };
        let steps: Vec<Step> =
            (0..20).map(|_| hold.on_round(40.0, &queue)).filter(|step| *step != Step::Stay).take(5).collect();
        assert!(steps[..4].iter().all(|step| matches!(step, Step::BackOff(_))), "{steps:?}");
        assert_eq!(steps[4], Step::QueueIsNotOurs(40.0));
    }

    #[test]
    fn small_windows_grow_little_near_the_target_and_the_smallest_relatively_most() {
        let growth = |tokens: f64| {
            let mut hold = Hold::new();
            hold.on_round(tokens, &seen(TARGET));
            hold.growth()
        };
        assert_eq!([growth(40.0), growth(4.0), growth(0.25)], [1.0, 0.5, 0.125]);
    }

    #[test]
    fn a_path_that_becomes_longer_between_back_offs_is_detected() {
        let steps = steps(&[3, 3, 12, 20, 20, 20]);
        assert!(steps[..5].iter().all(|step| matches!(step, Step::BackOff(_))), "{steps:?}");
        assert_eq!(steps[5], Step::PathIsLonger(40.0));
    }

    #[test]
    fn a_queue_that_does_not_react_at_all_is_a_longer_path() {
        let steps = steps(&[20, 20, 20]);
        assert!(steps[..2].iter().all(|step| matches!(step, Step::BackOff(_))));
        assert_eq!(steps[2], Step::PathIsLonger(40.0));
    }
}
