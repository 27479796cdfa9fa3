//! The interface between proxies and transport: connections that open, accept and lose streams, and
//! carry messages.
//!
//! The proxies use these traits and not [`ctcp`] itself, so that every code path can be tested with pipes in memory,
//! where the test decides when a connection is lost.

use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::request::stream_code;
use crate::splice::SpliceEnd;

/// A bidirectional stream of a coded connection. Dropping it before its end resets it.
pub trait CodedStream: SpliceEnd + Send + 'static {
    /// Resets both directions with a code of [`stream_code`].
    fn reset(&mut self, code: u64);

    /// Asks for low latency for what is written from now on, or no longer.
    fn set_low_latency(&mut self, _is_wanted: bool) {}

    /// Waits until the peer has received everything that was written, including the end.
    fn finished(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// A connection to one peer that carries streams. Clones are the same connection.
pub trait CodedConnection: Clone + Send + Sync + 'static {
    /// The type of its streams.
    type Stream: CodedStream;

    /// Opens a stream; waits while the peer's limit is reached.
    fn open(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Accepts the next stream that the peer opened.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Waits until messages can be sent. Streams can be used before, if the connection was made with a ticket. Waits forever if the
    /// handshake fails.
    fn established(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Queues a message that is worthless after `deadline` from now. It may be lost.
    ///
    /// # Errors
    /// See [`ctcp::MessageError`].
    fn send_message(&self, data: &[u8], deadline: Duration) -> Result<(), ctcp::MessageError>;

    /// Returns the peer's next message.
    fn receive_message(&self) -> impl Future<Output = io::Result<Vec<u8>>> + Send;

    /// The longest message that the peer takes; `None` if it takes none.
    fn message_size_max(&self) -> Option<usize>;

    /// Makes the connection a hop that carries datagrams of other connections.
    ///
    /// # Errors
    /// See [`ctcp::RelayError`].
    fn carry(&self, _repair: ctcp::HopRepair) -> Result<SocketAddr, ctcp::RelayError> {
        Err(ctcp::MessageError::Unsupported.into())
    }

    /// Waits until the connection is closed and returns the reason.
    fn closed(&self) -> impl Future<Output = String> + Send;

    /// Closes the connection with a text for the peer.
    fn close(&self, reason: &str);

    /// The peer's current or last known address.
    fn remote(&self) -> String;

    /// The connection's statistics; the final ones once it is closed.
    fn stats(&self) -> ctcp::ConnectionStats {
        ctcp::ConnectionStats::default()
    }

    /// The state of the path, as far as this side knows it.
    fn health(&self) -> PathHealth;

    /// The open paths.
    fn paths(&self) -> Vec<PathSummary> {
        Vec::new()
    }

    /// Identifies the peer; the same for all connections of one peer.
    fn peer(&self) -> String;
}

/// What one side of a connection knows about its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathHealth {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The share of this side's packets that is lost, 0 to 1.
    pub loss: f64,
    /// Packets of this side that are in flight and not acknowledged yet.
    pub in_flight: u64,
    /// Datagrams sent so far.
    pub sent: u64,
    /// Datagrams received so far.
    pub received: u64,
}

/// One of the open paths of a connection, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSummary {
    /// The local address, if it is known.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether it can be used.
    pub state: PathState,
    /// The smoothed round-trip time, if anything was measured.
    pub rtt: Option<Duration>,
    /// Bytes of UDP payload received.
    pub received: u64,
    /// Bytes of UDP payload sent.
    pub sent: u64,
}

/// Whether a path can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The peer has not answered on it yet.
    Opening,
    /// It carries data whenever there is some for it.
    Open,
    /// It waits for another path to fail.
    Spare,
    /// Nothing answers any more, or it is about to be closed.
    Avoided,
}

impl From<&ctcp::PathStats> for PathSummary {
    fn from(path: &ctcp::PathStats) -> Self {
        let state = match (path.is_validated, path.is_avoided) {
            (_, true) => PathState::Avoided,
            (true, false) if path.is_spare => PathState::Spare,
            (true, false) => PathState::Open,
            (false, false) => PathState::Opening,
        };
        Self {
            local: path.local,
            remote: path.remote,
            state,
            rtt: path.is_validated.then_some(path.rtt.smoothed),
            received: path.bytes_received,
            sent: path.bytes_sent,
        }
    }
}

/// Returns the code with which the peer reset a stream, if the error is such a reset.
#[must_use]
pub fn reset_code(error: &io::Error) -> Option<u64> {
    error.get_ref()?.downcast_ref::<ctcp::StreamReset>().map(|reset| reset.0)
}

/// Returns true if the peer left regularly: it needs no more of the stream, or closed the whole connection without an
/// error.
pub(crate) fn has_left(error: &io::Error) -> bool {
    let closed = error.get_ref().and_then(|error| error.downcast_ref());
    let is_closed = matches!(
        closed,
        Some(ctcp::ConnectionError::ClosedByPeer(ctcp::CloseReason { by_application: true, code: 0, .. }))
    );
    is_closed || reset_code(error) == Some(stream_code::ENOUGH)
}

impl SpliceEnd for ctcp::Stream {
    const KEEPS: bool = true;

    fn abort(&mut self) {
        CodedStream::reset(self, stream_code::ABORTED);
    }

    fn leave(&mut self) {
        CodedStream::reset(self, stream_code::ENOUGH);
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match core::pin::pin!(self.stopped()).poll(context) {
            Poll::Ready(Some(_)) => Poll::Ready(()),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl CodedStream for ctcp::Stream {
    fn reset(&mut self, code: u64) {
        Self::reset(self, code);
        self.stop(code);
    }

    fn set_low_latency(&mut self, is_wanted: bool) {
        Self::set_low_latency(self, is_wanted);
    }

    async fn finished(&mut self) -> io::Result<()> {
        Self::finished(self).await.map_err(io::Error::from)
    }
}

impl CodedConnection for ctcp::Connection {
    type Stream = ctcp::Stream;

    async fn open(&self) -> io::Result<ctcp::Stream> {
        Self::open(self).await.map_err(lost)
    }

    async fn accept(&self) -> io::Result<ctcp::Stream> {
        Self::accept(self).await.map_err(lost)
    }

    async fn established(&self) {
        if self.connected().await.is_err() {
            core::future::pending::<()>().await;
        }
    }

    fn send_message(&self, data: &[u8], deadline: Duration) -> Result<(), ctcp::MessageError> {
        Self::send_message(self, data, deadline)
    }

    async fn receive_message(&self) -> io::Result<Vec<u8>> {
        Self::receive_message(self).await.map_err(lost)
    }

    fn message_size_max(&self) -> Option<usize> {
        Self::message_size_max(self)
    }

    fn carry(&self, repair: ctcp::HopRepair) -> Result<SocketAddr, ctcp::RelayError> {
        Self::carry(self, repair)
    }

    async fn closed(&self) -> String {
        Self::closed(self).await.to_string()
    }

    fn close(&self, reason: &str) {
        Self::close(self, 0, reason);
    }

    fn remote(&self) -> String {
        self.remote_address().to_string()
    }

    fn stats(&self) -> ctcp::ConnectionStats {
        Self::stats(self)
    }

    fn health(&self) -> PathHealth {
        let stats = Self::stats(self);
        PathHealth {
            rtt: stats.rtt.smoothed,
            // Before the first loss the average is only an initial guess.
            loss: if stats.packets_lost == 0 { 0.0 } else { stats.loss },
            in_flight: stats.in_flight,
            sent: stats.datagrams_sent,
            received: stats.datagrams_received,
        }
    }

    fn paths(&self) -> Vec<PathSummary> {
        Self::paths(self).iter().map(PathSummary::from).collect()
    }

    fn peer(&self) -> String {
        self.peer_key().to_string()
    }
}

fn lost(error: ctcp::ConnectionError) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}
