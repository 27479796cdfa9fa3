//! The error types of this crate.

use core::fmt;
use std::error::Error;
use std::io;
use std::net::SocketAddr;

use ctcp_proto::ConnectionError;

use crate::state::Fault;

/// Why [`crate::Endpoint::connect`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    EndpointClosed,
    /// The endpoint's socket cannot send to this address: one is IPv4, the other IPv6.
    WrongFamily {
        /// The address of the socket.
        local: SocketAddr,
        /// The address of the server.
        remote: SocketAddr,
    },
    /// The address stands for a connection to a relay that does not exist any more.
    NoSuchHop,
    /// The endpoint is lost, and all its connections have failed.
    EndpointLost(EndpointLost),
    /// A setting is out of range. The text names the setting and its range.
    InvalidConfig(&'static str),
    /// The endpoint has the maximum number of connections.
    TooManyConnections,
    /// The endpoint's connections use or have reserved all of its memory.
    OutOfMemory,
    /// The handshake failed: no answer, wrong key, or refused.
    Failed(ConnectionError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndpointClosed => formatter.write_str("the endpoint is closed"),
            Self::WrongFamily { local, remote } => {
                write!(formatter, "a socket at {local} cannot send to {remote}")
            }
            Self::NoSuchHop => formatter.write_str("the connection to the relay does not exist any more"),
            Self::EndpointLost(error) => error.fmt(formatter),
            Self::InvalidConfig(what) => write!(formatter, "invalid setting: {what}"),
            Self::TooManyConnections => {
                formatter.write_str("the endpoint has as many connections as it may have")
            }
            Self::OutOfMemory => formatter.write_str("the endpoint's connections take all of its memory"),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::EndpointLost(error) => Some(error),
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ctcp_proto::ConnectError> for ConnectError {
    fn from(error: ctcp_proto::ConnectError) -> Self {
        match error {
            ctcp_proto::ConnectError::TooMany => Self::TooManyConnections,
            ctcp_proto::ConnectError::InvalidConfig(what) => Self::InvalidConfig(what),
            ctcp_proto::ConnectError::Memory => Self::OutOfMemory,
            _ => Self::InvalidConfig("this setting is not supported"),
        }
    }
}

/// Why an endpoint is lost: its task panicked, which is a bug in ctcp, or its runtime was shut down. Its connections end with
/// [`ConnectionError::EndpointLost`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointLost(pub(crate) Fault);

impl EndpointLost {
    /// Returns true if the task panicked, which is a bug.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Fault::Panic(_))
    }
}

impl fmt::Display for EndpointLost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Panic(message) => write!(
                formatter,
                "the task of the endpoint panicked, which is a bug in ctcp; please report it: {message}"
            ),
            Fault::Shutdown => formatter.write_str("the runtime of the endpoint was shut down"),
        }
    }
}

impl Error for EndpointLost {}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::EndpointClosed | ConnectError::NoSuchHop | ConnectError::EndpointLost(_) => {
                io::ErrorKind::NotConnected
            }
            ConnectError::InvalidConfig(_) | ConnectError::WrongFamily { .. } => io::ErrorKind::InvalidInput,
            ConnectError::TooManyConnections | ConnectError::OutOfMemory => io::ErrorKind::QuotaExceeded,
            ConnectError::Failed(ConnectionError::HandshakeTimedOut { .. } | ConnectionError::TimedOut) => {
                io::ErrorKind::TimedOut
            }
            ConnectError::Failed(_) => io::ErrorKind::ConnectionRefused,
        };
        Self::new(kind, error)
    }
}

/// The peer reset a stream that it was sending: the inner error of an [`io::Error`] of kind `ConnectionReset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReset(
    /// The code from the peer.
    pub u64,
);

impl fmt::Display for StreamReset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the peer reset the stream with code {}", self.0)
    }
}

impl Error for StreamReset {}

/// The peer stopped reading a stream: the inner error of an [`io::Error`] of kind `BrokenPipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStopped(
    /// The code from the peer.
    pub u64,
);

impl fmt::Display for StreamStopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the peer stopped the stream with code {}", self.0)
    }
}

impl Error for StreamStopped {}

/// Why a stream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reset the stream.
    Reset(StreamReset),
    /// The peer stopped reading.
    Stopped(StreamStopped),
    /// This half was finished, reset or stopped locally before.
    Closed,
    /// The connection is closed.
    Connection(ConnectionError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(error) => error.fmt(formatter),
            Self::Stopped(error) => error.fmt(formatter),
            Self::Closed => formatter.write_str("this half of the stream was closed before"),
            Self::Connection(error) => error.fmt(formatter),
        }
    }
}

impl Error for StreamError {}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Reset(reset) => Self::new(io::ErrorKind::ConnectionReset, reset),
            StreamError::Stopped(stopped) => Self::new(io::ErrorKind::BrokenPipe, stopped),
            StreamError::Closed => Self::new(io::ErrorKind::NotConnected, StreamError::Closed),
            StreamError::Connection(lost) => Self::new(io::ErrorKind::ConnectionReset, lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_carry_the_kind_and_the_typed_cause() {
        let reset = io::Error::from(StreamError::Reset(StreamReset(7)));
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(reset.get_ref().and_then(|inner| inner.downcast_ref()), Some(&StreamReset(7)));

        let stopped = io::Error::from(StreamError::Stopped(StreamStopped(9)));
        assert_eq!(stopped.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(stopped.get_ref().and_then(|inner| inner.downcast_ref()), Some(&StreamStopped(9)));

        let lost = io::Error::from(StreamError::Connection(ConnectionError::TimedOut));
        assert_eq!(lost.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(lost.get_ref().and_then(|inner| inner.downcast_ref()), Some(&ConnectionError::TimedOut));
    }
}
