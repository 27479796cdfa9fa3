//! A queue that stays the same for some round trips while the window shrinks. Other flows hardly ever refill it so exactly, so it is taken for a
//! longer path. This holds whatever is lost: by chance, more may be lost just when a path becomes longer.

use core::time::Duration;

use super::effect::WINDOW_MIN;

/// The queue differs by at most one part in this many.
const SAME: u32 = 128;

/// For so many round trips, in which the window falls to this fraction: as in three back-offs at a queue of a quarter of the path.
const ROUNDS: u32 = 6;
const REDUCED_TO: f64 = 0.6;

/// A queue that has been the same since some round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Still {
    queue: Duration,
    /// The window then.
    tokens: f64,
    rounds: u32,
    /// The windows after the last two round trips. A smaller window acts after one round trip and is measured in the next.
    windows: [f64; 2],
}

impl Still {
    /// A round trip with a queue of `queue` and a window of `tokens` is over. Returns the window from before if the path is longer. A small window is
    /// perhaps one of many, which fill the queue.
    pub(super) fn on_round(&mut self, queue: Duration, tokens: f64) -> Option<f64> {
        if queue.abs_diff(self.queue) > self.queue / SAME {
            *self = Self { queue, tokens, rounds: 0, windows: [tokens; 2] };
            return None;
        }
        self.rounds += 1;
        let [measured, last] = self.windows;
        self.windows = [last, tokens];
        let is_reduced = measured <= REDUCED_TO * self.tokens;
        let is_longer = self.rounds >= ROUNDS && self.tokens >= WINDOW_MIN && is_reduced;
        is_longer.then(|| core::mem::take(self).tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The round trip that shows a longer path, of ten with these queues (in microseconds) in turn while the window shrinks by a tenth each.
    fn shown(window: f64, micros: &[u64]) -> Option<(usize, f64)> {
        let mut still = Still::default();
        let mut tokens = window;
        (0..10).find_map(|round| {
            let before = still.on_round(Duration::from_micros(micros[round % micros.len()]), tokens);
            tokens *= 0.9;
            before.map(|before| (round, before))
        })
    }

    #[test]
    fn a_queue_that_stays_the_same_while_the_window_shrinks_is_a_longer_path() {
        assert_eq!(shown(64.0, &[80_000, 80_300]), Some((7, 64.0)));
        assert_eq!(shown(64.0, &[80_000, 81_000]), None, "it moves");
        assert_eq!(shown(31.0, &[80_000]), None, "there may be many flows");
        let mut still = Still::default();
        let steady = (0..20).find_map(|_| still.on_round(Duration::from_millis(80), 64.0));
        assert_eq!(steady, None, "the window stays the same, too");
        let after_cut: Vec<_> = (0..4).map(|_| still.on_round(Duration::from_millis(80), 32.0)).collect();
        assert_eq!(after_cut, [None, None, Some(64.0), None], "the cut has acted");
    }
}
