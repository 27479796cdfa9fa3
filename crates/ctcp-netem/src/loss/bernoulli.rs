//! Independent loss: the model of the CTCP paper's Fig. 3 and of most formulas.

use ctcp_base::{Prng, Probability};

pub(crate) fn is_lost(probability: Probability, prng: &mut Prng) -> bool {
    prng.chance(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 100_000;

    #[test]
    fn the_mean_loss_is_the_configured_one() {
        for wanted in [0.01, 0.05, 0.2, 0.5] {
            let probability = Probability::new(wanted).expect("a probability");
            let mut prng = Prng::new(11);
            let lost = (0..PACKETS).filter(|_| is_lost(probability, &mut prng)).count();
            let mean = lost as f64 / PACKETS as f64;
            // Four standard deviations of the mean.
            let tolerance = 4.0 * (wanted * (1.0 - wanted) / PACKETS as f64).sqrt();
            assert!((mean - wanted).abs() < tolerance, "{mean} is not {wanted}");
        }
    }

    #[test]
    fn zero_loses_nothing_and_one_loses_everything() {
        let mut prng = Prng::new(1);
        assert!((0..1_000).all(|_| !is_lost(Probability::ZERO, &mut prng)));
        assert!((0..1_000).all(|_| is_lost(Probability::ONE, &mut prng)));
    }
}
