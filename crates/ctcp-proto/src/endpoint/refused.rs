//! Refused clients, for monitoring.

use core::fmt;

use super::Endpoint;
use crate::crypto::PublicKey;
use crate::error::VersionName;
use crate::wire::VERSION;

/// A refused client and the reason. An attacker can cause any number of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedClient {
    /// The key is not listed.
    Unlisted(PublicKey),
    /// There is no room for another connection.
    NoRoom {
        /// The client's key.
        key: PublicKey,
        /// A sentence that says what is used up.
        reason: &'static str,
    },
    /// The client uses this version of the protocol.
    OtherVersion(u32),
}

impl RefusedClient {
    /// The client's key, if it sent one. It may be a replay of another client's message.
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
    /// Returns the client that was refused last, once.
    pub fn poll_refused(&mut self) -> Option<RefusedClient> {
        self.refused.take()
    }
}

/// Whether a version is likely another version of this protocol: "CT" and a small number. One in some 16 million random datagrams looks
/// like that.
pub(super) fn is_version_of_ours(version: u32) -> bool {
    matches!(version.to_be_bytes(), [b'C', b'T', 0, 1..=u8::MAX])
}
