//! Statistics of a round trip, or of a stretch of samples.

use core::time::Duration;

use super::samples::Samples;
use crate::PacketNumber;

/// Minimum number of packets for a loss rate.
const PACKETS_MIN: u32 = 16;

/// Fraction of a round trip, in excess of the path's own loss, whose loss during a trend of the queue indicates an overflow. The loss that
/// a path may have unnoticed is the same.
const OVERFLOW: f64 = 0.05;

/// Maximum loss that is taken for the path's own.
const OWN_MAX: f64 = 0.35;

/// Losses are a burst if the mean row has at least so many packets and no sample exceeds the smallest by this factor. A queue that overflows
/// drops few in a row, unless far more is sent than the path carries. If it holds at least half of the path, its delay then shows. A shorter
/// one is taken for a burst, and the breaker answers it. With more rows than this, the loss rate is reliable.
const BURST_ROW: u32 = 5;
const BURST_DELAY: f64 = 1.5;
const BURST_ROWS_MAX: u32 = 4;

/// Minimum span of a trend as a fraction of the base.
const MOVE_MIN: u32 = 32;

/// Samples and losses of some period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) lowest: Option<Duration>,
    pub(super) highest: Duration,
    pub(super) acked: u32,
    pub(super) lost: u32,
    /// Rows of lost packets whose numbers follow each other, and the last number.
    rows: u32,
    last_lost: Option<PacketNumber>,
    pub(super) samples: Samples,
}

impl Tally {
    /// An empty one for the next round trip.
    pub(super) fn following(&self) -> Self {
        Self { samples: self.samples.following(), ..Self::default() }
    }

    /// A packet was acknowledged after `rtt`.
    pub(super) fn on_packet(&mut self, rtt: Duration) {
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        self.highest = self.highest.max(rtt);
        self.acked += 1;
    }

    /// A packet was lost.
    pub(super) fn on_loss(&mut self, number: PacketNumber) {
        let follows = self.last_lost.is_some_and(|last| last.0 + 1 == number.0);
        self.rows += u32::from(!follows);
        self.last_lost = Some(number);
        self.lost += 1;
    }

    /// Whether more packets were lost than arrived.
    pub(super) fn is_mostly_lost(&self) -> bool {
        self.lost > self.acked
    }

    /// Whether the path lost packets in a burst, which says nothing about its queue.
    pub(super) fn is_burst(&self) -> bool {
        let is_undelayed = self.highest <= self.lowest.unwrap_or_default().mul_f64(BURST_DELAY);
        (1..=BURST_ROWS_MAX).contains(&self.rows) && self.lost >= BURST_ROW * self.rows && is_undelayed
    }

    /// Whether samples rise or fall over the round trip, as with a queue, on a path of `base`. Noise does not count, and neither does a
    /// trend below a fraction of the path.
    pub(super) fn is_moving(&self, base: Duration) -> bool {
        let span = self.highest.saturating_sub(self.lowest.unwrap_or_default());
        // A single late packet has this span, but hardly this deviation.
        let least = base.as_secs_f64() / f64::from(4 * MOVE_MIN);
        span > base / MOVE_MIN && self.samples.are_moving(least)
    }

    /// Whether an overflowing queue lost packets. During a trend of the samples, more were lost than the fraction `own`, which the path loses
    /// by itself: by [`OVERFLOW`] and a standard deviation.
    pub(super) fn is_overflow(&self, base: Duration, own: f64) -> bool {
        let all = f64::from(self.acked + self.lost);
        let own = own.min(OWN_MAX);
        let noticed = own.max(OVERFLOW);
        let usual = (own + OVERFLOW) * all + (noticed * (1.0 - noticed) * all).sqrt();
        self.lost >= 2 && !self.is_burst() && f64::from(self.lost) > usual && self.is_moving(base)
    }

    /// The excess of the smallest sample over `base`, which is a queue, since noise spares some samples.
    pub(super) fn queue(&self, base: Duration) -> Duration {
        self.lowest.map_or(Duration::ZERO, |lowest| lowest.saturating_sub(base))
    }

    /// The fraction of packets lost; `None` if there were too few packets.
    pub(super) fn loss(&self) -> Option<f64> {
        let all = self.acked + self.lost;
        (all >= PACKETS_MIN).then(|| f64::from(self.lost) / f64::from(all))
    }
}

/// Packets per second, finite.
pub(super) fn arrival_rate(packets: u32, time: Duration) -> f64 {
    f64::from(packets) / time.as_secs_f64().max(1e-6)
}

/// `part / whole`, finite.
pub(super) fn seconds_ratio(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;

    const BASE: Duration = Duration::from_millis(20);

    fn tally(micros: impl IntoIterator<Item = u64>, lost: u32) -> Tally {
        let mut tally = Tally::default();
        (0..lost).for_each(|number| tally.on_loss(PacketNumber(2 * u64::from(number))));
        for micros in micros {
            tally.on_packet(Duration::from_micros(micros));
            tally.samples.push(Duration::from_micros(micros));
        }
        tally
    }

    #[test]
    fn a_queue_that_fills_or_drains_moves_and_noise_does_not() {
        let mut prng = Prng::new(1);
        let noise: Vec<u64> = (0..64).map(|_| 20_000 + prng.below(10_000)).collect();
        assert!(!tally(noise, 0).is_moving(BASE));
        assert!(tally((0..32).map(|packet| 20_000 + 300 * packet), 0).is_moving(BASE));
        assert!(tally((0..32).map(|packet| 40_000 - 300 * packet), 0).is_moving(BASE));
        assert!(!tally((0..32).map(|packet| 20_000 + 10 * packet), 0).is_moving(BASE), "too little");
        assert!(!tally([20_000, 30_000], 0).is_moving(BASE), "too few");
        let mut late = tally([20_000; 64], 5).following();
        (0..64).for_each(|packet| {
            let rtt = Duration::from_micros(if packet == 29 { 22_000 } else { 20_000 });
            late.on_packet(rtt);
            late.samples.push(rtt);
        });
        assert!(!late.is_moving(BASE), "one packet that is late");
    }

    #[test]
    fn only_loss_while_the_queue_moves_is_an_overflow() {
        let rising = || (0..32).map(|packet| 20_000 + 300 * packet);
        assert!(tally(rising(), 8).is_overflow(BASE, 0.0));
        assert!(!tally(rising(), 8).is_overflow(BASE, 0.2), "the path always loses so many");
        assert!(!tally(rising(), 2).is_overflow(BASE, 0.0), "bad luck");
        assert!(!tally([20_000; 32], 8).is_overflow(BASE, 0.0), "the path's own");
        let mut burst = tally(rising(), 0);
        (0..8).for_each(|number| burst.on_loss(PacketNumber(number)));
        assert!(!burst.is_overflow(BASE, 0.0), "a burst");
    }

    #[test]
    fn a_row_of_losses_without_delay_is_a_burst() {
        let round = |highest: u64, lost: &[u64]| {
            let mut tally = tally([20_000, highest], 0);
            lost.iter().for_each(|&number| tally.on_loss(PacketNumber(number)));
            tally.is_burst()
        };
        assert!(round(21_000, &[3, 4, 5, 6, 7]));
        assert!(round(30_000, &[3, 4, 5, 6, 7, 8, 9, 20, 21, 22]), "two rows of five on average");
        assert!(!round(31_000, &[3, 4, 5, 6, 7]), "a queue");
        assert!(!round(21_000, &[3, 4, 5, 6, 7, 9]), "two rows of three");
        assert!(!round(21_000, &[]), "none lost");
        let rows: Vec<u64> = (0..5).flat_map(|row| (0..5).map(move |packet| 10 * row + packet)).collect();
        assert!(round(21_000, &rows[..20]) && !round(21_000, &rows), "many rows");
    }
}
