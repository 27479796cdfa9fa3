//! A second slow start on a long path.
//!
//! A burst of losses in the first flights looks like a link that is far too narrow, so the breaker ends slow start with a small window. From
//! there the window grows by at most an eighth in a round trip, which takes a quarter of a minute on a long fast path. If enough packets then arrive
//! without a loss, the burst has said nothing about the link, and slow start begins again.
//!
//! A back-off at a queue and other congestion forbid it. Among many flows in a full queue, so many packets hardly ever arrive without a loss. Each
//! time, four times as many are asked for, and a large window is left alone: a short queue that no delay shows is overflowed only a few times.
//!
//! The second slow start is no blank page: the breaker tolerates no more than after slow start, and the first round trips count as known.

use super::loss::LARGE;
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
    has_begun: bool,
    clear: u32,
    wanted: u32,
}

impl Default for Restart {
    fn default() -> Self {
        Self { is_possible: false, has_begun: false, clear: 0, wanted: CLEAR_MIN }
    }
}

impl Restart {
    /// The breaker ended slow start, `without_queue` if no delay showed one.
    pub(super) fn on_trip(&mut self, without_queue: bool) {
        *self = Self { is_possible: without_queue, clear: 0, ..*self };
    }

    /// A packet was lost, or a queue was seen.
    pub(super) fn on_trouble(&mut self) {
        self.clear = 0;
    }

    /// The window became smaller for a queue or for congestion.
    pub(super) fn forbid(&mut self) {
        self.is_possible = false;
    }

    /// Whether slow start has begun again, at least once.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// So many packets arrived in a round trip without trouble, with a window of `tokens`. Returns whether slow start begins again.
    fn on_arrivals(&mut self, packets: u32, tokens: f64) -> bool {
        self.clear = self.clear.saturating_add(packets);
        let is_enough = self.clear >= self.wanted && f64::from(self.clear) >= 2.0 * tokens;
        let begins = self.is_possible && is_enough && tokens < LARGE;
        if begins {
            let wanted = self.clear.max(self.wanted).saturating_mul(GROWTH);
            *self = Self { is_possible: false, has_begun: true, clear: 0, wanted };
        }
        begins
    }
}

impl Steady {
    /// A round trip is over. Returns whether slow start begins again. An experiment sends too little or too much to count.
    pub(super) fn restarts(&mut self, acked: &Acked, round: &Tally) -> bool {
        if self.is_queued || acked.is_app_limited {
            self.restart.on_trouble();
            return false;
        }
        let is_long = self.base.empty(&acked.rtt) >= LONG_PATH;
        let is_testing = self.yielding.is_some() || self.push.is_running();
        if !is_long || is_testing || !matches!(self.mode, Mode::Hold(_)) {
            return false;
        }
        let arrived = if round.lost == 0 { round.acked } else { 0 };
        let begins = self.restart.on_arrivals(arrived, self.tokens);
        if begins {
            self.regain = None;
            self.push.abandon();
            self.mode = Mode::SlowStart(SlowStart::again(self.origin.seen()));
        }
        begins
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::hold::Hold;
    use super::*;
    use crate::PacketNumber;
    use crate::congestion::Controller;
    use crate::congestion::tests::{acked, lost, rtt};
    use crate::recovery::rtt::RttView;

    /// In which of these round trips, in each of which so many packets arrived, slow start begins again with a window of 20 packets; 0 stands for
    /// losses.
    fn begins(restart: &mut Restart, arrived: &[u32]) -> Option<usize> {
        arrived.iter().position(|&arrived| {
            if arrived == 0 {
                restart.on_trouble();
            }
            restart.on_arrivals(arrived, 20.0)
        })
    }

    #[test]
    fn slow_start_begins_again_after_two_windows_without_a_loss() {
        let mut restart = Restart::default();
        assert_eq!(begins(&mut restart, &[20; 9]), None, "the breaker did not end it");
        restart.on_trip(true);
        assert_eq!(begins(&mut restart, &[20, 0, 20, 19, 1]), Some(4));
        assert_eq!(begins(&mut restart, &[20; 9]), None, "only once");
        assert!(restart.has_begun());
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
        assert_eq!(after, [Some(2), Some(11), Some(47)], "48, 192 and 768 packets");
    }

    #[test]
    fn slow_start_stays_over_after_a_queue_and_with_a_large_window() {
        let mut restart = Restart::default();
        restart.on_trip(false);
        assert_eq!(begins(&mut restart, &[20; 9]), None);
        restart.on_trip(true);
        restart.forbid();
        assert_eq!(begins(&mut restart, &[20; 9]), None);
        restart.on_trip(true);
        assert!(!restart.on_arrivals(1_000, LARGE));
        assert!(restart.on_arrivals(1_000, LARGE - 1.0));
    }

    /// Whether slow start begins again after a round trip of so many milliseconds with a window of 20 packets.
    fn begins_after(millis: u64, change: impl FnOnce(&mut Steady, &mut Acked, &mut Tally)) -> bool {
        let minimum = Duration::from_millis(millis);
        let view = RttView {
            latest: minimum,
            smoothed: minimum,
            variance: Duration::ZERO,
            minimum,
            minimum_ever: minimum,
            standing: minimum,
        };
        let mut acked = Acked { rtt: view, ..acked(100, 130, 0) };
        let (mut steady, mut round) = (Steady::new(1_472), Tally::default());
        steady.tokens = 20.0;
        steady.mode = Mode::Hold(Hold::after_trip());
        steady.restart.on_trip(true);
        (0..48).for_each(|_| round.on_packet(minimum));
        change(&mut steady, &mut acked, &mut round);
        steady.restarts(&acked, &round)
    }

    #[test]
    fn only_a_full_round_trip_of_a_long_path_without_trouble_counts() {
        assert!(begins_after(150, |_, _, _| ()));
        assert!(!begins_after(149, |_, _, _| ()), "a short path");
        assert!(!begins_after(150, |_, acked, _| acked.is_app_limited = true));
        assert!(!begins_after(150, |steady, _, _| steady.is_queued = true));
        assert!(!begins_after(150, |steady, _, _| steady.yielding = Some(0)));
        assert!(!begins_after(150, |_, _, round| round.on_loss(PacketNumber(7))));
        assert!(!begins_after(150, |steady, _, _| steady.mode = Mode::SlowStart(SlowStart::default())));
        let after_ack = |ecn_ce| {
            begins_after(150, |steady, acked, _| {
                steady.on_ack(&Acked { ecn_ce, number: PacketNumber(99), ..*acked });
            })
        };
        assert!(after_ack(false) && !after_ack(true), "a mark");
    }

    #[test]
    fn a_loss_counts_though_its_round_trip_has_no_sample() {
        let begins = |lose: bool| {
            begins_after(150, |steady, _, round| {
                assert!(!steady.restart.on_arrivals(28, 20.0));
                if lose {
                    steady.on_loss(&lost(50, 130, rtt(0)));
                }
                *round = Tally::default();
                (0..12).for_each(|_| round.on_packet(Duration::from_millis(150)));
            })
        };
        assert!(begins(false) && !begins(true));
    }
}
