//! The frames of a packet (PROTOCOL.md section 4): one enum, read by [`frames`], written by [`Frame::write`].

pub(crate) mod ack;
mod close;
pub(crate) mod combination;
mod control;
mod path;

use crate::id::{StreamId, SymbolIndex};
use crate::wire::varint::Reader;
use crate::wire::{AckFrame, Malformed};

pub use close::CLOSE_REASON_MAX;

/// The first byte of a frame.
pub(crate) mod kind {
    pub(crate) const PADDING: u8 = 0x00;
    pub(crate) const PING: u8 = 0x01;
    pub(crate) const ACK_RANGES: u8 = 0x02;
    pub(crate) const ACK_BITMAP: u8 = 0x03;
    pub(crate) const ACK_RANGES_ECN: u8 = 0x04;
    pub(crate) const ACK_BITMAP_ECN: u8 = 0x05;
    pub(crate) const SOURCE: u8 = 0x06;
    pub(crate) const CODED: u8 = 0x07;
    pub(crate) const RECODED: u8 = 0x08;
    pub(crate) const SEGMENT: u8 = 0x09;
    pub(crate) const MAX_DATA: u8 = 0x10;
    pub(crate) const MAX_STREAM_DATA: u8 = 0x11;
    pub(crate) const MAX_STREAMS: u8 = 0x12;
    pub(crate) const RESET_STREAM: u8 = 0x13;
    pub(crate) const STOP_SENDING: u8 = 0x14;
    pub(crate) const RESET_TOKEN: u8 = 0x15;
    pub(crate) const KEY_SHARE: u8 = 0x16;
    pub(crate) const PATH_CHALLENGE: u8 = 0x18;
    pub(crate) const PATH_RESPONSE: u8 = 0x19;
    pub(crate) const CLOSE_TRANSPORT: u8 = 0x1c;
    pub(crate) const CLOSE_APPLICATION: u8 = 0x1d;
}

/// A frame. Payloads borrow from the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// So many zero bytes in a row, at least 1.
    Padding(usize),
    /// Asks for an acknowledgement.
    Ping,
    /// What the receiver has of one path and of the symbols.
    Ack(AckFrame),
    /// A symbol itself, without trailing zeros.
    Source {
        /// Which one.
        index: SymbolIndex,
        /// Symbols below it are never combined again; at most `index`.
        floor: SymbolIndex,
        /// Its bytes.
        symbol: &'a [u8],
    },
    /// A combination of `[first, first + length)` whose coefficients follow from a key.
    Coded {
        /// The first symbol.
        first: SymbolIndex,
        /// How many, 1..=[`COMBINATION_LENGTH_MAX`](crate::wire::COMBINATION_LENGTH_MAX).
        length: u16,
        /// Density threshold of RFC 8681, 0..=15; 15 leaves no coefficient out.
        density: u8,
        /// Seed of the coefficients (the repair key of RFC 8681).
        key: u16,
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// The combination's bytes without trailing zeros.
        payload: &'a [u8],
    },
    /// A combination with its coefficients.
    Recoded {
        /// The first symbol.
        first: SymbolIndex,
        /// One for each symbol from `first` on, 1..=[`COMBINATION_LENGTH_MAX`](crate::wire::COMBINATION_LENGTH_MAX).
        coefficients: &'a [u8],
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// The combination's bytes without trailing zeros.
        payload: &'a [u8],
    },
    /// A piece of the combination that a CODED frame of the same range, density and key would carry.
    Segment {
        /// The first symbol.
        first: SymbolIndex,
        /// How many, 1..=[`COMBINATION_LENGTH_MAX`](crate::wire::COMBINATION_LENGTH_MAX).
        length: u16,
        /// Density threshold of RFC 8681, 0..=15.
        density: u8,
        /// Seed of the coefficients.
        key: u16,
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// Where the piece begins in the combination.
        offset: u16,
        /// The combination's bytes without trailing zeros, at most those of the largest symbol.
        total: u16,
        /// Bytes `[offset, offset + piece.len())` of the combination, at most up to `total`.
        piece: &'a [u8],
    },
    /// Credit of the connection: stream bytes in total since its start.
    MaxData(u64),
    /// Credit of a stream: bytes since its start.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Its new credit.
        credit: u64,
    },
    /// How many streams the receiver of this frame may have opened in total.
    MaxStreams(u64),
    /// The sender of the stream gives up.
    ResetStream {
        /// The stream.
        id: StreamId,
        /// The application's reason.
        code: u64,
        /// How many bytes the stream has in the end.
        final_size: u64,
    },
    /// The receiver of the stream wants no more.
    StopSending {
        /// The stream.
        id: StreamId,
        /// The application's reason.
        code: u64,
    },
    /// The server's stateless reset for the address that the client has now.
    ResetToken([u8; 16]),
    /// A public share of the sender for the keys after the next update.
    KeyShare([u8; 32]),
    /// To be sent back on the same path.
    PathChallenge([u8; 8]),
    /// What was challenged.
    PathResponse([u8; 8]),
    /// The connection ends.
    Close {
        /// True when the application closed, false when the transport did.
        by_application: bool,
        /// The application's code or that of the transport.
        code: u64,
        /// For people. What is behind [`CLOSE_REASON_MAX`] bytes or, on reading, no UTF-8, is cut off.
        reason: &'a str,
    },
}

impl<'a> Frame<'a> {
    /// Whether the peer has to acknowledge a packet with this frame.
    #[must_use]
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::Close { .. })
    }

    /// Whether it runs to the end of the packet, so that no other frame can follow.
    #[must_use]
    pub const fn is_combination(&self) -> bool {
        matches!(self, Self::Source { .. } | Self::Coded { .. } | Self::Recoded { .. } | Self::Segment { .. })
    }

    /// Reads the frame at the reader's position.
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match reader.u8()? {
            kind::PADDING => Ok(Self::Padding(path::parse_padding(reader))),
            kind::PING => Ok(Self::Ping),
            kind @ kind::ACK_RANGES..=kind::ACK_BITMAP_ECN => AckFrame::parse(kind, reader).map(Self::Ack),
            kind @ kind::SOURCE..=kind::SEGMENT => combination::parse(kind, reader),
            kind @ kind::MAX_DATA..=kind::STOP_SENDING => control::parse(kind, reader),
            kind::RESET_TOKEN => reader.array().map(Self::ResetToken),
            kind::KEY_SHARE => reader.array().map(Self::KeyShare),
            kind::PATH_CHALLENGE => reader.array().map(Self::PathChallenge),
            kind::PATH_RESPONSE => reader.array().map(Self::PathResponse),
            kind @ (kind::CLOSE_TRANSPORT | kind::CLOSE_APPLICATION) => close::parse(kind, reader),
            _ => Err(Malformed::new("frame of unknown type")),
        }
    }

    /// Appends it.
    ///
    /// # Panics
    /// When a value is out of the range its documentation gives: values from outside are checked where they enter.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding(count) => out.resize(out.len() + count, kind::PADDING),
            Self::Ping => out.push(kind::PING),
            Self::Ack(ack) => {
                let fits = ack.write_within(out, usize::MAX);
                debug_assert!(fits, "an acknowledgement fits into any space");
            }
            Self::Source { .. } | Self::Coded { .. } | Self::Recoded { .. } | Self::Segment { .. } => {
                combination::write(self, out);
            }
            Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams(_)
            | Self::ResetStream { .. }
            | Self::StopSending { .. } => control::write(self, out),
            Self::ResetToken(token) => path::write(kind::RESET_TOKEN, token, out),
            Self::KeyShare(public) => path::write(kind::KEY_SHARE, public, out),
            Self::PathChallenge(data) => path::write(kind::PATH_CHALLENGE, data, out),
            Self::PathResponse(data) => path::write(kind::PATH_RESPONSE, data, out),
            Self::Close { by_application, code, reason } => close::write(*by_application, *code, reason, out),
        }
    }

    /// Exactly how many bytes [`Frame::write`] appends.
    #[must_use]
    pub fn encoded_length(&self) -> usize {
        match self {
            Self::Padding(count) => *count,
            Self::Ping => 1,
            Self::Ack(ack) => ack.encoded_length(),
            Self::Source { .. } | Self::Coded { .. } | Self::Recoded { .. } | Self::Segment { .. } => {
                combination::length(self)
            }
            Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams(_)
            | Self::ResetStream { .. }
            | Self::StopSending { .. } => control::length(self),
            Self::ResetToken(token) => 1 + token.len(),
            Self::KeyShare(public) => 1 + public.len(),
            Self::PathChallenge(data) | Self::PathResponse(data) => 1 + data.len(),
            Self::Close { code, reason, .. } => close::length(*code, reason),
        }
    }
}

/// The frames of a packet's payload, in order. After an error comes nothing.
#[must_use]
pub const fn frames(payload: &[u8]) -> Frames<'_> {
    Frames { reader: Reader::new(payload) }
}

/// Made by [`frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::parse(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

#[cfg(test)]
pub(crate) mod tests;
