//! How long a full packet takes on the empty path. A slow link takes longer for it than for a small one.
//!
//! The shortest round trip is often that of a small packet, such as one of the handshake. On a slow link, full packets never take as little
//! time. A flow with a small window would take the difference for a queue of its own, and back off for as long as the connection lasts. So
//! the difference belongs to the path if full packets keep taking the same time. In a queue of other flows they seldom do. The difference is
//! at most the time of a packet at the greatest rate seen, and at most a quarter of the shortest round trip.

use core::time::Duration;

use ctcp_base::Instant;

use crate::recovery::rtt::{MINIMUM_WINDOW, nanos};
use crate::recovery::sliding::SlidingMinimum;

/// Round trips with the same shortest time must outnumber those with a longer one by this many.
const ROUNDS: u32 = 8;

/// At most so many are counted, so that the estimate ends soon after a queue begins to last.
const ROUNDS_MAX: u32 = 16;

/// Times are the same up to one part in this many of the difference to small packets, or up to this time, if that is longer.
const SAME: u32 = 16;
const SAME_MIN: Duration = Duration::from_micros(100);

/// The difference is at most one part in this many of the shortest round trip.
const DIFFERENCE_MAX: u32 = 4;

/// The sample of one ACK.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    rtt: Duration,
    /// The ACK acknowledged only full packets, as far as they were processed.
    is_full: bool,
}

/// The round trips of full packets.
#[derive(Debug)]
pub(super) struct FullSize {
    /// The shortest one of the last ten seconds.
    shortest: SlidingMinimum,
    /// The shortest one of this round trip.
    lowest: Option<Duration>,
    floor: Option<Duration>,
    /// Round trips with the same shortest time, minus those with a longer one.
    rounds: u32,
    /// The time of a full packet at the greatest rate seen.
    packet_time: Option<Duration>,
    /// The latest ACK, whose packets are still being processed.
    latest: Option<Sample>,
}

impl Default for FullSize {
    fn default() -> Self {
        Self {
            shortest: SlidingMinimum::new(nanos(MINIMUM_WINDOW)),
            lowest: None,
            floor: None,
            rounds: 0,
            packet_time: None,
            latest: None,
        }
    }
}

impl FullSize {
    /// A packet was acknowledged, by an ACK whose sample is `rtt`.
    pub(super) fn on_packet(&mut self, now: Instant, rtt: Duration, is_full: bool) {
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.at == now) {
            latest.is_full &= is_full;
            return;
        }
        let before = self.latest.replace(Sample { at: now, rtt, is_full });
        if let Some(Sample { at, rtt, is_full: true }) = before {
            self.shortest.insert(at.as_nanos(), nanos(rtt));
            self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        }
    }

    /// The link delivers full packets at this interval, or faster.
    pub(super) fn on_packet_time(&mut self, time: Duration) {
        self.packet_time = Some(self.packet_time.map_or(time, |least| least.min(time)));
    }

    /// A round trip is over. `minimum` is the shortest round trip of any packet. If `is_kept`, others may fill the queue, so the estimate must
    /// not rise.
    pub(super) fn on_round(&mut self, now: Instant, minimum: Duration, is_kept: bool) {
        let Some(lowest) = self.lowest.take() else { return };
        let shortest = self.shortest.minimum(now.as_nanos()).map_or(lowest, Duration::from_nanos);
        let before = self.floor.unwrap_or(shortest);
        let floor = if is_kept { shortest.min(before) } else { shortest };
        let same = (floor.saturating_sub(minimum) / SAME).max(SAME_MIN);
        self.rounds = if floor.abs_diff(before) > same {
            0
        } else if lowest <= floor + same {
            (self.rounds + 1).min(ROUNDS_MAX)
        } else {
            self.rounds.saturating_sub(1)
        };
        self.floor = Some(floor);
    }

    /// The size of full packets changed.
    pub(super) fn on_datagram_size(&mut self) {
        *self = Self::default();
    }

    /// The round trip of a full packet on the empty path, if the shortest one of any packet is `minimum`.
    pub(super) fn empty(&self, minimum: Duration) -> Duration {
        let known = self.floor.zip(self.packet_time).filter(|_| self.rounds >= ROUNDS);
        known.map_or(minimum, |(floor, packet_time)| {
            floor.clamp(minimum, minimum + packet_time.min(minimum / DIFFERENCE_MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Duration = Duration::from_millis(20);

    /// After round trips whose full packets take these times in microseconds, on a link that takes `packet_time` for one.
    fn after(micros: impl IntoIterator<Item = u64>, packet_time: u64) -> FullSize {
        let mut full = FullSize::default();
        full.on_packet_time(Duration::from_micros(packet_time));
        add(&mut full, 0, micros, false);
        full
    }

    /// Adds round trips from number `first` on.
    fn add(full: &mut FullSize, first: u32, micros: impl IntoIterator<Item = u64>, is_kept: bool) {
        for (round, micros) in (first..).zip(micros) {
            let now = Instant::ZERO + SMALL * round;
            full.on_packet(now, Duration::from_micros(micros), true);
            full.on_round(now, SMALL, is_kept);
        }
    }

    fn empty_after(micros: impl IntoIterator<Item = u64>, packet_time: u64) -> u128 {
        after(micros, packet_time).empty(SMALL).as_micros()
    }

    #[test]
    fn full_packets_that_keep_taking_the_same_time_take_it_on_the_empty_path() {
        assert_eq!(empty_after([24_000; 8], 4_000), 20_000, "not yet");
        assert_eq!(empty_after([24_000; 12], 4_000), 24_000);
        let some_queued = (0..60).map(|round| if round % 4 == 3 { 30_000 } else { 24_000 });
        assert_eq!(empty_after(some_queued, 4_000), 24_000);
    }

    #[test]
    fn the_difference_is_limited() {
        assert_eq!(empty_after([30_000; 12], 4_000), 24_000, "to a packet");
        assert_eq!(empty_after([30_000; 12], 40_000), 25_000, "to a quarter of the path");
    }

    #[test]
    fn a_queue_that_varies_is_not_the_path() {
        let varying = (0..200).map(|round| 21_000 + 500 * (round % 7));
        assert_eq!(empty_after(varying, 40_000), 20_000);
        let emptying = (0..20).map(|round| 24_000 - 150 * round);
        assert_eq!(empty_after(emptying, 40_000), 20_000);
    }

    #[test]
    fn a_shorter_time_and_a_queue_that_lasts_end_it() {
        let then = |micros: u64, rounds: usize| {
            let mut full = after([24_000; 30], 4_000);
            add(&mut full, 30, vec![micros; rounds], true);
            full.empty(SMALL).as_micros()
        };
        assert_eq!((then(21_000, 4), then(21_000, 12)), (20_000, 21_000));
        assert_eq!((then(40_000, 4), then(40_000, 12)), (24_000, 20_000));
    }

    #[test]
    fn it_rises_after_ten_seconds_unless_others_may_fill_the_queue() {
        for (is_kept, expected) in [(false, 23_000), (true, 20_000)] {
            let mut full = after([21_000; 30], 4_000);
            add(&mut full, 1_000, [23_000; 24], is_kept);
            assert_eq!(full.empty(SMALL).as_micros(), expected, "kept: {is_kept}");
        }
    }

    #[test]
    fn an_ack_of_a_small_packet_too_says_nothing() {
        let mut full = FullSize::default();
        full.on_packet_time(SMALL);
        for round in 0..24 {
            let now = Instant::ZERO + SMALL * round;
            full.on_packet(now, SMALL + SMALL / 8, true);
            full.on_packet(now, SMALL + SMALL / 8, false);
            full.on_round(now, SMALL, false);
        }
        assert_eq!(full.empty(SMALL), SMALL);
    }
}
