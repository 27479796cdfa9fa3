//! What can go wrong for a caller of this crate.

use core::fmt;
use std::error::Error;
use std::io;
use std::net::SocketAddr;

use ctcp_proto::ConnectionError;

/// Why [`crate::Endpoint::connect`] gave no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    EndpointClosed,
    /// The endpoint's socket cannot send to this address: one is IPv4, the other IPv6.
    WrongFamily {
        /// Of the socket.
        local: SocketAddr,
        /// Of the server.
        remote: SocketAddr,
    },
    /// It could not even be tried.
    NotStarted(ctcp_proto::ConnectError),
    /// The handshake did not come to an end: no answer, wrong key, refused.
    Failed(ConnectionError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndpointClosed => formatter.write_str("the endpoint is closed"),
            Self::WrongFamily { local, remote } => {
                write!(formatter, "a socket at {local} cannot send to {remote}")
            }
            Self::NotStarted(error) => error.fmt(formatter),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

impl Error for ConnectError {}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::EndpointClosed => io::ErrorKind::NotConnected,
            ConnectError::NotStarted(_) | ConnectError::WrongFamily { .. } => io::ErrorKind::InvalidInput,
            ConnectError::Failed(ConnectionError::HandshakeTimedOut { .. } | ConnectionError::TimedOut) => {
                io::ErrorKind::TimedOut
            }
            ConnectError::Failed(_) => io::ErrorKind::ConnectionRefused,
        };
        Self::new(kind, error)
    }
}

/// The peer gave up sending on a stream: the inner error of an [`io::Error`] of kind `ConnectionReset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReset(
    /// The code the peer gave.
    pub u64,
);

impl fmt::Display for StreamReset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the peer reset the stream with code {}", self.0)
    }
}

impl Error for StreamReset {}

/// The peer reads no more of a stream: the inner error of an [`io::Error`] of kind `BrokenPipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStopped(
    /// The code the peer gave.
    pub u64,
);

impl fmt::Display for StreamStopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the peer stopped the stream with code {}", self.0)
    }
}

impl Error for StreamStopped {}

/// Why a stream does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer gave up sending.
    Reset(StreamReset),
    /// The peer reads no more.
    Stopped(StreamStopped),
    /// We finished, reset or stopped this half before.
    Closed,
    /// The connection is over.
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
