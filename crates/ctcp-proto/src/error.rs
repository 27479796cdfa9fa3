//! Why a connection ends. A peer's fault is a typed error with the code it is told; a caller's misuse has a
//! small enum beside each call; normal outcomes are values.

use core::fmt;

use ctcp_base::Escaped;

/// Codes of CLOSE by the transport (PROTOCOL.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TransportErrorCode {
    /// Regular end.
    NoError,
    /// Our own fault.
    Internal,
    /// A frame that cannot be parsed.
    FrameEncoding,
    /// A frame that must not be here.
    ProtocolViolation,
    /// More bytes than credited.
    FlowControl,
    /// More streams than allowed.
    StreamLimit,
    /// A frame for a stream that cannot take it.
    StreamState,
    /// Bytes behind the end of a stream, or two different ends.
    FinalSize,
    /// Bad parameters in the handshake.
    Parameter,
    /// A symbol beyond the window.
    SymbolWindow,
    /// A decoded symbol that holds no valid stream frames.
    SymbolEncoding,
    /// Too many packets that did not open.
    AeadLimit,
    /// A code this version does not know.
    Unknown(u64),
}

impl TransportErrorCode {
    const KNOWN: [Self; 12] = [
        Self::NoError,
        Self::Internal,
        Self::FrameEncoding,
        Self::ProtocolViolation,
        Self::FlowControl,
        Self::StreamLimit,
        Self::StreamState,
        Self::FinalSize,
        Self::Parameter,
        Self::SymbolWindow,
        Self::SymbolEncoding,
        Self::AeadLimit,
    ];

    /// The code of a number from the wire.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|index| Self::KNOWN.get(index));
        known.copied().unwrap_or(Self::Unknown(number))
    }

    /// Its number on the wire.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::Unknown(number) => number,
            known => Self::KNOWN.iter().position(|&code| code == known).map_or(1, |index| index as u64),
        }
    }
}

/// A peer broke the protocol: the code it is told and what we saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The code of the CLOSE frame.
    pub code: TransportErrorCode,
    /// What we saw, in words. It is sent to the peer and logged.
    pub reason: &'static str,
}

impl TransportError {
    /// An error with its code and reason.
    #[must_use]
    pub const fn new(code: TransportErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// What a CLOSE frame said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// True when the application closed, false when the transport did.
    pub by_application: bool,
    /// The application's own code, or the number of a [`TransportErrorCode`].
    pub code: u64,
    /// A text for people, possibly empty.
    pub reason: String,
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// Nobody answered the handshake in time. `rejected`: somebody did, but could not open our
    /// first message, which most likely means the wrong server key (unauthenticated hint).
    HandshakeTimedOut {
        /// A REJECT was seen.
        rejected: bool,
    },
    /// Nobody let us in before our time was over; somebody said that there are too many handshakes at once
    /// (unauthenticated hint).
    Busy,
    /// The server refused with this code and text (authenticated).
    Refused {
        /// 1: our key is not on its list; 2: it is full.
        code: u8,
        /// Its words.
        reason: String,
    },
    /// The server speaks no version of ours.
    VersionMismatch,
    /// The handshake's cryptography failed.
    HandshakeFailed,
    /// Nothing came from the peer for the idle time-out.
    TimedOut,
    /// The peer does not know this connection any more (it was restarted).
    Reset,
    /// We found the peer at fault.
    PeerFault(TransportError),
    /// The peer closed.
    ClosedByPeer(CloseReason),
    /// We closed.
    ClosedLocally,
}

impl fmt::Display for TransportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({:?})", self.reason, self.code)
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandshakeTimedOut { rejected: false } => formatter.write_str("no answer from the server"),
            Self::HandshakeTimedOut { rejected: true } => formatter
                .write_str("the server could not open the first message: its public key is probably another"),
            Self::Busy => formatter.write_str("the server is busy: too many handshakes at once"),
            Self::Refused { reason, .. } => write!(formatter, "the server refused: {}", Escaped(reason)),
            Self::VersionMismatch => formatter.write_str("the server speaks another version of the protocol"),
            Self::HandshakeFailed => formatter.write_str("the handshake failed"),
            Self::TimedOut => formatter.write_str("the connection timed out"),
            Self::Reset => formatter.write_str("the peer lost this connection (it was restarted)"),
            Self::PeerFault(error) => write!(formatter, "the peer broke the protocol: {error}"),
            Self::ClosedByPeer(close) if close.reason.is_empty() => {
                write!(formatter, "closed by the peer with code {}", close.code)
            }
            Self::ClosedByPeer(close) => write!(formatter, "closed by the peer: {}", Escaped(&close.reason)),
            Self::ClosedLocally => formatter.write_str("closed by this side"),
        }
    }
}

impl core::error::Error for TransportError {}
impl core::error::Error for ConnectionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_words_are_escaped_before_anybody_can_print_them() {
        let reason = "bye\n\x1b[2J\u{202e}WARN".to_owned();
        let close = CloseReason { by_application: true, code: 0, reason: reason.clone() };
        assert_eq!(
            ConnectionError::ClosedByPeer(close).to_string(),
            "closed by the peer: bye\\n\\u{1b}[2J\\u{202e}WARN"
        );
        assert_eq!(
            ConnectionError::Refused { code: 2, reason }.to_string(),
            "the server refused: bye\\n\\u{1b}[2J\\u{202e}WARN"
        );
    }
}
