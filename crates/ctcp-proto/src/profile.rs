//! Profiles: combinations of parts of the transport. Each part is a value of its own, and parts that do not fit together are an error.

use core::fmt;

use crate::code::Code;
use crate::code::redundancy::Redundancy;
use crate::congestion::{Algorithm, WindowOf};

/// The name and number of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileName {
    number: u8,
    name: &'static str,
}

impl ProfileName {
    /// The recommended profile.
    pub const DEFAULT: Self = Self::new(0, "default");

    /// The CTCP paper of 2013.
    pub const CTCP: Self = Self::new(1, "ctcp");

    /// The baseline: no coding.
    pub const TCP: Self = Self::new(6, "tcp");

    /// Sliding-window code for interactive traffic.
    pub const LOW_LATENCY: Self = Self::new(7, "low-latency");

    /// Creates a name with its number on the wire (PROTOCOL.md section 3.1).
    #[must_use]
    pub const fn new(number: u8, name: &'static str) -> Self {
        Self { number, name }
    }

    /// The name in configuration and on the command line.
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

/// When a receiver acknowledges packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// Every second packet, and at once if the set of missing packets changes.
    Delayed,
    /// The same, but a sender of bulk data asks for fewer (PROTOCOL.md section 4.1).
    Requested,
    /// Every packet, like the papers' receivers.
    EveryPacket,
}

/// How the loss average `p` is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRule {
    /// CTCP's Algorithm 1 exactly as printed.
    Printed,
    /// The same, averaged over more packets when losses come in bursts.
    Steadied,
}

/// What happens to expired packets: older than 1.5 RTT, but neither acknowledged nor lost (CTCP section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryRule {
    /// The code no longer counts them and sends repair instead; the congestion window still counts them.
    Repair,
    /// They leave the congestion window as well, so that new packets may be sent in their place.
    Free,
}

/// The rules of a profile that cannot be changed by options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When the receiver acknowledges.
    pub acks: AckRule,
    /// How the loss average is kept.
    pub loss: LossRule,
    /// What happens to expired packets.
    pub expiry: ExpiryRule,
    /// Whether packets may be sent as ECN-capable, if the congestion controller responds to marks.
    pub marks: bool,
    /// Whether small writes go in a context of their own, in a sliding window, if the peer takes one.
    pub interactive: bool,
}

impl Rules {
    /// The rules of profiles for general use.
    pub const GENERAL: Self = Self {
        acks: AckRule::Delayed,
        loss: LossRule::Steadied,
        expiry: ExpiryRule::Repair,
        marks: true,
        interactive: false,
    };
}

/// The parts that a connection uses in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name. In the handshake it implies the rules, which have no numbers of their own.
    pub name: ProfileName,
    /// The coding scheme.
    pub code: Code,
    /// How much repair is sent ahead of feedback.
    pub redundancy: Redundancy,
    /// The congestion controller.
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
    /// The code does not support the repair rule.
    Redundancy(Code, Redundancy),
    /// The congestion controller does not work with what the code's window counts.
    Congestion(Code, Algorithm),
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redundancy(code, redundancy) => {
                write!(formatter, "code {code} does not work with redundancy {redundancy}; it takes")?;
                code.redundancies().iter().try_for_each(|name| write!(formatter, " {name}"))
            }
            Self::Congestion(code, algorithm) => {
                let (needed, found) = match code.window() {
                    WindowOf::Packets => ("symbols", "packets"),
                    WindowOf::Symbols => ("packets", "symbols"),
                };
                write!(
                    formatter,
                    "congestion control {algorithm} needs a code whose window counts {needed}; that of code {code} counts {found}"
                )
            }
        }
    }
}

impl core::error::Error for Misfit {}

impl Profile {
    /// The recommended profile.
    pub const DEFAULT: Self = Self {
        name: ProfileName::DEFAULT,
        code: Code::BLOCK,
        redundancy: Redundancy::FROM_LOSS,
        congestion: Algorithm::DEFAULT,
        rules: Rules { acks: AckRule::Requested, interactive: true, ..Rules::GENERAL },
    };

    /// The CTCP paper of 2013.
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
            interactive: false,
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

    /// For streams of which each byte should arrive as early as possible: calls, games, shells. It repairs ahead, and so sends up to
    /// 1.35/(1-p) packets per symbol.
    pub const LOW_LATENCY: Self = Self {
        name: ProfileName::LOW_LATENCY,
        code: Code::SLIDING,
        redundancy: Redundancy::FROM_LOSS,
        congestion: Algorithm::DEFAULT,
        rules: Rules::GENERAL,
    };

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// Returns the first two parts that do not fit together.
    pub fn check(&self) -> Result<(), Misfit> {
        if !self.code.takes(&self.redundancy) {
            return Err(Misfit::Redundancy(self.code, self.redundancy));
        }
        if !self.congestion.works_with(self.code.window()) {
            return Err(Misfit::Congestion(self.code, self.congestion));
        }
        Ok(())
    }

    /// Whether the receiver acknowledges every packet: by rule, or because the sender's window is clocked by acknowledgements.
    pub(crate) fn acknowledges_every_packet(&self) -> bool {
        self.rules.acks == AckRule::EveryPacket || self.counts_symbols()
    }

    /// Whether the window counts symbols, so that congestion control is notified of symbols only.
    pub(crate) fn counts_symbols(&self) -> bool {
        self.code.window() == WindowOf::Symbols
    }

    /// Whether packets may be sent as ECN-capable, since the congestion controller treats marks as congestion.
    pub(crate) fn answers_to_marks(&self) -> bool {
        self.rules.marks && self.congestion.answers_to_marks() && !self.counts_symbols()
    }
}

impl fmt::Display for Profile {
    /// The name, followed by the parts that differ from the profile of that name for general use; all parts if there is none.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.name)?;
        let general = [Self::DEFAULT, Self::CTCP, Self::TCP, Self::LOW_LATENCY];
        let named = general.into_iter().find(|profile| profile.name == self.name);
        if named.is_none_or(|named| self.code != named.code) {
            write!(formatter, " code={}", self.code)?;
        }
        if named.is_none_or(|named| self.congestion != named.congestion) {
            write!(formatter, " congestion={}", self.congestion)?;
        }
        if named.is_none_or(|named| self.redundancy != named.redundancy) {
            write!(formatter, " redundancy={}", self.redundancy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::redundancy::Ratio;

    #[test]
    fn a_profile_displays_how_it_differs_from_its_name() {
        let profile = Profile { congestion: Algorithm::RENO, ..Profile::default() };
        assert_eq!(profile.to_string(), "default congestion=reno");
    }

    #[test]
    fn parts_that_do_not_fit_together_are_named() {
        for profile in [Profile::DEFAULT, Profile::CTCP, Profile::TCP, Profile::LOW_LATENCY] {
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
