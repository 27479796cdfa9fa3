//! Who takes part in a comparison: a profile, and its name in the legends.

use ctcp_proto::Profile;
use ctcp_proto::congestion::Algorithm;

use super::shared_link::tcp;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The paper.
    Ctcp,
    /// The best we have.
    Default,
    /// "Standard TCP": selective acknowledgements, Reno's congestion control.
    Reno,
    /// What the paper's machines ran unless told otherwise.
    Cubic,
}

impl Contender {
    /// Those of ours, of which the figures claim something.
    pub const OURS: [Self; 2] = [Self::Ctcp, Self::Default];
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ctcp, Self::Default, Self::Reno, Self::Cubic];

    pub(super) fn profile(self) -> Profile {
        match self {
            Self::Ctcp => Profile::CTCP,
            Self::Default => Profile::DEFAULT,
            Self::Reno => tcp(Algorithm::RENO),
            Self::Cubic => tcp(Algorithm::CUBIC),
        }
    }

    /// In legends, here and on the testbed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ctcp => "CTCP",
            Self::Default => "profile default",
            Self::Reno => "TCP Reno",
            Self::Cubic => "TCP Cubic",
        }
    }
}
