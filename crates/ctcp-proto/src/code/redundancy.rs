//! How many combinations are sent beyond the source symbols, and when: a repair rule and, for some rules, a factor R.

mod ahead;

use core::fmt;
use core::str::FromStr;

pub use ahead::whole_packets;

use crate::error::UnknownName;

/// The redundancy factor R: packets sent for each new symbol, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

impl Ratio {
    /// Follows the measured loss p: 1/(1-p).
    pub const FROM_LOSS: Self = Self(0);

    /// A tenth more than is missing: the thesis's x = 10 % "to account for the coding loss rate" (section 3.3.3).
    pub const TENTH_MORE: Self = Self(1_100_000);

    /// Maximum number of packets per symbol.
    pub const MAX: f64 = 64.0;

    /// Returns `None` if `ratio` is not between 1 and [`Ratio::MAX`].
    #[must_use]
    pub fn new(ratio: f64) -> Option<Self> {
        (1.0..=Self::MAX).contains(&ratio).then_some(Self((ratio * 1e6 + 0.5) as u32))
    }

    /// The factor, or `None` if it follows the measured loss.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self != Self::FROM_LOSS).then(|| f64::from(self.0) / 1e6)
    }

    pub(crate) fn millionths(self) -> u32 {
        self.0
    }

    pub(crate) fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths == 0 { Some(Self::FROM_LOSS) } else { Self::new(f64::from(millionths) / 1e6) }
    }
}

/// The state of a block whose symbols were all sent and that has as many packets in flight as it lacks.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Packets of the block that are neither acknowledged nor lost, and may add to what the receiver has.
    pub in_flight: u32,
    /// Degrees of freedom that the receiver lacks, not counting packets in flight.
    pub missing: u32,
    /// The loss average `p`, in `[0, 1]`.
    pub loss: f64,
    /// The variance of the number of losses relative to independent losses, for which it is 1.
    pub dispersion: f64,
    /// R, if the rule has one that is set.
    pub ratio: Option<f64>,
    /// There is nothing else left to send.
    pub is_tail: bool,
}

/// Whether a rule takes a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesRatio {
    /// No factor.
    Never,
    /// Either with a factor, or with 1/(1-p) of the measured loss.
    Optional,
    /// A factor is required.
    Always,
}

/// A repair rule. To add one, define a constant of this type and list it in a [`Catalogue`](crate::Catalogue).
#[derive(Debug)]
pub struct RepairRule {
    /// The number on the wire (PROTOCOL.md section 3.1).
    pub number: u8,
    /// The name on the command line.
    pub name: &'static str,
    /// Whether it takes a factor.
    pub takes_ratio: TakesRatio,
    /// For the code `block`: whether another packet should be sent ahead of feedback for a block that lacks something. Other codes use only
    /// the factor.
    pub is_short: fn(&Need) -> bool,
    /// For the code `block`: how many congestion windows a block spans.
    pub windows_in_block: f64,
    /// Names of codes that support it, in addition to codes that list it themselves.
    pub codes: &'static [&'static str],
}

/// A repair rule and its factor.
#[derive(Clone, Copy)]
pub struct Redundancy {
    rule: &'static RepairRule,
    ratio: Ratio,
}

impl Redundancy {
    /// Sends only what the receiver is known to miss.
    pub const FEEDBACK: Self = Self::following(&FEEDBACK);

    /// Sends ahead what the measured loss will probably take: a variant of CTCP's Algorithm 3. It sends a little less ahead in the middle
    /// of a transfer, which saves goodput, and a little more at its end, which saves a round trip. For a window code, 1/(1-p).
    pub const FROM_LOSS: Self = Self::following(&FROM_LOSS);

    /// CTCP's Algorithm 3 exactly as printed.
    pub const ALGORITHM_3: Self = Self::following(&ALGORITHM_3);

    /// Sends R packets for each missing degree of freedom.
    #[must_use]
    pub const fn fixed(ratio: Ratio) -> Self {
        Self::with_ratio(&FIXED, ratio)
    }

    /// A rule without a factor, or with one that follows the measured loss.
    ///
    /// # Panics
    /// Panics if the rule requires a factor.
    #[must_use]
    pub const fn following(rule: &'static RepairRule) -> Self {
        assert!(!matches!(rule.takes_ratio, TakesRatio::Always), "this rule requires a factor");
        Self { rule, ratio: Ratio::FROM_LOSS }
    }

    /// A rule with a factor.
    ///
    /// # Panics
    /// Panics if the rule does not take a factor.
    #[must_use]
    pub const fn with_ratio(rule: &'static RepairRule, ratio: Ratio) -> Self {
        assert!(!matches!(rule.takes_ratio, TakesRatio::Never), "this rule does not take a factor");
        Self { rule, ratio }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &'static RepairRule {
        self.rule
    }

    /// The name of the rule, without the factor.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.rule.name
    }

    /// R, if it is set.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.ratio.value()
    }

    /// R of a code that sends this many packets per symbol: `from_loss` if it follows the measured loss, 1 if nothing is sent ahead.
    #[must_use]
    pub fn ratio_or(&self, from_loss: f64) -> f64 {
        if *self == Self::FEEDBACK { 1.0 } else { self.ratio().unwrap_or(from_loss) }
    }

    /// Whether this is the rule of [`Self::fixed`].
    pub(crate) fn is_fixed(&self) -> bool {
        self.rule.number == FIXED.number
    }

    /// Returns the rule with this number on the wire, with its factor in millionths.
    pub(crate) fn from_numbers(rules: &[&'static RepairRule], number: u8, millionths: u32) -> Option<Self> {
        let rule = rules.iter().find(|rule| rule.number == number)?;
        let ratio = match rule.takes_ratio {
            TakesRatio::Never => Ratio::FROM_LOSS,
            TakesRatio::Optional => Ratio::from_millionths(millionths)?,
            TakesRatio::Always => {
                Ratio::from_millionths(millionths).filter(|ratio| ratio.value().is_some())?
            }
        };
        Some(Self { rule, ratio })
    }

    /// The numbers on the wire.
    pub(crate) fn to_numbers(self) -> (u8, u32) {
        (self.rule.number, self.ratio.millionths())
    }

    /// Parses `NAME`, or `NAME=R` for a rule with a factor: `fixed=1.25`.
    pub(crate) fn parse(rules: &[&'static RepairRule], text: &str) -> Result<Self, UnknownName> {
        let (name, ratio) = match text.split_once('=') {
            Some((name, ratio)) => (name, Some(ratio)),
            None => (text, None),
        };
        let rule = rules.iter().copied().find(|rule| rule.name == name);
        let parsed = rule.and_then(|rule| match (rule.takes_ratio, ratio) {
            (TakesRatio::Never | TakesRatio::Optional, None) => Some(Self::following(rule)),
            (TakesRatio::Optional | TakesRatio::Always, Some(ratio)) => {
                Some(Self::with_ratio(rule, Ratio::new(ratio.parse().ok()?)?))
            }
            _ => None,
        });
        parsed.ok_or_else(|| {
            let known = rules.iter().map(|rule| match rule.takes_ratio {
                TakesRatio::Never => rule.name.to_owned(),
                TakesRatio::Optional => format!("{}[=R]", rule.name),
                TakesRatio::Always => format!("{}=R", rule.name),
            });
            let known = known.collect::<Vec<_>>().join(" ");
            UnknownName(format!("unknown redundancy: this version has {known}, R from 1 to {}", Ratio::MAX))
        })
    }
}

impl PartialEq for Redundancy {
    fn eq(&self, other: &Self) -> bool {
        (self.rule.number, self.ratio) == (other.rule.number, other.ratio)
    }
}

impl Eq for Redundancy {}

impl fmt::Debug for Redundancy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Redundancy({self})")
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())?;
        self.ratio().map_or(Ok(()), |ratio| write!(formatter, "={ratio}"))
    }
}

impl FromStr for Redundancy {
    type Err = UnknownName;

    /// Parses one of the rules for general use.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::parse(&RULES, text)
    }
}

/// The rules for general use.
pub(crate) const RULES: [&RepairRule; 4] = [&FEEDBACK, &FROM_LOSS, &ALGORITHM_3, &FIXED];

static FEEDBACK: RepairRule = RepairRule {
    number: 0,
    name: "feedback",
    takes_ratio: TakesRatio::Never,
    is_short: |_| false,
    windows_in_block: 1.0,
    codes: &[],
};

static FROM_LOSS: RepairRule = RepairRule {
    number: 1,
    name: "from-loss",
    takes_ratio: TakesRatio::Never,
    is_short: ahead::is_short_with_margin,
    windows_in_block: 1.0,
    codes: &[],
};

static FIXED: RepairRule = RepairRule {
    number: 2,
    name: "fixed",
    takes_ratio: TakesRatio::Always,
    is_short: ahead::is_short_of_ratio,
    windows_in_block: 1.0,
    codes: &[],
};

static ALGORITHM_3: RepairRule = RepairRule {
    number: 6,
    name: "algorithm-3",
    takes_ratio: TakesRatio::Never,
    is_short: ahead::is_short_on_average,
    windows_in_block: 2.0,
    codes: &[],
};
