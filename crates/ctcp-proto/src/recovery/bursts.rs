//! Whether losses come alone or several in a row.
//!
//! Radio links and full queues lose packets in bursts. As many are lost on average, but the number lost of some packets scatters
//! further around that average, and what rests on it (averages, redundancy, queues) needs to know how much further.

use crate::id::PacketNumber;

/// The weight of one loss, once there were enough.
const WEIGHT: f64 = 1.0 / 32.0;

/// How many losses that came alone are assumed in the beginning.
const PRIOR: u32 = 4;

/// Less correlation than this is bad luck.
const CORRELATION_MIN: f64 = 0.2;

/// The highest correlation believed: a mean burst of ten packets.
const CORRELATION_MAX: f64 = 0.9;

/// However much losses scatter, an average follows within some thousand packets.
const SLOWER_MAX: f64 = 8.0;

/// Learns how often the packet behind a lost one is lost too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bursts {
    last: Option<PacketNumber>,
    losses: u32,
    /// The share of losses that follow another one at once.
    following: f64,
}

impl Bursts {
    /// A packet was lost. Losses are told in the order of their numbers.
    pub(crate) fn on_loss(&mut self, number: PacketNumber) {
        self.losses = self.losses.saturating_add(1);
        let follows = self.last.is_some_and(|last| last.0 + 1 == number.0);
        let weight = WEIGHT.max(1.0 / f64::from(self.losses.saturating_add(PRIOR)));
        self.following += weight * (f64::from(u8::from(follows)) - self.following);
        self.last = Some(number);
    }

    /// By how much the variance of the number of lost packets is larger than that of independent losses with the same mean
    /// `loss`: 1 for losses that come alone, `(1 + r) / (1 - r)` where neighbours correlate by r (a Gilbert channel).
    pub(crate) fn dispersion(&self, loss: f64) -> f64 {
        let correlation = ((self.following - loss) / (1.0 - loss).max(0.1)).min(CORRELATION_MAX);
        if correlation < CORRELATION_MIN {
            return 1.0;
        }
        (1.0 + correlation) / (1.0 - correlation)
    }

    /// The weight of one packet in an average of the losses, which is `single` for losses that come alone: in bursts it takes
    /// more packets to say as much.
    pub(crate) fn weight(&self, single: f64, loss: f64) -> f64 {
        single / self.dispersion(loss).min(SLOWER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::{Prng, Probability};

    /// The dispersion learnt from packets lost by a Gilbert channel with bursts of so many, and that of windows of 500.
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
    fn what_is_learnt_from_neighbours_is_how_windows_scatter() {
        for (loss, burst) in [(0.05, 1.0 / 0.95), (0.2, 1.25), (0.05, 5.0), (0.2, 5.0), (0.1, 2.0)] {
            let (told, found) = learnt(loss, burst);
            assert!((told / found - 1.0).abs() < 0.15, "loss {loss}, bursts of {burst}: {told} for {found}");
        }
    }

    #[test]
    fn without_losses_or_with_single_ones_nothing_is_wider() {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.dispersion(0.0), 1.0);
        (0..100).for_each(|number| bursts.on_loss(PacketNumber(2 * number)));
        assert_eq!(bursts.dispersion(0.5), 1.0);
        (1_000..2_000).for_each(|number| bursts.on_loss(PacketNumber(number)));
        assert!((bursts.dispersion(0.05) - 19.0).abs() < 1e-9);
    }
}
