//! Keeping the queue at its target: grow below it, back off above it, and notice when backing off changes nothing.

use core::time::Duration;

use super::seconds_ratio;

/// After so many back-offs in a row the queue is somebody else's.
const BACK_OFFS_MAX: u32 = 4;

/// A queue within a tenth of what it was before the back-off did not react,
const UNMOVED: core::ops::Range<f64> = 0.9..1.1;

/// and twice is no accident.
const UNMOVED_MAX: u32 = 2;

/// How much of the window the growth of a round trip may be.
const GROWTH_MAX: f64 = 1.0 / 8.0;

/// Near the target it is one packet, and with few packets this times their root: many small flows grow little, and the smallest catch up.
const GROWTH_LEAST: f64 = 0.25;

/// What a round trip showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The empty path, the queue beyond it, and how long that may be.
    pub(super) base: Duration,
    pub(super) queue: Duration,
    pub(super) target: Duration,
    /// More is lost than the path loses by itself, which a longer path does not explain.
    pub(super) is_lossy: bool,
}

/// What a round trip asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing new.
    Stay,
    /// The window times this.
    BackOff(f64),
    /// The queue did not react at all: the path is longer by it. The window as before the back-offs.
    PathIsLonger(f64),
    /// The queue stays in spite of all back-offs: somebody else fills it. The window as before.
    QueueIsNotOurs(f64),
}

/// The state of holding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    growth: f64,
    /// The last change is not seen yet: it takes a round trip to act and one to be measured.
    is_settling: bool,
    is_learning: bool,
    back_offs: u32,
    /// Before the first of them.
    tokens_before: f64,
    queue_before: Duration,
    unmoved: u32,
}

impl Hold {
    /// With a queue that has been measured.
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

    /// Behind slow start, with a new window.
    pub(super) fn behind_slow_start() -> Self {
        Self { is_settling: true, is_learning: true, ..Self::new() }
    }

    /// The window changed: what the next round trip measures belongs to the old one.
    pub(super) fn settle(&mut self) {
        self.is_settling = true;
    }

    /// Slow growth from now on.
    pub(super) fn slow_down(&mut self) {
        self.growth = 1.0;
    }

    /// Packets by which the window may grow in a round trip.
    pub(super) fn growth(&self) -> f64 {
        self.growth
    }

    /// Slow start is just over: the delivery rate may still turn out to be higher.
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

    /// The paper's back-off, leaving half of the target; or the insight that it is no use.
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
        // One that did not react the last time gets its second chance to do so.
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

    /// The steps that queues of so many milliseconds ask for, every second one skipped while settling.
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
    fn a_queue_that_reacts_but_stays_is_somebody_elses() {
        let steps = steps(&[20, 10, 20, 10, 20]);
        assert!(steps[..4].iter().all(|step| matches!(step, Step::BackOff(_))));
        assert_eq!(steps[4], Step::QueueIsNotOurs(40.0));
    }

    #[test]
    fn a_queue_that_does_not_react_but_drops_packets_is_somebody_elses() {
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
    fn a_path_that_becomes_longer_between_back_offs_is_still_found_out() {
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
