//! Why a connection ends. A peer's fault is a typed error with the code it is told; a caller's misuse has a
//! small enum beside each call; normal outcomes are values.

use core::fmt;

use ctcp_base::Escaped;

use crate::wire::VERSION;

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
    /// A text for people, possibly empty, as it came from the peer: escape it before it reaches a terminal or log, as the
    /// [`fmt::Display`] of [`ConnectionError`] does.
    pub reason: String,
}

/// Parameters on which the two sides cannot agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// No AEAD suite in common.
    Suite,
    /// The server grants a profile that this side does not have.
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
        /// Its words, as they came: escape them before they reach a terminal or log, as [`fmt::Display`] does.
        reason: String,
    },
    /// The server speaks no version of ours (unauthenticated hint).
    VersionMismatch {
        /// The newest one that it speaks, as on the wire.
        server: u32,
    },
    /// The handshake's cryptography failed.
    HandshakeFailed,
    /// The two sides have no common parameters.
    NothingInCommon(Mismatch),
    /// Nothing came from the peer for the idle time-out.
    TimedOut,
    /// The peer does not know this connection any more: most likely it was restarted.
    Reset,
    /// We found the peer at fault.
    PeerFault(TransportError),
    /// The peer closed.
    ClosedByPeer(CloseReason),
    /// We closed.
    ClosedLocally,
    /// What drives the connections of the endpoint is gone: its task panicked, or its runtime was shut down. The protocol
    /// never says so itself, its runtime does.
    EndpointLost,
}

/// A version as people name it: the number behind "CT", or all of it in hexadecimal.
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
            Self::EndpointLost => {
                formatter.write_str("the endpoint on this side is lost: its task has ended")
            }
        }
    }
}

impl core::error::Error for TransportError {}
impl core::error::Error for ConnectionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_peer_reach_no_terminal_unescaped() {
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
    fn two_versions_are_named_as_people_count_them() {
        let text = |server| ConnectionError::VersionMismatch { server }.to_string();
        assert!(
            text(0x4354_0001)
                .starts_with("the server speaks version 1 of the protocol and this side version 3")
        );
        assert!(text(0x6b33_43cf).contains("version 0x6b3343cf of"));
    }
}
