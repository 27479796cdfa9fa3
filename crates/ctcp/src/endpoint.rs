//! One UDP socket and all connections over it.

use std::io;
use std::net::SocketAddr;

use crate::proto::{EndpointStats, PublicKey};
use crate::{ClientConfig, ConnectError, Connection, ServerConfig};

/// One UDP socket and all connections over it. Cheap to clone; the clones are the same endpoint.
///
/// It lives on the tokio runtime on which it was made. When all handles of it, of its connections and of their
/// streams are dropped, it says goodbye to the peers and ends.
#[derive(Clone, Debug)]
pub struct Endpoint(());

#[expect(clippy::unused_async, reason = "in the making")]
impl Endpoint {
    /// An endpoint that only connects.
    ///
    /// # Errors
    /// When the socket cannot be bound, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn client(_config: ClientConfig) -> io::Result<Self> {
        unimplemented!()
    }

    /// An endpoint that accepts, and may connect as well.
    ///
    /// # Errors
    /// When the socket cannot be bound, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn server(_config: ServerConfig) -> io::Result<Self> {
        unimplemented!()
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        unimplemented!()
    }

    /// Connects to the server that holds the private half of `server_key`. Dropping the future gives up.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(
        &self,
        _remote: SocketAddr,
        _server_key: PublicKey,
    ) -> Result<Connection, ConnectError> {
        unimplemented!()
    }

    /// The next client that proved its key and passed the policy; `None` once the endpoint is closed, or when
    /// it is no server.
    pub async fn accept(&self) -> Option<Connection> {
        unimplemented!()
    }

    /// Closes all connections with a code and a text for the peer, accepts no more, and waits until the peers
    /// were told.
    pub async fn close(&self, _code: u64, _reason: &str) {
        unimplemented!()
    }

    /// Moves to a new local socket, bound to `address`. Connections go on from there: peers validate the new
    /// address and answer to it.
    ///
    /// # Errors
    /// When the socket cannot be bound; the old one stays in use.
    pub fn rebind(&self, _address: SocketAddr) -> io::Result<()> {
        unimplemented!()
    }

    /// Counts of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        unimplemented!()
    }
}
