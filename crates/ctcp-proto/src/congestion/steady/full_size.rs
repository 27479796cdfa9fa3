//! How long a full packet takes on the empty path, which sends it more slowly than a small one.
//!
//! The shortest round trip is often that of a small packet, such as one of the handshake. On a slow link, full packets never take as little
//! time. With a small window, the difference would pass for a queue of its own for as long as the connection lasts. So it belongs to the
//! path if full packets keep taking the same time. In a queue of other flows they do not. It is at most the time of a packet at the
//! greatest rate seen.

use core::time::Duration;

use ctcp_base::Instant;

use super::base::kept_low;
use crate::recovery::rtt::{MINIMUM_WINDOW, nanos};
use crate::recovery::sliding::SlidingMinimum;

/// The shortest times of so many round trips must be the same, up to one part in the second number of the difference.
const ROUNDS: u32 = 8;
const SAME: u32 = 16;

/// The sample of one ACK.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    rtt: Duration,
    /// The ACK acknowledged only full packets.
    is_full: bool,
}

/// The round trips of full packets.
#[derive(Debug)]
pub(super) struct FullSize {
    /// The shortest ones of the last ten seconds, and of this round trip.
    shortest: SlidingMinimum,
    lowest: Option<Duration>,
    floor: Option<Duration>,
    /// Round trips with the same shortest time.
    rounds: u32,
    /// How long the link takes for a full packet, at most.
    packet: Option<Duration>,
    /// That of the latest ACK, whose packets are not all known.
    latest: Option<Sample>,
}

impl Default for FullSize {
    fn default() -> Self {
        Self {
            shortest: SlidingMinimum::new(nanos(MINIMUM_WINDOW)),
            lowest: None,
            floor: None,
            rounds: 0,
            packet: None,
            latest: None,
        }
    }
}

impl FullSize {
    /// A packet was acknowledged after `rtt`. At the delivery rate, a full one takes the time `packet`.
    pub(super) fn on_packet(&mut self, now: Instant, rtt: Duration, is_full: bool, packet: Option<Duration>) {
        self.packet = [self.packet, packet].into_iter().flatten().min();
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

    /// A round trip is over. `minimum` is the shortest round trip of any packet. If `is_kept`, others may fill the queue, so the estimate must
    /// not rise.
    pub(super) fn on_round(&mut self, now: Instant, minimum: Duration, is_kept: bool) {
        if let Some((lowest, floor)) = self.lowest.take().zip(self.floor) {
            let tolerated = floor.saturating_sub(minimum) / SAME;
            if lowest + tolerated < floor {
                self.rounds = 0;
            } else if lowest <= floor + tolerated {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
        let shortest = self.shortest.minimum(now.as_nanos()).map(Duration::from_nanos);
        self.floor =
            shortest.map_or(self.floor.filter(|_| is_kept), |now| kept_low(self.floor, now, is_kept));
    }

    /// The round trip of a full packet on the empty path, if the shortest one of any packet is `minimum`.
    pub(super) fn empty(&self, minimum: Duration) -> Duration {
        let known = self.floor.zip(self.packet).filter(|_| self.rounds >= ROUNDS);
        known.map_or(minimum, |(floor, packet)| floor.min(minimum + packet).max(minimum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Duration = Duration::from_millis(20);

    /// The empty path after round trips whose full packets take these times in microseconds, on a link that takes `packet` for one.
    fn empty_after(micros: &[u64], packet: u64) -> Duration {
        let mut full = FullSize::default();
        for (round, &micros) in micros.iter().enumerate() {
            let now = Instant::ZERO + SMALL * round as u32;
            full.on_packet(now, Duration::from_micros(micros), true, Some(Duration::from_micros(packet)));
            full.on_round(now, SMALL, false);
        }
        full.empty(SMALL)
    }

    #[test]
    fn full_packets_that_always_take_the_same_time_take_it_on_the_empty_path() {
        assert_eq!(empty_after(&[24_000; 9], 4_000), SMALL, "not yet");
        assert_eq!(empty_after(&[24_000; 12], 4_000), Duration::from_millis(24));
        let some_queued: Vec<u64> = (0..24).map(|round| 24_000 + 3_000 * (round % 2)).collect();
        assert_eq!(empty_after(&some_queued, 4_000), Duration::from_millis(24));
        assert_eq!(empty_after(&[30_000; 12], 4_000), Duration::from_millis(24), "the rest is a queue");
    }

    #[test]
    fn a_queue_that_varies_is_not_the_path() {
        let varying: Vec<u64> = (0..24).map(|round| 30_000 + 1_000 * (round % 7)).collect();
        assert_eq!(empty_after(&varying, 40_000), SMALL);
    }

    #[test]
    fn an_ack_of_a_small_packet_too_says_nothing() {
        let mut full = FullSize::default();
        for round in 0..24 {
            let now = Instant::ZERO + SMALL * round;
            for is_full in [true, false] {
                full.on_packet(now, 2 * SMALL, is_full, Some(SMALL));
            }
            full.on_round(now, SMALL, false);
        }
        assert_eq!(full.empty(SMALL), SMALL);
    }
}
