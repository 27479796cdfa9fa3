//! A profile names a combination of code, redundancy and congestion control: the three independent plugs of
//! the transport, joined only here.

use core::fmt;
use core::str::FromStr;

use crate::congestion;
use crate::wire::ProfileParameter;

/// Which range of source symbols the next combination spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Systematic block code (CTCP).
    Block,
    /// Systematic block code whose combinations span a few neighbours (thesis).
    Sparse,
    /// Combinations of all symbols that the receiver has not seen (TCP/NC).
    Window,
    /// No coding: lost symbols are sent again as they were.
    Plain,
    /// No coding, and TCP's own recovery: cumulative acknowledgements, fast retransmit, one timer (RFC 5681, 6582, 6298). A baseline: at
    /// high loss it is slower than a kernel's TCP, and [`Code::Plain`] faster.
    Classic,
}

/// The redundancy factor R: packets sent for each new symbol, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

impl Ratio {
    /// 1/(1-p) of the measured loss p.
    pub const FROM_LOSS: Self = Self(0);

    /// A tenth more than is missing: the thesis's x = 10 % "to account for the coding loss rate" (section 3.3.3).
    pub const TENTH_MORE: Self = Self(1_100_000);

    /// Most packets for a symbol.
    pub const MAX: f64 = 64.0;

    /// `None` outside 1 to [`Ratio::MAX`].
    #[must_use]
    pub fn new(ratio: f64) -> Option<Self> {
        (1.0..=Self::MAX).contains(&ratio).then_some(Self((ratio * 1e6 + 0.5) as u32))
    }

    /// `None` when it follows the measured loss.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self != Self::FROM_LOSS).then(|| f64::from(self.0) / 1e6)
    }

    fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths == 0 { Some(Self::FROM_LOSS) } else { Self::new(f64::from(millionths) / 1e6) }
    }
}

/// How many combinations beyond the source symbols are sent, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redundancy {
    /// Only what the receiver is known to miss.
    Feedback,
    /// What the measured loss will probably take, sent ahead (CTCP Algorithm 3; for a window code 1/(1-p)).
    FromLoss,
    /// R packets for each new symbol (TCP/NC); under way of a block, for each that is missing (thesis).
    Fixed(Ratio),
    /// The same, and behind the last symbol what the receiver is known to lack (EOT).
    EndOfTransmission(Ratio),
    /// The same, also every hundred symbols (PB).
    PseudoBlock(Ratio),
}

/// A named combination, as on the command line (`--profile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileName {
    /// The best we have.
    #[default]
    Default,
    /// The 2013 paper.
    Ctcp,
    /// Sliding-window coding below TCP Vegas (TCP/NC, 2009) to the letter.
    TcpNc,
    /// The same with the end of transmission protected (2013).
    TcpNcEot,
    /// The same with pseudo blocks (2013).
    TcpNcPb,
    /// Sparse code and its congestion control (the thesis, 2012) to the letter.
    Sparse,
    /// The baseline: no coding, selective retransmission, Reno.
    Tcp,
}

/// What a connection uses, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name it was asked for by.
    pub name: ProfileName,
    /// Which ranges are combined.
    pub code: Code,
    /// How much is sent ahead.
    pub redundancy: Redundancy,
    /// How fast.
    pub congestion: congestion::Algorithm,
}

impl Default for Profile {
    fn default() -> Self {
        Self::named(ProfileName::Default)
    }
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        Self::named(name)
    }
}

impl Profile {
    /// The combination that a name stands for.
    #[must_use]
    pub const fn named(name: ProfileName) -> Self {
        let (code, redundancy, congestion) = match name {
            ProfileName::Default => (Code::Block, Redundancy::FromLoss, congestion::Algorithm::Default),
            ProfileName::Ctcp => (Code::Block, Redundancy::FromLoss, congestion::Algorithm::Ctcp),
            ProfileName::TcpNc => (Code::Window, Redundancy::FromLoss, congestion::Algorithm::Vegas),
            ProfileName::TcpNcEot => {
                (Code::Window, Redundancy::EndOfTransmission(Ratio::FROM_LOSS), congestion::Algorithm::Vegas)
            }
            ProfileName::TcpNcPb => {
                (Code::Window, Redundancy::PseudoBlock(Ratio::FROM_LOSS), congestion::Algorithm::Vegas)
            }
            ProfileName::Sparse => {
                (Code::Sparse, Redundancy::Fixed(Ratio::TENTH_MORE), congestion::Algorithm::Thesis)
            }
            ProfileName::Tcp => (Code::Plain, Redundancy::Feedback, congestion::Algorithm::Reno),
        };
        Self { name, code, redundancy, congestion }
    }

    /// True when every packet is acknowledged by itself, as the paper's receiver does.
    #[must_use]
    pub fn acknowledges_every_packet(&self) -> bool {
        matches!(self.name, ProfileName::Ctcp | ProfileName::Sparse) || self.is_classic()
    }

    /// True when the window is of symbols and cumulative acknowledgements of them are all that congestion control hears of: a
    /// classical TCP, with TCP/NC's coding below it or without. Vegas is defined by it, and the window code is.
    #[must_use]
    pub fn is_classic(&self) -> bool {
        matches!(self.code, Code::Window | Code::Classic)
            || matches!(self.congestion, congestion::Algorithm::Vegas)
    }

    /// True when redundancy follows the paper's Algorithm 3 and nothing else. Our own rule sends a little less ahead in
    /// the middle of a transfer, which saves goodput, and a little more at its end, which saves a round trip.
    #[must_use]
    pub fn is_to_the_letter(&self) -> bool {
        self.name == ProfileName::Ctcp
    }

    /// True when packets should leave when the pacer says and not a millisecond later: Algorithm 2 answers to the queue of a burst as to
    /// any other.
    #[must_use]
    pub fn paces_punctually(&self) -> bool {
        matches!(self.congestion, congestion::Algorithm::Ctcp | congestion::Algorithm::CtcpConstantAlpha)
    }

    /// True when packets may leave as ECN-capable, since congestion control takes a mark for congestion. What follows a paper or a
    /// classical TCP to the letter knows no marks.
    #[must_use]
    pub fn answers_to_marks(&self) -> bool {
        let answers = match self.congestion {
            congestion::Algorithm::Default
            | congestion::Algorithm::Ctcp
            | congestion::Algorithm::CtcpConstantAlpha
            | congestion::Algorithm::Reno
            | congestion::Algorithm::Cubic => true,
            congestion::Algorithm::Vegas | congestion::Algorithm::Thesis => false,
        };
        answers && !self.is_classic() && !self.is_to_the_letter()
    }

    /// True when packets older than 1.5 RTT leave the count of what is in flight before they are known to be lost.
    #[must_use]
    pub fn expires_old_packets(&self) -> bool {
        self.code == Code::Block
    }

    /// The bytes of the handshake's profile parameter (PROTOCOL.md section 3.1).
    #[must_use]
    pub(crate) fn to_parameter(self) -> ProfileParameter {
        ProfileParameter {
            profile: match self.name {
                ProfileName::Default => 0,
                ProfileName::Ctcp => 1,
                ProfileName::TcpNc => 2,
                ProfileName::TcpNcEot => 3,
                ProfileName::TcpNcPb => 4,
                ProfileName::Sparse => 5,
                ProfileName::Tcp => 6,
            },
            code: match self.code {
                Code::Block => 0,
                Code::Window => 1,
                Code::Sparse => 2,
                Code::Plain => 3,
                Code::Classic => 4,
            },
            congestion: match self.congestion {
                congestion::Algorithm::Default => 0,
                congestion::Algorithm::Ctcp => 1,
                congestion::Algorithm::Vegas => 2,
                congestion::Algorithm::Thesis => 3,
                congestion::Algorithm::Reno => 4,
                congestion::Algorithm::Cubic => 5,
                congestion::Algorithm::CtcpConstantAlpha => 6,
            },
            redundancy: match self.redundancy {
                Redundancy::Feedback => 0,
                Redundancy::FromLoss => 1,
                Redundancy::Fixed(_) => 2,
                Redundancy::EndOfTransmission(_) => 4,
                Redundancy::PseudoBlock(_) => 5,
            },
            redundancy_parameter: match self.redundancy {
                Redundancy::Feedback | Redundancy::FromLoss => 0,
                Redundancy::Fixed(ratio)
                | Redundancy::EndOfTransmission(ratio)
                | Redundancy::PseudoBlock(ratio) => ratio.0,
            },
        }
    }

    /// The profile of a parameter; `None` for what this version does not have.
    #[must_use]
    pub(crate) fn from_parameter(parameter: &ProfileParameter) -> Option<Self> {
        let ratio = || Ratio::from_millionths(parameter.redundancy_parameter);
        Some(Self {
            name: match parameter.profile {
                0 => ProfileName::Default,
                1 => ProfileName::Ctcp,
                2 => ProfileName::TcpNc,
                3 => ProfileName::TcpNcEot,
                4 => ProfileName::TcpNcPb,
                5 => ProfileName::Sparse,
                6 => ProfileName::Tcp,
                _ => return None,
            },
            code: match parameter.code {
                0 => Code::Block,
                1 => Code::Window,
                2 => Code::Sparse,
                3 => Code::Plain,
                4 => Code::Classic,
                _ => return None,
            },
            congestion: match parameter.congestion {
                0 => congestion::Algorithm::Default,
                1 => congestion::Algorithm::Ctcp,
                2 => congestion::Algorithm::Vegas,
                3 => congestion::Algorithm::Thesis,
                4 => congestion::Algorithm::Reno,
                5 => congestion::Algorithm::Cubic,
                6 => congestion::Algorithm::CtcpConstantAlpha,
                _ => return None,
            },
            redundancy: match parameter.redundancy {
                0 => Redundancy::Feedback,
                1 => Redundancy::FromLoss,
                2 => Redundancy::Fixed(ratio()?),
                4 => Redundancy::EndOfTransmission(ratio()?),
                5 => Redundancy::PseudoBlock(ratio()?),
                _ => return None,
            },
        })
    }
}

/// Gives an enum its names on the command line: `as_str`, `ALL`, `Display` and `FromStr`.
macro_rules! named {
    ($type:ty, $what:literal, $($variant:path => $name:literal),+) => {
        impl $type {
            /// All that this version has.
            pub const ALL: &'static [Self] = &[$($variant),+];

            /// The name as a person writes it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($variant => $name),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                let known = Self::ALL.iter().find(|known| known.as_str() == text);
                known.copied().ok_or(UnknownName(concat!("unknown ", $what, ": this version has", $(" ", $name),+)))
            }
        }
    };
}

named!(
    ProfileName,
    "profile",
    ProfileName::Default => "default",
    ProfileName::Ctcp => "ctcp",
    ProfileName::TcpNc => "tcp-nc",
    ProfileName::TcpNcEot => "tcp-nc-eot",
    ProfileName::TcpNcPb => "tcp-nc-pb",
    ProfileName::Sparse => "sparse",
    ProfileName::Tcp => "tcp"
);
named!(
    Code,
    "code",
    Code::Block => "block",
    Code::Sparse => "sparse",
    Code::Window => "window",
    Code::Plain => "plain",
    Code::Classic => "classic"
);
named!(
    congestion::Algorithm,
    "congestion control",
    congestion::Algorithm::Default => "default",
    congestion::Algorithm::Ctcp => "ctcp",
    congestion::Algorithm::Vegas => "vegas",
    congestion::Algorithm::Thesis => "thesis",
    congestion::Algorithm::Reno => "reno",
    congestion::Algorithm::Cubic => "cubic",
    congestion::Algorithm::CtcpConstantAlpha => "ctcp-constant-alpha"
);

impl Redundancy {
    /// The name, without a factor.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Feedback => "feedback",
            Self::FromLoss => "from-loss",
            Self::Fixed(_) => "fixed",
            Self::EndOfTransmission(_) => "end-of-transmission",
            Self::PseudoBlock(_) => "pseudo-block",
        }
    }

    /// R, if it is set.
    #[must_use]
    pub fn ratio(self) -> Option<f64> {
        match self {
            Self::Feedback | Self::FromLoss => None,
            Self::Fixed(ratio) | Self::EndOfTransmission(ratio) | Self::PseudoBlock(ratio) => ratio.value(),
        }
    }

    /// R of a code that sends so many packets for each symbol: `from_loss` where it follows the measured loss, 1 where nothing is sent ahead.
    pub(crate) fn ratio_or(self, from_loss: f64) -> f64 {
        if self == Self::Feedback { 1.0 } else { self.ratio().unwrap_or(from_loss) }
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

    /// `NAME`, or `NAME=R` for those with a factor: `fixed=1.25`.
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        const NAMES: UnknownName = UnknownName(
            "unknown redundancy: this version has feedback from-loss fixed=R end-of-transmission[=R] pseudo-block[=R], R from 1 to 64",
        );
        let (name, ratio) = match text.split_once('=') {
            Some((name, ratio)) => {
                let ratio = ratio.parse().ok().and_then(Ratio::new).ok_or(NAMES)?;
                (name, Some(ratio))
            }
            None => (text, None),
        };
        let or_measured = ratio.unwrap_or(Ratio::FROM_LOSS);
        match (name, ratio) {
            ("feedback", None) => Ok(Self::Feedback),
            ("from-loss", None) => Ok(Self::FromLoss),
            ("fixed", Some(ratio)) => Ok(Self::Fixed(ratio)),
            ("end-of-transmission", _) => Ok(Self::EndOfTransmission(or_measured)),
            ("pseudo-block", _) => Ok(Self::PseudoBlock(or_measured)),
            _ => Err(NAMES),
        }
    }
}

impl fmt::Display for Profile {
    /// The name, and behind it the parts that differ from what the name stands for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::named(self.name);
        write!(formatter, "{}", self.name)?;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName(&'static str);

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl core::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_survives_the_handshake() {
        for &name in ProfileName::ALL {
            let profile = Profile::named(name);
            assert_eq!(Profile::from_parameter(&profile.to_parameter()), Some(profile));
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        for &congestion in congestion::Algorithm::ALL {
            let profile = Profile { congestion, ..Profile::named(ProfileName::Tcp) };
            assert_eq!(Profile::from_parameter(&profile.to_parameter()), Some(profile));
        }
        let ratio = Ratio::new(1.25).expect("in range");
        for redundancy in [Redundancy::Fixed(ratio), Redundancy::PseudoBlock(Ratio::FROM_LOSS)] {
            let profile = Profile { redundancy, ..Profile::named(ProfileName::TcpNc) };
            assert_eq!(Profile::from_parameter(&profile.to_parameter()), Some(profile));
            assert_eq!(redundancy.to_string().parse(), Ok(redundancy));
        }
        let sparse = Profile::named(ProfileName::Sparse).to_parameter();
        assert_eq!((sparse.profile, sparse.code, sparse.congestion), (5, 2, 3));
        assert_eq!((sparse.redundancy, sparse.redundancy_parameter), (2, 1_100_000));
        let unknown = "brutal".parse::<ProfileName>().expect_err("no such profile");
        assert_eq!(
            unknown.to_string(),
            "unknown profile: this version has default ctcp tcp-nc tcp-nc-eot tcp-nc-pb sparse tcp"
        );
    }

    #[test]
    fn a_profile_says_what_differs_from_its_name() {
        let profile = Profile { congestion: congestion::Algorithm::Reno, ..Profile::default() };
        assert_eq!(profile.to_string(), "default congestion=reno");
    }
}
