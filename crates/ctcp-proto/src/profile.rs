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

impl ProfileName {
    /// Every name this version has.
    pub const ALL: [Self; 3] = [Self::Default, Self::Ctcp, Self::Tcp];

    /// The name as a person writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Ctcp => "ctcp",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for ProfileName {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or(UnknownProfile)
    }
}

/// A name that is no profile of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProfile;

impl fmt::Display for UnknownProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("unknown profile: this version has default, ctcp and tcp")
    }
}

impl core::error::Error for UnknownProfile {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_survives_the_handshake() {
        for name in ProfileName::ALL {
            let profile = Profile::named(name);
            assert_eq!(Profile::from_parameter(&profile.to_parameter()), Some(profile));
            assert_eq!(name.as_str().parse(), Ok(name));
        }
        assert_eq!("brutal".parse::<ProfileName>(), Err(UnknownProfile));
    }
}
