//! Which clients were refused, for those who watch a server.

use core::fmt;

use super::Endpoint;
use crate::crypto::PublicKey;
use crate::error::VersionName;
use crate::wire::VERSION;

/// A client that was refused, and why. Strangers decide how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedClient {
    /// The key is not listed.
    Unlisted(PublicKey),
    /// There is no room for another connection.
    NoRoom {
        /// Of whom.
        key: PublicKey,
        /// What is used up, in a sentence.
        reason: &'static str,
    },
    /// It speaks this version of the protocol.
    OtherVersion(u32),
}

impl RefusedClient {
    /// Its key, as far as it showed one. It may be a replay of another's.
    #[must_use]
    pub fn key(&self) -> Option<PublicKey> {
        match self {
            Self::Unlisted(key) | Self::NoRoom { key, .. } => Some(*key),
            Self::OtherVersion(_) => None,
        }
    }
}

impl fmt::Display for RefusedClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted(_) => formatter.write_str("its public key is not listed"),
            Self::NoRoom { reason, .. } => formatter.write_str(reason),
            Self::OtherVersion(version) => write!(
                formatter,
                "it speaks version {} of the protocol and this server version {}: update the older one",
                VersionName(*version),
                VersionName(VERSION)
            ),
        }
    }
}

impl Endpoint {
    /// The client that was refused last, once.
    pub fn poll_refused(&mut self) -> Option<RefusedClient> {
        self.refused.take()
    }
}

/// Whether a version that is not ours is likely one of this protocol: "CT" and a small number. One in some 16 million
/// datagrams of noise looks like that.
pub(super) fn is_version_of_ours(version: u32) -> bool {
    matches!(version.to_be_bytes(), [b'C', b'T', 0, 1..=u8::MAX])
}
