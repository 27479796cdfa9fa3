//! A profile: the parts of the transport that go together. Each part is a value of its own, and a combination that makes no sense is an error.

use core::fmt;

use crate::code::{Code, WindowOf};
use crate::congestion::Algorithm;
use crate::redundancy::Redundancy;

/// What a profile is asked for by.
#[derive(Clone, Copy, Debug)]
pub struct ProfileName {
    number: u8,
    name: &'static str,
}

impl ProfileName {
    /// The best we have.
    pub const DEFAULT: Self = Self::new(0, "default");

    /// The 2013 paper.
    pub const CTCP: Self = Self::new(1, "ctcp");

    /// The baseline: no coding.
    pub const TCP: Self = Self::new(6, "tcp");

    /// A name with its number on the wire (PROTOCOL.md section 3.1).
    #[must_use]
    pub const fn new(number: u8, name: &'static str) -> Self {
        Self { number, name }
    }

    /// The name as a person writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// The number on the wire.
    pub(crate) const fn number(self) -> u8 {
        self.number
    }
}

impl PartialEq for ProfileName {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for ProfileName {}

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// Every second packet, and at once whatever changes what is missing.
    Delayed,
    /// Every packet, as the papers' receivers do.
    EveryPacket,
}

/// How the loss average `p` is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRule {
    /// CTCP's Algorithm 1 exactly as printed.
    Printed,
    /// The same, steadied over more packets.
    Steadied,
}

/// What becomes of packets that expire: older than 1.5 RTT, though their fate is unknown (CTCP section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryRule {
    /// They no longer count for the code, which sends repair instead, and still count in the congestion window.
    Repair,
    /// They leave the congestion window as well: a new packet may leave in their place.
    Free,
}

/// The rules of a profile that no option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When the receiver acknowledges.
    pub acks: AckRule,
    /// How the loss average is kept.
    pub loss: LossRule,
    /// What becomes of expired packets.
    pub expiry: ExpiryRule,
    /// Packets may leave as ECN-capable, if the congestion control answers to marks.
    pub marks: bool,
}

impl Rules {
    /// Those of profiles for general use.
    pub const GENERAL: Self =
        Self { acks: AckRule::Delayed, loss: LossRule::Steadied, expiry: ExpiryRule::Repair, marks: true };
}

/// What a connection uses, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name it was asked for by. In the handshake it stands for the rules, which have no numbers of their own.
    pub name: ProfileName,
    /// Which ranges are combined.
    pub code: Code,
    /// How much is sent ahead.
    pub redundancy: Redundancy,
    /// How fast.
    pub congestion: Algorithm,
    /// Everything else.
    pub rules: Rules,
}

impl Default for Profile {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parts of a profile that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// The code cannot follow the rule of redundancy.
    Redundancy(Code, Redundancy),
    /// The congestion control works on a window of symbols, and the code has none.
    Congestion(Code, Algorithm),
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redundancy(code, redundancy) => {
                write!(formatter, "code {code} does not work with redundancy {redundancy}; it takes")?;
                code.redundancies().iter().try_for_each(|name| write!(formatter, " {name}"))
            }
            Self::Congestion(code, algorithm) => write!(
                formatter,
                "congestion control {algorithm} needs a code whose window is of symbols, and that of {code} is of packets"
            ),
        }
    }
}

impl core::error::Error for Misfit {}

impl Profile {
    /// The best we have.
    pub const DEFAULT: Self = Self {
        name: ProfileName::DEFAULT,
        code: Code::BLOCK,
        redundancy: Redundancy::FROM_LOSS,
        congestion: Algorithm::DEFAULT,
        rules: Rules::GENERAL,
    };

    /// The 2013 paper.
    pub const CTCP: Self = Self {
        name: ProfileName::CTCP,
        code: Code::BLOCK,
        redundancy: Redundancy::ALGORITHM_3,
        congestion: Algorithm::CTCP,
        rules: Rules {
            acks: AckRule::EveryPacket,
            loss: LossRule::Printed,
            expiry: ExpiryRule::Free,
            marks: false,
        },
    };

    /// The baseline: no coding, selective retransmission, Reno.
    pub const TCP: Self = Self {
        name: ProfileName::TCP,
        code: Code::PLAIN,
        redundancy: Redundancy::FEEDBACK,
        congestion: Algorithm::RENO,
        rules: Rules::GENERAL,
    };

    /// Whether the parts fit together.
    ///
    /// # Errors
    /// The first two that do not.
    pub fn check(&self) -> Result<(), Misfit> {
        if !self.code.takes(&self.redundancy) {
            return Err(Misfit::Redundancy(self.code, self.redundancy));
        }
        if self.congestion.needs_symbols() && self.code.window() != WindowOf::Symbols {
            return Err(Misfit::Congestion(self.code, self.congestion));
        }
        Ok(())
    }

    /// The receiver acknowledges every packet: by rule, or because acknowledgements are the clock of the sender's window.
    pub(crate) fn acknowledges_every_packet(&self) -> bool {
        self.rules.acks == AckRule::EveryPacket || self.counts_symbols()
    }

    /// The window is of symbols, and what becomes of symbols is all that congestion control hears of.
    pub(crate) fn counts_symbols(&self) -> bool {
        self.code.window() == WindowOf::Symbols
    }

    /// Packets may leave as ECN-capable, since congestion control takes a mark for congestion.
    pub(crate) fn answers_to_marks(&self) -> bool {
        self.rules.marks && self.congestion.answers_to_marks() && !self.counts_symbols()
    }
}

impl fmt::Display for Profile {
    /// The name, and after it the parts that differ from the profile of that name for general use.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.name)?;
        let general = [Self::DEFAULT, Self::CTCP, Self::TCP];
        let Some(named) = general.into_iter().find(|profile| profile.name == self.name) else {
            return Ok(());
        };
        if self.code != named.code {
            write!(formatter, " code={}", self.code)?;
        }
        if self.congestion != named.congestion {
            write!(formatter, " congestion={}", self.congestion)?;
        }
        if self.redundancy != named.redundancy {
            write!(formatter, " redundancy={}", self.redundancy)?;
        }
        Ok(())
    }
}

/// A name that this version does not have; it says which there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(pub(crate) String);

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl core::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redundancy::Ratio;

    #[test]
    fn a_profile_says_what_differs_from_its_name() {
        let profile = Profile { congestion: Algorithm::RENO, ..Profile::default() };
        assert_eq!(profile.to_string(), "default congestion=reno");
    }

    #[test]
    fn parts_that_do_not_fit_together_are_named() {
        for profile in [Profile::DEFAULT, Profile::CTCP, Profile::TCP] {
            assert_eq!(profile.check(), Ok(()), "{profile}");
        }
        let ratio = Ratio::new(1.5).expect("in range");
        let plain = Profile { redundancy: Redundancy::fixed(ratio), ..Profile::TCP };
        let misfit = plain.check().expect_err("plain sends nothing ahead");
        assert_eq!(
            misfit.to_string(),
            "code plain does not work with redundancy fixed=1.5; it takes feedback"
        );
        assert_eq!(Profile { redundancy: Redundancy::fixed(ratio), ..Profile::DEFAULT }.check(), Ok(()));
    }
}
