//! Independent loss that changes with time according to a table: a fading channel or a moving node (TCP/NC, Fig. 8).

use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Instant, Prng, Probability};

/// The table, indexed by time.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    since: Instant,
    step_nanos: u64,
    losses: Arc<[Probability]>,
}

impl Steps {
    pub(crate) fn new(since: Instant, step: Duration, losses: Arc<[Probability]>) -> Self {
        Self { since, step_nanos: u64::try_from(step.as_nanos()).unwrap_or(u64::MAX), losses }
    }

    pub(crate) fn is_lost(&self, now: Instant, prng: &mut Prng) -> bool {
        let passed = now.as_nanos().saturating_sub(self.since.as_nanos());
        // With a length of zero, the first step lasts forever.
        let step = passed.checked_div(self.step_nanos).unwrap_or_default();
        // An empty table loses nothing. Draw in any case, so that later draws do not change.
        let place = step.checked_rem(self.losses.len() as u64).unwrap_or_default();
        let loss = usize::try_from(place).ok().and_then(|place| self.losses.get(place));
        prng.chance(loss.copied().unwrap_or(Probability::ZERO))
    }
}

/// Returns sin(2 pi `turn`) for a `turn` from 0 to 1, with an error below 1e-11. It uses only +, - and *, which give
/// the same results on all machines, unlike a platform's `sin`.
pub(crate) fn sine_of_turn(turn: f64) -> f64 {
    // Fold to a quarter turn on both sides of zero: sin(pi - x) = sin(x).
    let folded = if turn < 0.25 {
        turn
    } else if turn < 0.75 {
        0.5 - turn
    } else {
        turn - 1.0
    };
    let angle = folded * core::f64::consts::TAU;
    let square = angle * angle;
    // Taylor series up to the 15th power, from its end: x (1 - x^2/(2 3) (1 - x^2/(4 5) ( .. ))).
    let mut series = 1.0;
    for power in [14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0] {
        series = 1.0 - square / (power * (power + 1.0)) * series;
    }
    angle * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LossModel;

    #[test]
    fn the_sine_agrees_with_the_platform_function() {
        for step in 0..=10_000 {
            let turn = f64::from(step) / 10_000.0;
            let error = sine_of_turn(turn) - (turn * core::f64::consts::TAU).sin();
            assert!(error.abs() < 1e-11, "{error} at {turn}");
        }
    }

    #[test]
    fn each_step_has_its_loss_and_the_table_repeats() {
        let losses = [Probability::ZERO, Probability::ONE, Probability::ZERO].into();
        let steps = Steps::new(Instant::from_secs(1_000), Duration::from_secs(1), losses);
        let mut prng = Prng::new(1);
        for (millis, is_lost) in [(0, false), (999_999, false), (1_000_999, false), (1_001_000, true)] {
            assert_eq!(steps.is_lost(Instant::from_millis(millis), &mut prng), is_lost, "at {millis} ms");
        }
        for (second, is_lost) in [(1_001, true), (1_002, false), (1_003, false), (1_004, true)] {
            assert_eq!(steps.is_lost(Instant::from_secs(second), &mut prng), is_lost, "at {second} s");
        }
    }

    #[test]
    fn a_sinusoid_has_its_mean_and_its_extremes_and_stays_a_probability() {
        let period = Duration::from_secs(160);
        let model = LossModel::sinusoid(Instant::ZERO, 0.08, 0.064, period).expect("probabilities");
        let LossModel::Steps { losses, .. } = model else { panic!("a table") };
        assert_eq!(losses.len(), 160);
        let mean = losses.iter().map(|loss| loss.as_f64()).sum::<f64>() / 160.0;
        assert!((mean - 0.08).abs() < 1e-12, "{mean}");
        assert!((losses[40].as_f64() - 0.144).abs() < 1e-11 && (losses[120].as_f64() - 0.016).abs() < 1e-11);
        assert_eq!(LossModel::sinusoid(Instant::ZERO, 0.5, 0.6, period), None);
        assert_eq!(LossModel::sinusoid(Instant::ZERO, 0.5, 0.1, Duration::from_millis(2_500)), None);
        assert_eq!(LossModel::sinusoid(Instant::ZERO, 0.5, 0.1, Duration::ZERO), None);
    }

    #[test]
    fn an_empty_table_and_a_step_of_length_zero_are_valid() {
        let mut prng = Prng::new(1);
        assert!(
            !Steps::new(Instant::ZERO, Duration::from_secs(1), [].into())
                .is_lost(Instant::from_secs(9), &mut prng)
        );
        let for_ever =
            Steps::new(Instant::ZERO, Duration::ZERO, [Probability::ONE, Probability::ZERO].into());
        assert!(for_ever.is_lost(Instant::from_secs(9), &mut prng));
    }
}
