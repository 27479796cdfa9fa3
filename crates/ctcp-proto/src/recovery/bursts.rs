//! Whether losses are independent or come in bursts.
//!
//! Radio links and full queues lose packets in bursts. The average loss is the same, but the number of lost packets varies more around it.
//! Users of the average (smoothing, redundancy, queues) need to know how much more.

use crate::id::PacketNumber;

/// The weight of one loss, once there were enough of them.
const WEIGHT: f64 = 1.0 / 32.0;

/// How many independent losses are assumed initially.
const PRIOR: u32 = 4;

/// A lower correlation is treated as chance.
const CORRELATION_MIN: f64 = 0.2;

/// Maximum correlation: a mean burst of ten packets.
const CORRELATION_MAX: f64 = 0.9;

/// A longer row is no better known.
const ROW_MAX: u32 = 64;

/// Limits how much bursts slow an average down, so that it always adapts within some thousand packets.
const SLOWER_MAX: f64 = 8.0;

/// How far losses count in a moment in which a queue may have dropped the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// How many packets are sent at once. A queue drops several of those in a row, so a loss follows others only if at least so many precede
    /// it, and at least two.
    pub(crate) at_once: u32,
    /// Whether a single loss counts as independent. If so, the estimate is too low: bursts shorter than `at_once` are not seen.
    pub(crate) do_singles_count: bool,
}

/// Estimates how often the packet after a lost one is also lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bursts {
    last: Option<PacketNumber>,
    /// How many losses in a row precede the last one.
    row: u32,
    /// How many there must be if the row is to count: see [`Self::add`].
    row_least: u32,
    losses: u32,
    /// The fraction of losses that follow others immediately.
    following: f64,
    /// The mean length of the row that a lost packet belongs to. Rows that are still growing count when they end.
    row_length: f64,
}

impl Bursts {
    /// A packet was lost. Must be called in the order of packet numbers.
    pub(crate) fn on_loss(&mut self, number: PacketNumber) {
        self.add(number, 1, 1);
    }

    /// The same in a moment in which a queue may have dropped the packet.
    pub(crate) fn on_doubtful_loss(&mut self, number: PacketNumber, doubt: Doubt) {
        self.add(number, u32::from(doubt.do_singles_count), doubt.at_once.max(2));
    }

    /// Adds a loss. It follows others if at least `least` precede it in a row, and does not if fewer than `singles` do. Between that it tells
    /// nothing.
    fn add(&mut self, number: PacketNumber, singles: u32, least: u32) {
        let is_next = self.last.is_some_and(|last| last.0 + 1 == number.0);
        if !is_next && self.last.is_some() {
            self.end_row();
        }
        self.row = if is_next { self.row.saturating_add(1) } else { 0 };
        self.row_least = if is_next { self.row_least.max(least) } else { least };
        self.last = Some(number);
        if (singles..least).contains(&self.row) {
            return;
        }
        self.losses = self.losses.saturating_add(1);
        let follows = self.row > 0;
        let weight = WEIGHT.max(1.0 / f64::from(self.losses.saturating_add(PRIOR)));
        self.following += weight * (f64::from(u8::from(follows)) - self.following);
    }

    /// Each packet of the row that has ended is one sample of the mean.
    fn end_row(&mut self) {
        if self.row_least > 1 && self.row < self.row_least {
            return;
        }
        let row = f64::from(self.row + 1);
        let weight = WEIGHT.max(1.0 / f64::from(self.losses.saturating_add(PRIOR)));
        for _ in 0..=self.row.min(ROW_MAX) {
            self.row_length += weight * (row - self.row_length);
        }
    }

    /// The mean length of the row of losses that a lost packet belongs to.
    pub(crate) fn row_length(&self) -> f64 {
        self.row_length
    }

    /// The variance of the number of lost packets relative to that of independent losses with the same mean `loss`: 1 for independent
    /// losses, `(1 + r) / (1 - r)` if neighbours correlate with coefficient r (a Gilbert channel).
    pub(crate) fn dispersion(&self, loss: f64) -> f64 {
        let correlation = ((self.following - loss) / (1.0 - loss).max(0.1)).min(CORRELATION_MAX);
        if correlation < CORRELATION_MIN {
            return 1.0;
        }
        (1.0 + correlation) / (1.0 - correlation)
    }

    /// The weight of one packet in an average of losses. It is `single` for independent losses and less for bursts, where more packets are
    /// needed for the same accuracy.
    pub(crate) fn weight(&self, single: f64, loss: f64) -> f64 {
        single / self.dispersion(loss).min(SLOWER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::{Prng, Probability};

    /// The dispersion estimated for a Gilbert channel with this mean burst length, and that measured in windows of 500 packets.
    fn learnt(loss: f64, burst: f64) -> (f64, f64) {
        let mut prng = Prng::new(7);
        let [leave, enter] = [1.0 / burst, loss / (1.0 - loss) / burst]
            .map(|chance| Probability::new(chance).expect("a share"));
        let (mut bursts, mut is_bad, mut sum, mut samples) = (Bursts::default(), false, 0.0, Vec::new());
        for window in 0..4_000 {
            let mut lost = 0;
            for index in 0..500 {
                is_bad = if is_bad { !prng.chance(leave) } else { prng.chance(enter) };
                if is_bad {
                    lost += 1;
                    bursts.on_loss(PacketNumber(window * 500 + index));
                }
            }
            sum += bursts.dispersion(loss);
            samples.push(f64::from(lost));
        }
        let mean = 500.0 * loss;
        let variance = samples.iter().map(|lost| (lost - mean) * (lost - mean)).sum::<f64>() / 4_000.0;
        (sum / 4_000.0, variance / (mean * (1.0 - loss)))
    }

    #[test]
    fn the_estimated_dispersion_matches_the_variance_of_windows() {
        for (loss, burst) in [(0.05, 1.0 / 0.95), (0.2, 1.25), (0.05, 5.0), (0.2, 5.0), (0.1, 2.0)] {
            let (told, found) = learnt(loss, burst);
            assert!((told / found - 1.0).abs() < 0.15, "loss {loss}, bursts of {burst}: {told} for {found}");
        }
    }

    #[test]
    fn pairs_are_bursts_only_where_no_queue_drops_them_and_longer_rows_always_are() {
        let doubt = |at_once| Doubt { at_once, do_singles_count: true };
        let doubtful = move |bursts: &mut Bursts, number| bursts.on_doubtful_loss(number, doubt(0));
        let learnt = |row: u64, add: &dyn Fn(&mut Bursts, PacketNumber)| {
            let mut bursts = Bursts::default();
            (0..100).flat_map(|burst| (0..row).map(move |index| 50 * burst + index)).for_each(|number| {
                add(&mut bursts, PacketNumber(number));
            });
            bursts.dispersion(0.1)
        };
        assert!(learnt(2, &Bursts::on_loss) > 2.0);
        assert_eq!(learnt(2, &doubtful), 1.0);
        assert!(learnt(12, &doubtful) > 6.0);
        let sent_at_once = |bursts: &mut Bursts, number| bursts.on_doubtful_loss(number, doubt(12));
        assert_eq!(learnt(12, &sent_at_once), 1.0);
    }

    #[test]
    fn short_rows_in_doubtful_moments_do_not_hide_bursts_if_singles_do_not_count() {
        let learnt = |do_singles_count| {
            let mut bursts = Bursts::default();
            (0..200).flat_map(|burst| (0..4).map(move |index| 50 * burst + index)).for_each(|number| {
                let number = PacketNumber(number);
                // Every second burst is in a doubtful moment.
                if (number.0 / 50).is_multiple_of(2) {
                    bursts.on_loss(number);
                } else {
                    bursts.on_doubtful_loss(number, Doubt { at_once: 20, do_singles_count });
                }
            });
            bursts.dispersion(0.1)
        };
        assert!(learnt(false) > 1.4 * learnt(true), "{} {}", learnt(false), learnt(true));
    }

    #[test]
    fn rows_are_as_long_as_bursts_even_if_more_packets_are_lost_alone() {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.row_length(), 0.0);
        for begin in (0..100).map(|burst| 100 * burst) {
            [0, 10, 20, 30]
                .into_iter()
                .chain(40..52)
                .for_each(|lost| bursts.on_loss(PacketNumber(begin + lost)));
        }
        // Of 16 lost packets, 12 belong to a row of 12.
        assert!((8.0..11.0).contains(&bursts.row_length()), "{}", bursts.row_length());
    }

    #[test]
    fn the_dispersion_is_one_without_bursts() {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.dispersion(0.0), 1.0);
        (0..100).for_each(|number| bursts.on_loss(PacketNumber(2 * number)));
        assert_eq!(bursts.dispersion(0.5), 1.0);
        (1_000..2_000).for_each(|number| bursts.on_loss(PacketNumber(number)));
        assert!((bursts.dispersion(0.05) - 19.0).abs() < 1e-9);
    }
}
