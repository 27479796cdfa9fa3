//! How many combinations are due: the counter NUM of TCP/NC (section III-C), and R_int of a node that re-encodes.
//!
//! A source earns R combinations with each new packet, a relay R_int with each arrival, and each sends whole ones as soon as it
//! has earned them. R a little above 1/(1-p) makes up for the share p of the packets that gets lost.
//!
//! Requirement: N2, N5

/// Most combinations that one packet earns; more would be no redundancy but a flood.
pub const RATIO_MAX: f64 = 64.0;

/// Most combinations saved up. A caller that cannot send for a while shall not burst without end.
const CREDIT_MAX: f64 = 4096.0;

/// Combinations earned and not yet sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CombinationCredit {
    ratio: f64,
    earned: f64,
}

impl CombinationCredit {
    /// Each packet earns `ratio` combinations (0 to [`RATIO_MAX`], what is beyond counts as the bound).
    #[must_use]
    pub fn new(ratio: f64) -> Self {
        let mut credit = Self { ratio: 0.0, earned: 0.0 };
        credit.set_ratio(ratio);
        credit
    }

    /// The ratio that sends as much more as is lost: 1/(1-p). With exactly that much the backlog has no drift, so that a little more
    /// is needed for it to shrink.
    #[must_use]
    pub fn ratio_for(loss: f64) -> f64 {
        if loss < 1.0 { (1.0 / (1.0 - loss)).clamp(1.0, RATIO_MAX) } else { RATIO_MAX }
    }

    /// Changes what the packets from now on earn, as the measured loss changes.
    pub fn set_ratio(&mut self, ratio: f64) {
        self.ratio = if ratio >= 0.0 { ratio.min(RATIO_MAX) } else { 0.0 };
    }

    /// A packet was new (source) or arrived (relay).
    pub fn on_packet(&mut self) {
        self.earned = (self.earned + self.ratio).min(CREDIT_MAX);
    }

    /// So many combinations are due beside those that packets earn.
    pub fn add(&mut self, combinations: u64) {
        self.earned = (self.earned + combinations as f64).min(CREDIT_MAX);
    }

    /// Whether one more combination is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.earned >= 1.0
    }

    /// Whether one more combination is due; if so it counts as sent.
    pub fn take(&mut self) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.earned -= 1.0;
        }
        is_due
    }

    /// What one packet earns.
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
    fn whole_combinations_are_due_as_they_are_earned_and_the_rest_is_kept() {
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
    fn nonsense_earns_nothing_or_the_bound() {
        for (ratio, expected) in [(f64::NAN, 0.0), (-1.0, 0.0), (f64::INFINITY, RATIO_MAX), (3.0, 3.0)] {
            assert_eq!(CombinationCredit::new(ratio).ratio(), expected);
        }
        let mut credit = CombinationCredit::new(RATIO_MAX);
        (0..1000).for_each(|_| credit.on_packet());
        assert_eq!(taken(&mut credit), 4096);
    }

    #[test]
    fn the_ratio_makes_up_for_the_loss() {
        for (loss, ratio) in [(0.0, 1.0), (0.2, 1.25), (0.5, 2.0), (1.0, RATIO_MAX), (f64::NAN, RATIO_MAX)] {
            assert_eq!(CombinationCredit::ratio_for(loss), ratio);
        }
    }
}
