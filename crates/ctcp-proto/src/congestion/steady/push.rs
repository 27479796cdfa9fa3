//! An experiment for paths whose delay varies by itself. When the delay indicates a queue, more is sent for two round trips. If the
//! delivery rate follows and the delay does not, the link is not full and the delay is the path's. The rate alone is not enough: among many
//! flows, the rate of one nearly follows even on a full link.

use core::time::Duration;

use super::tally::arrival_rate;

/// How much more is sent.
pub(super) const MORE: f64 = 1.25;

/// Round trips until the change becomes visible, and in total.
const UNSEEN: u32 = 1;
const ROUNDS: u32 = 3;

/// The rate follows if it grows by this share of what the window grows by. The delay does not if it grows by at most this fraction.
const FOLLOWS: f64 = 0.48;
const RISE_MAX: u32 = 12;

/// The window must be so much larger than before. If it has just been reduced, an experiment waits until that is visible.
const LARGER: f64 = 1.2;

/// Round trips between two experiments, initially and when they keep showing a full link.
const REST_MIN: u32 = 4;
const REST_MAX: u32 = 32;

/// The result of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More was sent, but no more arrived.
    Full,
    /// More arrived.
    Room,
}

/// Packets that arrived in some period.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    packets: u32,
    time: Duration,
    /// The longer of the mean round trips.
    mean: Duration,
    /// The larger of the windows with which they were sent.
    window: f64,
}

impl Arrivals {
    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.time += other.time;
        self.mean = self.mean.max(other.mean);
        self.window = self.window.max(other.window);
    }

    fn rate(&self) -> f64 {
        arrival_rate(self.packets, self.time)
    }
}

/// The experiments of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    /// The last two round trips.
    recent: [Arrivals; 2],
    before: Arrivals,
    after: Arrivals,
    running: Option<u32>,
    rest: u32,
    rested: u32,
    /// The window of the running experiment, relative to that before.
    larger: f64,
    /// The window at the end of the last round trip.
    window: f64,
}

impl Default for Push {
    fn default() -> Self {
        let (before, after) = Default::default();
        Self {
            recent: Default::default(),
            before,
            after,
            running: None,
            rest: REST_MIN,
            rested: REST_MIN,
            larger: MORE,
            window: 0.0,
        }
    }
}

impl Push {
    /// Whether an experiment is running, during which the window must not change.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The factor for the window.
    pub(super) fn gain(&self) -> f64 {
        if self.running.is_some_and(|round| round + UNSEEN < ROUNDS) { MORE } else { 1.0 }
    }

    /// Begins an experiment with a window of `tokens` if the last one was long enough ago. Returns whether the window must not change: it
    /// began, or begins once earlier changes are visible.
    pub(super) fn begin(&mut self, tokens: f64) -> bool {
        let is_rested = self.rested >= self.rest && self.recent[1].packets > 0;
        if is_rested {
            let [last, before] = self.recent;
            self.before = last;
            self.before.add(before);
            self.larger = MORE * tokens / self.before.window.max(1e-3);
            if self.larger < LARGER {
                return true;
            }
            self.after = Arrivals::default();
            self.running = Some(0);
        }
        is_rested
    }

    /// Discards the measurements because the window changed.
    pub(super) fn abandon(&mut self) {
        *self = Self { rest: self.rest, rested: 0, window: self.window, ..Self::default() };
    }

    /// A round trip of `time` is over, in which `packets` arrived and the mean sample was `mean`. The window is now `tokens`. Returns the
    /// result when an experiment ends.
    pub(super) fn on_round(
        &mut self,
        packets: u32,
        time: Duration,
        mean: Duration,
        tokens: f64,
    ) -> Option<Found> {
        let window = core::mem::replace(&mut self.window, tokens);
        let round_trip = Arrivals { packets, time, mean, window };
        self.recent = [round_trip, self.recent[0]];
        self.rested = self.rested.saturating_add(1);
        let round = self.running? + 1;
        self.running = Some(round);
        if round > UNSEEN {
            self.after.add(round_trip);
        }
        if round < ROUNDS {
            return None;
        }
        self.running = None;
        self.rested = 0;
        let longest = self.before.mean + self.before.mean / RISE_MAX;
        let least = (1.0 + FOLLOWS * (self.larger - 1.0)) * self.before.rate();
        let is_full = self.after.rate() < least || self.after.mean > longest;
        self.rest = if is_full { (self.rest * 2).min(REST_MAX) } else { REST_MIN / 2 };
        Some(if is_full { Found::Full } else { Found::Room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(50);
    const WINDOW: f64 = 64.0;

    /// A push after a few round trips of this many packets.
    fn rested(packets: u32) -> Push {
        let mut push = Push::default();
        (0..REST_MIN).for_each(|_| assert_eq!(push.on_round(packets, ROUND, ROUND, WINDOW), None));
        push
    }

    /// The result if the link delivers `before` packets per round trip and then `after`.
    fn found(before: u32, after: u32) -> Option<Found> {
        let mut push = rested(before);
        assert!(push.begin(WINDOW));
        [before, after, after].into_iter().find_map(|packets| push.on_round(packets, ROUND, ROUND, WINDOW))
    }

    #[test]
    fn a_full_link_is_told_from_one_with_room() {
        assert_eq!(found(64, 64), Some(Found::Full));
        assert_eq!(found(64, 68), Some(Found::Full));
        assert_eq!(found(64, 80), Some(Found::Room));
    }

    #[test]
    fn more_is_sent_for_two_round_trips() {
        let mut push = rested(64);
        assert_eq!(push.gain(), 1.0);
        push.begin(WINDOW);
        let gains: Vec<f64> = (0..4)
            .map(|_| {
                let gain = push.gain();
                push.on_round(64, ROUND, ROUND, WINDOW);
                gain
            })
            .collect();
        assert_eq!(gains, [MORE, MORE, 1.0, 1.0]);
    }

    #[test]
    fn a_growing_rate_with_a_growing_delay_means_a_full_link() {
        let mut push = rested(64);
        push.begin(WINDOW);
        let longer = ROUND + ROUND / 8;
        assert_eq!(push.on_round(64, ROUND, ROUND, WINDOW), None);
        assert_eq!(push.on_round(76, ROUND, ROUND, WINDOW), None);
        assert_eq!(push.on_round(76, ROUND, longer, WINDOW), Some(Found::Full));
    }

    #[test]
    fn an_experiment_after_a_back_off_waits_until_that_is_visible() {
        let mut push = rested(64);
        let reduced = 0.8 * WINDOW;
        assert_eq!(push.on_round(64, ROUND, ROUND, reduced), None);
        // The last round trips belong to the larger window. The next one does, too, in part.
        let begun: Vec<bool> = (0..4)
            .map(|_| {
                assert!(push.begin(reduced), "the window must not change");
                let is_running = push.is_running();
                push.on_round(51, ROUND, ROUND, reduced);
                is_running
            })
            .collect();
        assert_eq!(begun, [false, false, true, true]);
    }

    #[test]
    fn each_full_link_doubles_the_interval_between_experiments() {
        let mut push = rested(64);
        let mut waits = Vec::new();
        for after in [64, 64, 80, 64, 64, 64] {
            let mut waited = 0;
            while !push.begin(WINDOW) {
                push.on_round(64, ROUND, ROUND, WINDOW);
                waited += 1;
            }
            waits.push(waited);
            [64, after, after]
                .into_iter()
                .for_each(|packets| _ = push.on_round(packets, ROUND, ROUND, WINDOW));
        }
        assert_eq!(waits, [0, 8, 16, 2, 4, 8]);
    }

    #[test]
    fn an_abandoned_experiment_leaves_no_baseline() {
        let mut push = rested(64);
        push.begin(WINDOW);
        push.abandon();
        assert!(!push.is_running() && !push.begin(WINDOW));
    }
}
