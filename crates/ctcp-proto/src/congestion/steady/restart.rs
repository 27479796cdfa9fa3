//! A second slow start on a long path.
//!
//! A burst of losses in the first flights looks like a link that is far too narrow, so the breaker ends slow start with a small window. From
//! there the window grows by at most an eighth in a round trip, which takes a minute on a long fast path. If many packets then arrive without a
//! loss, and no queue made the window smaller, the burst has said nothing about the link, and slow start begins again.
//!
//! Among many flows in a full queue, the same many packets hardly ever arrive without a loss. Each time, four times as many are asked for, so that a
//! short queue that no delay shows is overflowed only a few times.

use super::slow_start::{LONG_PATH, SlowStart};
use super::tally::Tally;
use super::{Acked, Mode, Steady};

/// So many packets, and at least two windows, must arrive without a loss.
const CLEAR_MIN: u32 = 32;

/// Growth of that number with each restart.
const GROWTH: u32 = 4;

/// Counts packets without a loss since the breaker ended slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart {
    is_possible: bool,
    clear: u32,
    wanted: u32,
}

impl Default for Restart {
    fn default() -> Self {
        Self { is_possible: false, clear: 0, wanted: CLEAR_MIN }
    }
}

impl Restart {
    /// The breaker ended slow start, `without_queue` if no delay showed one.
    pub(super) fn on_trip(&mut self, without_queue: bool) {
        *self = Self { is_possible: without_queue, clear: 0, ..*self };
    }

    /// A queue made the window smaller.
    pub(super) fn on_queue(&mut self) {
        self.is_possible = false;
    }

    /// A round trip with a window of `tokens` is over in which so many packets arrived; 0 if it had losses or a queue. Returns whether slow start
    /// begins again.
    fn on_round(&mut self, arrived: u32, tokens: f64) -> bool {
        self.clear = if arrived > 0 { self.clear.saturating_add(arrived) } else { 0 };
        let is_enough = self.clear >= self.wanted && f64::from(self.clear) >= 2.0 * tokens;
        let begins = self.is_possible && is_enough;
        if begins {
            *self = Self { is_possible: false, clear: 0, wanted: self.wanted.saturating_mul(GROWTH) };
        }
        begins
    }
}

impl Steady {
    /// A round trip is over. Returns whether slow start begins again.
    pub(super) fn restarts(&mut self, acked: &Acked, round: &Tally) -> bool {
        let is_long = self.base.empty(&acked.rtt) >= LONG_PATH;
        let is_used = matches!(self.mode, Mode::Hold(_)) && !acked.is_app_limited;
        let is_clear = is_long && is_used && !self.is_queued && round.lost == 0;
        let begins = self.restart.on_round(if is_clear { round.acked } else { 0 }, self.tokens);
        if begins {
            self.yielding = None;
            self.origin.abandon();
            self.push.abandon();
            self.mode = Mode::SlowStart(SlowStart::default());
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In which of these round trips, in each of which so many packets arrived, slow start begins again with a window of 20 packets.
    fn begins(restart: &mut Restart, arrived: &[u32]) -> Option<usize> {
        arrived.iter().position(|&arrived| restart.on_round(arrived, 20.0))
    }

    #[test]
    fn slow_start_begins_again_after_two_windows_without_a_loss() {
        let mut restart = Restart::default();
        assert_eq!(begins(&mut restart, &[20; 9]), None, "the breaker did not end it");
        restart.on_trip(true);
        assert_eq!(begins(&mut restart, &[20, 0, 20, 19, 1]), Some(4));
        assert_eq!(begins(&mut restart, &[20; 9]), None, "only once");
    }

    #[test]
    fn the_next_time_takes_four_times_as_many_packets() {
        let mut restart = Restart::default();
        let after: Vec<_> = (0..3)
            .map(|_| {
                restart.on_trip(true);
                begins(&mut restart, &[16; 64])
            })
            .collect();
        assert_eq!(after, [Some(2), Some(7), Some(31)], "40, 128 and 512 packets");
    }

    #[test]
    fn slow_start_stays_over_if_there_was_a_queue() {
        let mut restart = Restart::default();
        restart.on_trip(false);
        assert_eq!(begins(&mut restart, &[20; 9]), None);
        restart.on_trip(true);
        restart.on_queue();
        assert_eq!(begins(&mut restart, &[20; 9]), None);
    }
}
