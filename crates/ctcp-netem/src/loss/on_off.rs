//! Periodic interference, such as a microwave oven's (CTCP paper, section 7.1). The loss depends on the clock and not
//! on the packets, so a sender that pauses sees a different share of it.

use core::time::Duration;

use ctcp_base::{Instant, Prng, Probability};

/// Lossy in the first `on_nanos` of each `period_nanos`, counted from the origin of time.
#[derive(Clone, Debug)]
pub(crate) struct OnOff {
    period_nanos: u64,
    on_nanos: u64,
    loss: Probability,
}

impl OnOff {
    pub(crate) fn new(period: Duration, on: Duration, loss: Probability) -> Self {
        Self { period_nanos: nanos(period), on_nanos: nanos(on), loss }
    }

    pub(crate) fn is_lost(&self, now: Instant, prng: &mut Prng) -> bool {
        // Draw in any case, so that the phase does not change later draws.
        let drawn = prng.chance(self.loss);
        // A period of zero has no lossy part.
        now.as_nanos().checked_rem(self.period_nanos).is_some_and(|phase| drawn && phase < self.on_nanos)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_part_of_each_period_is_lossy() {
        let oven = OnOff::new(Duration::from_millis(20), Duration::from_millis(9), Probability::ONE);
        let mut prng = Prng::new(1);
        for millis in 0..200 {
            let lost = oven.is_lost(Instant::from_millis(millis), &mut prng);
            assert_eq!(lost, millis % 20 < 9, "at {millis} ms");
        }
    }

    #[test]
    fn the_lossy_part_loses_the_configured_share() {
        let half = Probability::new(0.5).expect("a probability");
        let oven = OnOff::new(Duration::from_millis(20), Duration::from_millis(10), half);
        let mut prng = Prng::new(2);
        let lost =
            (0..40_000).filter(|&step| oven.is_lost(Instant::from_micros(step * 100), &mut prng)).count();
        assert!((9_600..10_400).contains(&lost), "{lost} of 40,000, a quarter expected");
    }

    #[test]
    fn a_period_of_zero_loses_nothing() {
        let oven = OnOff::new(Duration::ZERO, Duration::from_millis(9), Probability::ONE);
        assert!(!oven.is_lost(Instant::from_millis(3), &mut Prng::new(1)));
    }
}
