//! The wire format (PROTOCOL.md sections 2 to 5): parsing and serialisation without state or policy.
//!
//! ```text
//!  datagram ─ peek ─┬─ LongPacket, VersionNegotiation          handshake, in the clear
//!                   └─ ShortHeader │ sealed payload
//!                                       └─ frames ─┬─ control, ACK
//!                                                  └─ SOURCE, CODED, .. ── symbol ── stream frames
//! ```
//!
//! Invariants: parsing never panics and never allocates more than a named limit, for any input. A value that was parsed, or built within
//! its limits, is written as bytes that parse as the same value.

mod datagram;
mod fragment;
mod frame;
mod header;
mod packet_number;
mod parameters;
mod pretty;
mod symbol;
mod varint;

use core::fmt;

pub use ctcp_coding::MissingInterval;

pub use datagram::{
    DatagramBuilder, NewPacket, SHORT_OVERHEAD_MAX, SealablePacket, combination_overhead,
    symbol_size_for_datagram,
};
pub use fragment::{Fragment, FragmentBuilder, Fragments, MESSAGE_SIZE_MAX, fragments_in_symbol};
pub use frame::combination::COMBINATION_LENGTH_MAX;
pub use frame::path_ack::{ACK_BITMAP_BYTES_MAX, ACK_RANGES_MAX, AckRanges, EcnCounts, PathAck};
pub use frame::report::{DecoderReport, REPORT_INTERVALS_MAX};
pub use frame::{
    AckFrequency, CLOSE_REASON_MAX, Combination, Frame, Frames, NewTicket, SKIPPABLE_FRAME_MIN, frames,
};
pub use header::{
    DATAGRAM_SIZE_MIN, FIRST_PACKET_TAG_LENGTH, LongHeader, LongPacket, NOISE_MESSAGE_MAX, PART_LENGTH, Peek,
    RejectReason, ShortHeader, TAG_LENGTH, TOKEN_MAX, VERSION, VersionNegotiation, is_long_header, peek,
};
pub use packet_number::TruncatedNumber;
pub(crate) use parameters::is_reachable;
pub use parameters::{
    ADDRESSES_MAX, AEAD_SUITES_MAX, BLOCK_SIZE_MAX, BLOCKS_MAX, DATAGRAM_SIZE_MAX, HybridParameter,
    MAX_ACK_DELAY_MAX, PARAMETERS_MAX, PATH_IDS_MAX, ParameterError, Parameters, ProfileParameter,
    REFUSAL_REASON_MAX, Refusal, STREAMS_MAX, SYMBOL_SIZE_RANGE, SYMBOL_WINDOW_RANGE, ServerAnswer,
    VERSIONS_MAX, is_reserved,
};
pub use symbol::{StreamFrame, StreamFrames, SymbolBuilder, frames_in_symbol};
pub use varint::{
    Reader, VARINT_MAX, reserved_number, varint_length, write_u16, write_u32, write_u64, write_varint,
};

use crate::error::{TransportError, TransportErrorCode};

/// A parse error. The reason is only for diagnostics; no code depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl Malformed {
    /// The input ends in the middle of a value.
    pub const TRUNCATED: Self = Self("ends too early");

    /// Creates an error with this reason.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self(reason)
    }

    /// The reason as text.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.0
    }

    /// Converts it to an error that closes the connection with `code`.
    #[must_use]
    pub const fn into_error(self, code: TransportErrorCode) -> TransportError {
        TransportError::new(code, self.0)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}

impl From<Malformed> for TransportError {
    /// The error for a frame that cannot be parsed. Symbols have a code of their own, see [`Malformed::into_error`].
    fn from(malformed: Malformed) -> Self {
        malformed.into_error(TransportErrorCode::FrameEncoding)
    }
}
