//! Burst loss: the two-state Markov chain of Gilbert (1960) and Elliott (1963), with one transition per packet.
//!
//! ```text
//!               to_bad
//!          +-------------->+
//!   [ good ]               [ bad ]
//!          +<--------------+
//!               to_good
//!  lost with              lost with
//!  loss_good              loss_bad
//! ```

use ctcp_base::{Prng, Probability};

/// The chain's parameters. The present state decides about a packet, then the chain moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability of a transition from good to bad, per packet.
    pub to_bad: Probability,
    /// The probability of a transition from bad to good, per packet.
    pub to_good: Probability,
    /// The loss in the good state.
    pub loss_good: Probability,
    /// The loss in the bad state.
    pub loss_bad: Probability,
}

impl GilbertElliott {
    /// Returns the chain that loses nothing in the good state and everything in the bad state, with the mean loss
    /// `mean` and bursts of `burst` packets on average.
    ///
    /// Returns `None` if no such chain exists: for a burst shorter than one packet, or for so much loss that the good
    /// state would last less than a packet (`mean` above `burst / (burst + 1)`).
    #[must_use]
    pub fn from_mean_and_burst(mean: Probability, burst: f64) -> Option<Self> {
        if !burst.is_finite() || burst < 1.0 || mean >= Probability::ONE {
            return None;
        }
        let to_good = 1.0 / burst;
        let to_bad = to_good * mean.as_f64() / (1.0 - mean.as_f64());
        Some(Self {
            to_bad: Probability::new(to_bad)?,
            to_good: Probability::new(to_good)?,
            loss_good: Probability::ZERO,
            loss_bad: Probability::ONE,
        })
    }

    /// Returns the long-run mean loss.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let bad = self.share_of_bad();
        bad * self.loss_bad.as_f64() + (1.0 - bad) * self.loss_good.as_f64()
    }

    /// Returns the share of packets that meet the bad state, or zero for a chain that never moves.
    fn share_of_bad(&self) -> f64 {
        let moves = self.to_bad.as_f64() + self.to_good.as_f64();
        if moves > 0.0 { self.to_bad.as_f64() / moves } else { 0.0 }
    }
}

/// The chain with its state. The first state is drawn from the long-run shares, so that short runs have the same mean
/// as long ones.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    parameters: GilbertElliott,
    is_bad: Option<bool>,
}

impl Chain {
    pub(crate) fn new(parameters: GilbertElliott) -> Self {
        Self { parameters, is_bad: None }
    }

    pub(crate) fn is_lost(&mut self, prng: &mut Prng) -> bool {
        let parameters = &self.parameters;
        let is_bad = *self.is_bad.get_or_insert_with(|| prng.unit() < parameters.share_of_bad());
        let (loss, leave) = if is_bad {
            (parameters.loss_bad, parameters.to_good)
        } else {
            (parameters.loss_good, parameters.to_bad)
        };
        let lost = prng.chance(loss);
        self.is_bad = Some(is_bad != prng.chance(leave));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 400_000;

    fn probability(value: f64) -> Probability {
        Probability::new(value).expect("a probability")
    }

    /// Returns the mean loss and the mean length of runs of losses.
    fn measure(parameters: GilbertElliott, seed: u64) -> (f64, f64) {
        let mut prng = Prng::new(seed);
        let mut chain = Chain::new(parameters);
        let (mut lost, mut bursts, mut before) = (0_u64, 0_u64, false);
        for _ in 0..PACKETS {
            let now = chain.is_lost(&mut prng);
            lost += u64::from(now);
            bursts += u64::from(now && !before);
            before = now;
        }
        (lost as f64 / PACKETS as f64, lost as f64 / bursts as f64)
    }

    #[test]
    fn mean_loss_and_burst_length_are_the_configured_ones() {
        for (mean, burst) in [(0.01, 2.0), (0.05, 4.0), (0.2, 8.0), (0.3, 1.5)] {
            let chain = GilbertElliott::from_mean_and_burst(probability(mean), burst).expect("possible");
            assert!((chain.mean() - mean).abs() < 1e-12);
            let (measured_mean, measured_burst) = measure(chain, 5);
            assert!((measured_mean / mean - 1.0).abs() < 0.06, "mean {measured_mean} is not {mean}");
            assert!((measured_burst / burst - 1.0).abs() < 0.05, "burst {measured_burst} is not {burst}");
        }
    }

    #[test]
    fn losses_in_both_states_add_up_to_the_stated_mean() {
        let chain = GilbertElliott {
            to_bad: probability(0.1),
            to_good: probability(0.3),
            loss_good: probability(0.02),
            loss_bad: probability(0.5),
        };
        let (measured, _) = measure(chain, 6);
        assert!((measured / chain.mean() - 1.0).abs() < 0.03, "{measured} is not {}", chain.mean());
    }

    #[test]
    fn impossible_bursts_are_refused() {
        for (mean, burst) in [(0.1, 0.5), (1.0, 4.0), (0.6, 1.0), (0.1, f64::NAN), (0.1, f64::INFINITY)] {
            assert_eq!(GilbertElliott::from_mean_and_burst(probability(mean), burst), None, "{mean} {burst}");
        }
    }

    #[test]
    fn short_runs_have_the_mean_of_long_ones() {
        let parameters = GilbertElliott::from_mean_and_burst(probability(0.2), 20.0).expect("possible");
        let firsts = (0..20_000).filter(|&seed| Chain::new(parameters).is_lost(&mut Prng::new(seed))).count();
        assert!((3_750..4_250).contains(&firsts), "{firsts} of 20,000 first packets were lost");
    }
}
