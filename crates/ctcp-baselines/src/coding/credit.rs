//! Counts the combinations that are due: NUM of TCP/NC (section III-C), and R_int of a node that re-encodes.
//!
//! A source earns R combinations with each new packet, a relay R_int with each arrival. Each sends a combination as
//! soon as a whole one is earned. An R slightly above 1/(1-p) compensates for the loss of a share p of the packets.
//!
//! Requirement: N2, N5

/// The maximum number of combinations that one packet earns. More would flood the link.
pub const RATIO_MAX: f64 = 64.0;

/// The maximum credit. It limits the burst of a caller that could not send for a while.
const CREDIT_MAX: f64 = 4096.0;

/// Combinations that are earned but not yet sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CombinationCredit {
    ratio: f64,
    earned: f64,
}

impl CombinationCredit {
    /// Creates a credit in which each packet earns `ratio` combinations. The ratio is clamped to 0..=[`RATIO_MAX`].
    #[must_use]
    pub fn new(ratio: f64) -> Self {
        let mut credit = Self { ratio: 0.0, earned: 0.0 };
        credit.set_ratio(ratio);
        credit
    }

    /// Returns the ratio that exactly compensates for the loss, 1/(1-p). With exactly this ratio the backlog has no
    /// drift, so a slightly larger one is needed for it to shrink.
    #[must_use]
    pub fn ratio_for(loss: f64) -> f64 {
        if loss < 1.0 { (1.0 / (1.0 - loss)).clamp(1.0, RATIO_MAX) } else { RATIO_MAX }
    }

    /// Changes what packets earn from now on, for example as the measured loss changes.
    pub fn set_ratio(&mut self, ratio: f64) {
        self.ratio = if ratio >= 0.0 { ratio.min(RATIO_MAX) } else { 0.0 };
    }

    /// Counts a new packet (at a source) or an arrival (at a relay).
    pub fn on_packet(&mut self) {
        self.earned = (self.earned + self.ratio).min(CREDIT_MAX);
    }

    /// Adds combinations that are due in addition to those earned by packets.
    pub fn add(&mut self, combinations: u64) {
        self.earned = (self.earned + combinations as f64).min(CREDIT_MAX);
    }

    /// Returns whether another combination is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.earned >= 1.0
    }

    /// Returns whether another combination is due, and counts it as sent if so.
    pub fn take(&mut self) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.earned -= 1.0;
        }
        is_due
    }

    /// Returns how many combinations one packet earns.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(credit: &mut CombinationCredit) -> u32 {
        core::iter::from_fn(|| credit.take().then_some(())).count() as u32
    }

    // Requirement: N2, N5
    #[test]
    fn whole_combinations_are_due_as_they_are_earned_and_fractions_are_kept() {
        let mut credit = CombinationCredit::new(1.25);
        let due = [(); 8].map(|()| {
            credit.on_packet();
            taken(&mut credit)
        });
        assert_eq!(due, [1, 1, 1, 2, 1, 1, 1, 2]);
        credit.set_ratio(0.5);
        let due = [(); 4].map(|()| {
            credit.on_packet();
            taken(&mut credit)
        });
        assert_eq!(due, [0, 1, 0, 1]);
    }

    #[test]
    fn invalid_ratios_are_clamped() {
        for (ratio, expected) in [(f64::NAN, 0.0), (-1.0, 0.0), (f64::INFINITY, RATIO_MAX), (3.0, 3.0)] {
            assert_eq!(CombinationCredit::new(ratio).ratio(), expected);
        }
        let mut credit = CombinationCredit::new(RATIO_MAX);
        (0..1000).for_each(|_| credit.on_packet());
        assert_eq!(taken(&mut credit), 4096);
    }

    #[test]
    fn the_ratio_compensates_for_the_loss() {
        for (loss, ratio) in [(0.0, 1.0), (0.2, 1.25), (0.5, 2.0), (1.0, RATIO_MAX), (f64::NAN, RATIO_MAX)] {
            assert_eq!(CombinationCredit::ratio_for(loss), ratio);
        }
    }
}
