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
    /// No coding: lost symbols are sent again as they were.
    Plain,
}

/// How many combinations beyond the source symbols are sent, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redundancy {
    /// Only what the receiver is known to miss.
    Feedback,
    /// What the measured loss will probably take, sent ahead (CTCP Algorithm 3).
    FromLoss,
}

/// A named combination, as on the command line (`--profile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileName {
    /// The best we have.
    #[default]
    Default,
    /// The 2013 paper to the letter.
    Ctcp,
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

impl Profile {
    /// The combination that a name stands for.
    #[must_use]
    pub const fn named(name: ProfileName) -> Self {
        let (code, redundancy, congestion) = match name {
            ProfileName::Default => (Code::Block, Redundancy::FromLoss, congestion::Algorithm::Default),
            ProfileName::Ctcp => (Code::Block, Redundancy::FromLoss, congestion::Algorithm::Ctcp),
            ProfileName::Tcp => (Code::Plain, Redundancy::Feedback, congestion::Algorithm::Reno),
        };
        Self { name, code, redundancy, congestion }
    }

    /// True when every packet is acknowledged by itself, as the paper's receiver does.
    #[must_use]
    pub fn acknowledges_every_packet(&self) -> bool {
        self.name == ProfileName::Ctcp
    }

    /// True when redundancy follows the paper's Algorithm 3 and nothing else. Our own rule sends a little less ahead in
    /// the middle of a transfer, which saves goodput, and a little more at its end, which saves a round trip.
    #[must_use]
    pub fn is_to_the_letter(&self) -> bool {
        self.name == ProfileName::Ctcp
    }

    /// True when packets older than 1.5 RTT leave the count of what is in flight before they are known to be lost.
    #[must_use]
    pub fn expires_old_packets(&self) -> bool {
        self.code == Code::Block
    }

    /// The bytes of the handshake's profile parameter (PROTOCOL.md section 3.1).
    #[must_use]
    pub fn to_parameter(self) -> ProfileParameter {
        ProfileParameter {
            profile: match self.name {
                ProfileName::Default => 0,
                ProfileName::Ctcp => 1,
                ProfileName::Tcp => 6,
            },
            code: match self.code {
                Code::Block => 0,
                Code::Plain => 3,
            },
            congestion: match self.congestion {
                congestion::Algorithm::Default => 0,
                congestion::Algorithm::Ctcp => 1,
                congestion::Algorithm::Reno => 4,
            },
            redundancy: match self.redundancy {
                Redundancy::Feedback => 0,
                Redundancy::FromLoss => 1,
            },
            redundancy_parameter: 0,
        }
    }

    /// The profile of a parameter; `None` for what this version does not have.
    #[must_use]
    pub fn from_parameter(parameter: &ProfileParameter) -> Option<Self> {
        Some(Self {
            name: match parameter.profile {
                0 => ProfileName::Default,
                1 => ProfileName::Ctcp,
                6 => ProfileName::Tcp,
                _ => return None,
            },
            code: match parameter.code {
                0 => Code::Block,
                3 => Code::Plain,
                _ => return None,
            },
            congestion: match parameter.congestion {
                0 => congestion::Algorithm::Default,
                1 => congestion::Algorithm::Ctcp,
                4 => congestion::Algorithm::Reno,
                _ => return None,
            },
            redundancy: match parameter.redundancy {
                0 => Redundancy::Feedback,
                1 => Redundancy::FromLoss,
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

named!(ProfileName, "profile", ProfileName::Default => "default", ProfileName::Ctcp => "ctcp", ProfileName::Tcp => "tcp");
named!(Code, "code", Code::Block => "block", Code::Plain => "plain");
named!(Redundancy, "redundancy", Redundancy::Feedback => "feedback", Redundancy::FromLoss => "from-loss");
named!(
    congestion::Algorithm,
    "congestion control",
    congestion::Algorithm::Default => "default",
    congestion::Algorithm::Ctcp => "ctcp",
    congestion::Algorithm::Reno => "reno"
);

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
        let unknown = "brutal".parse::<ProfileName>().expect_err("no such profile");
        assert_eq!(unknown.to_string(), "unknown profile: this version has default ctcp tcp");
    }

    #[test]
    fn a_profile_says_what_differs_from_its_name() {
        let profile = Profile { congestion: congestion::Algorithm::Reno, ..Profile::default() };
        assert_eq!(profile.to_string(), "default congestion=reno");
    }
}
