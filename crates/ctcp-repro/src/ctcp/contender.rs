//! The transports that the figures compare: their profiles, and their names in legends.

use ctcp_proto::Profile;
use ctcp_proto::congestion::Algorithm;

use super::shared_link::tcp;

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// The paper's CTCP.
    Ctcp,
    /// Profile `default`.
    Default,
    /// "Standard TCP": selective acknowledgements, Reno's congestion control.
    Reno,
    /// The default of the paper's machines.
    Cubic,
}

impl Contender {
    /// The coded transports, about which the figures make claims.
    pub const OURS: [Self; 2] = [Self::Ctcp, Self::Default];
    /// All transports.
    pub const ALL: [Self; 4] = [Self::Ctcp, Self::Default, Self::Reno, Self::Cubic];

    pub(super) fn profile(self) -> Profile {
        match self {
            Self::Ctcp => Profile::CTCP,
            Self::Default => Profile::DEFAULT,
            Self::Reno => tcp(Algorithm::RENO),
            Self::Cubic => tcp(Algorithm::CUBIC),
        }
    }

    /// Returns the name in legends, here and on the testbed.
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
