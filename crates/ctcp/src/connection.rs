//! A handle of one connection.

use std::net::SocketAddr;

use ctcp_proto::ConnectionError;

use crate::Stream;
use crate::proto::{ConnectionStats, PublicKey};

/// A connection to one authenticated peer. Cheap to clone; the clones are the same connection.
///
/// When the last handle of it and of its streams is dropped, it closes with code 0, and what has not reached
/// the peer is lost: wait for [`crate::SendStream::finished`] first.
#[derive(Clone, Debug)]
pub struct Connection(());

#[expect(clippy::unused_async, reason = "in the making")]
impl Connection {
    /// A new stream, at once unless the peer's limit of open streams is reached; then it waits. The peer
    /// learns of it with its first bytes. Dropping the future opens nothing.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn open(&self) -> Result<Stream, ConnectionError> {
        unimplemented!()
    }

    /// The next stream that the peer opened. Dropping the future loses none.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn accept(&self) -> Result<Stream, ConnectionError> {
        unimplemented!()
    }

    /// Ends the connection at once, with a code and a text for the peer. What has not arrived is lost.
    pub fn close(&self, _code: u64, _reason: &str) {
        unimplemented!()
    }

    /// Waits until the connection is over and says why.
    pub async fn closed(&self) -> ConnectionError {
        unimplemented!()
    }

    /// True when the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        unimplemented!()
    }

    /// Measurements and counts.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        unimplemented!()
    }

    /// The public key by which the peer proved itself.
    #[must_use]
    pub fn peer_key(&self) -> PublicKey {
        unimplemented!()
    }

    /// The peer's address now; it changes when the peer roams.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        unimplemented!()
    }
}
