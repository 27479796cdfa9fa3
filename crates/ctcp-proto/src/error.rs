//! Errors that end a connection. A violation by the peer is a typed error with a code that is sent to it. Misuse by the caller has a small
//! enum for each call. Normal outcomes are values.

use core::fmt;

use ctcp_base::Escaped;

use crate::wire::VERSION;

/// Error codes of a CLOSE by the transport (PROTOCOL.md section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TransportErrorCode {
    /// Regular close.
    NoError,
    /// An internal error.
    Internal,
    /// A frame that cannot be parsed.
    FrameEncoding,
    /// A frame that is not allowed here.
    ProtocolViolation,
    /// More bytes than the credit allows.
    FlowControl,
    /// More streams than allowed.
    StreamLimit,
    /// A frame for a stream in an incompatible state.
    StreamState,
    /// Bytes after the end of a stream, or two different ends.
    FinalSize,
    /// Invalid parameters in the handshake.
    Parameter,
    /// A symbol beyond the window.
    SymbolWindow,
    /// A decoded symbol without valid stream frames.
    SymbolEncoding,
    /// Too many packets failed authentication, or a key was used too often.
    AeadLimit,
    /// A code that this version does not define.
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

    /// Returns the code for a number on the wire.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|index| Self::KNOWN.get(index));
        known.copied().unwrap_or(Self::Unknown(number))
    }

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::Unknown(number) => number,
            known => Self::KNOWN.iter().position(|&code| code == known).map_or(1, |index| index as u64),
        }
    }
}

/// A protocol violation by the peer: the code to send and a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The code of the CLOSE frame.
    pub code: TransportErrorCode,
    /// A description, which is sent to the peer and logged.
    pub reason: &'static str,
}

impl TransportError {
    /// Creates an error with a code and a reason.
    #[must_use]
    pub const fn new(code: TransportErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    /// A violation of the protocol that has no code of its own.
    #[must_use]
    pub const fn violation(reason: &'static str) -> Self {
        Self::new(TransportErrorCode::ProtocolViolation, reason)
    }
}

/// The contents of a CLOSE frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// True if the application closed the connection, false if the transport did.
    pub by_application: bool,
    /// The application's error code, or the number of a [`TransportErrorCode`].
    pub code: u64,
    /// A text for people, possibly empty, exactly as the peer sent it. Escape it before printing or logging it, as the [`fmt::Display`] of
    /// [`ConnectionError`] does.
    pub reason: String,
}

/// Parameters on which the two sides cannot agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// No AEAD suite in common.
    Suite,
    /// The server granted a profile that is not in this side's catalogue.
    Profile,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Suite => "the two sides have no cipher in common",
            Self::Profile => {
                "the server grants only a profile that this program does not have: \
                 start the server with another --profile, or use the program that has it (ctcp-lab peer)"
            }
        })
    }
}

/// Why a connection has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server did not complete the handshake in time. If `rejected`, a REJECT said that the server could not open the first message,
    /// most likely because it has another key (unauthenticated hint).
    HandshakeTimedOut {
        /// Whether a REJECT was received.
        rejected: bool,
    },
    /// The server did not complete the handshake in time, and a REJECT said that it has too many handshakes in progress (unauthenticated
    /// hint).
    Busy,
    /// The server refused the connection with this code and text (authenticated).
    Refused {
        /// [`Self::UNLISTED`], [`Self::FULL`] or [`Self::NEWER_VERSION`].
        code: u8,
        /// The server's text, exactly as sent. Escape it before printing or logging it, as [`fmt::Display`] does.
        reason: String,
    },
    /// The server does not support this version (unauthenticated hint).
    VersionMismatch {
        /// The newest version that the server supports, as on the wire.
        server: u32,
    },
    /// Both sides support a newer version than the one they spoke: someone on the path forged an answer.
    Downgraded,
    /// The server's answer was authentic, but its parameters are invalid.
    HandshakeFailed,
    /// The server's answer was authentic, but the two sides cannot agree on its parameters.
    NothingInCommon(Mismatch),
    /// No packet arrived from the peer for the idle timeout.
    TimedOut,
    /// The peer no longer has this connection, most likely because it was restarted (stateless reset).
    Reset,
    /// The peer violated the protocol.
    PeerFault(TransportError),
    /// The peer closed the connection.
    ClosedByPeer(CloseReason),
    /// This side closed the connection.
    ClosedLocally,
    /// The connection to the relay was lost, and no other path works.
    RelayLost,
    /// The driver of the endpoint's connections is gone: its task panicked, or its runtime was shut down. Only the runtime reports this
    /// error, never the protocol itself.
    EndpointLost,
}

/// A version as shown to people: the number after "CT", or all of it in hexadecimal.
pub(crate) struct VersionName(pub(crate) u32);

impl fmt::Display for VersionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_be_bytes() {
            [b'C', b'T', high, low] => write!(formatter, "{}", u16::from_be_bytes([high, low])),
            _ => write!(formatter, "{:#010x}", self.0),
        }
    }
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
            Self::VersionMismatch { server } => write!(
                formatter,
                "the server speaks version {} of the protocol and this side version {}: update the older one",
                VersionName(*server),
                VersionName(VERSION),
            ),
            Self::Downgraded => formatter.write_str(
                "both sides support a newer version of the protocol: someone on the path forged an answer",
            ),
            Self::HandshakeFailed => formatter.write_str("the handshake failed"),
            Self::NothingInCommon(mismatch) => mismatch.fmt(formatter),
            Self::TimedOut => formatter.write_str("the connection timed out"),
            Self::Reset => formatter
                .write_str("the peer does not know this connection any more: it was probably restarted"),
            Self::PeerFault(error) => write!(formatter, "the peer broke the protocol: {error}"),
            Self::ClosedByPeer(close) if close.reason.is_empty() && close.code == 0 => {
                formatter.write_str("closed by the peer")
            }
            Self::ClosedByPeer(close) if close.reason.is_empty() => {
                write!(formatter, "closed by the peer with code {}", close.code)
            }
            Self::ClosedByPeer(close) => write!(formatter, "closed by the peer: {}", Escaped(&close.reason)),
            Self::ClosedLocally => formatter.write_str("closed by this side"),
            Self::RelayLost => formatter.write_str("the connection to the relay was lost"),
            Self::EndpointLost => {
                formatter.write_str("the endpoint on this side is lost: its task has ended")
            }
        }
    }
}

impl ConnectionError {
    /// Refused: this client's key is not listed.
    pub const UNLISTED: u8 = 1;
    /// Refused: the server is full.
    pub const FULL: u8 = 2;
    /// Refused: both sides support a newer version.
    pub const NEWER_VERSION: u8 = 3;

    /// Whether the application of the peer closed the connection in order, with code 0.
    #[must_use]
    pub fn is_orderly_close(&self) -> bool {
        matches!(self, Self::ClosedByPeer(close) if close.by_application && close.code == 0)
    }
}

impl core::error::Error for TransportError {}
impl core::error::Error for ConnectionError {}

/// A name that this version does not know. The message lists the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(pub(crate) String);

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl core::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_peer_are_escaped() {
        let reason = "full\u{1b}[2J\nINFO all is well\u{202e}\u{9b}\u{200b} – \"it's\" über".to_owned();
        let closed = CloseReason { by_application: true, code: 1, reason: reason.clone() };
        for error in [
            ConnectionError::Refused { code: 2, reason: reason.clone() },
            ConnectionError::ClosedByPeer(closed),
        ] {
            let text = error.to_string();
            assert!(
                !text.chars().any(|one| one.is_control() || "\u{202e}\u{200b}".contains(one)),
                "{text:?}"
            );
            assert!(text.ends_with("– \"it's\" über") && text.contains("\\u{1b}[2J\\nINFO"), "{text:?}");
        }
    }

    #[test]
    fn versions_are_shown_as_small_numbers() {
        let text = |server| ConnectionError::VersionMismatch { server }.to_string();
        assert!(
            text(0x4354_0001)
                .starts_with("the server speaks version 1 of the protocol and this side version 4")
        );
        assert!(text(0x6b33_43cf).contains("version 0x6b3343cf of"));
    }
}
