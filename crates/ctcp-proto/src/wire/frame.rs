//! The frames of a packet (PROTOCOL.md section 4): one enum, parsed by [`frames`] and written by [`Frame::write`].

mod ack_frequency;
mod close;
pub(crate) mod combination;
mod control;
pub(crate) mod new_ticket;
mod path;
pub(crate) mod path_ack;
pub(crate) mod report;

use crate::id::{ConnectionId, ContextId, PathId, StreamId};
use crate::wire::varint::{Reader, varint_length, write_varint};
use crate::wire::{DecoderReport, Malformed, PathAck};

pub use ack_frequency::AckFrequency;
pub use close::CLOSE_REASON_MAX;
pub use combination::Combination;
pub use new_ticket::NewTicket;

/// The frame types.
pub(crate) mod kind {
    pub(crate) const PADDING: u8 = 0x00;
    pub(crate) const PING: u8 = 0x01;
    pub(crate) const PATH_ACK_RANGES: u8 = 0x02;
    pub(crate) const PATH_ACK_BITMAP: u8 = 0x03;
    pub(crate) const PATH_ACK_RANGES_ECN: u8 = 0x04;
    pub(crate) const PATH_ACK_BITMAP_ECN: u8 = 0x05;
    pub(crate) const DECODER_REPORT: u8 = 0x06;
    pub(crate) const SOURCE: u8 = 0x08;
    pub(crate) const CODED: u8 = 0x0a;
    pub(crate) const RECODED: u8 = 0x0c;
    pub(crate) const SEGMENT: u8 = 0x0e;
    /// In the types above: a context follows. Without this bit it is that of the streams.
    pub(crate) const HAS_CONTEXT: u8 = 0x01;
    pub(super) const LAST_OF_CONTEXT: u8 = SEGMENT | HAS_CONTEXT;
    pub(crate) const MAX_DATA: u8 = 0x10;
    pub(crate) const MAX_STREAM_DATA: u8 = 0x11;
    pub(crate) const MAX_STREAMS: u8 = 0x12;
    pub(crate) const RESET_STREAM: u8 = 0x13;
    pub(crate) const STOP_SENDING: u8 = 0x14;
    pub(crate) const RESET_TOKEN: u8 = 0x15;
    pub(crate) const KEY_SHARE: u8 = 0x16;
    pub(crate) const PATH_CHALLENGE: u8 = 0x18;
    pub(crate) const PATH_RESPONSE: u8 = 0x19;
    pub(crate) const NEW_CONNECTION_ID: u8 = 0x1a;
    pub(crate) const CLOSE_TRANSPORT: u8 = 0x1c;
    pub(crate) const CLOSE_APPLICATION: u8 = 0x1d;
    pub(crate) const NEW_TICKET: u8 = 0x1e;
    pub(crate) const PATH_ABANDON: u8 = 0x1f;
    pub(crate) const PATH_PREFERENCE: u8 = 0x20;
    pub(crate) const ACK_FREQUENCY: u8 = 0x42;
    pub(crate) const ARRIVED: u8 = 0x43;
}

/// Frames of this type and above have a length after the type, so that a receiver can skip those it does not know.
pub const SKIPPABLE_FRAME_MIN: u64 = 0x40;

/// A frame. Payloads borrow from the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// This number of zero bytes, at least 1.
    Padding(usize),
    /// Elicits an acknowledgement.
    Ping,
    /// Acknowledges packets of one path.
    PathAck(PathAck),
    /// Reports the state of the decoder of a context.
    DecoderReport(ContextId, DecoderReport),
    /// A symbol or a combination of symbols of a context.
    Combination(ContextId, Combination<'a>),
    /// Connection-level credit: total stream bytes since the start of the connection.
    MaxData(u64),
    /// Stream-level credit: bytes since the start of the stream.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Its new credit.
        credit: u64,
    },
    /// How many streams the receiver of this frame may open in total.
    MaxStreams(u64),
    /// The sender of the stream abandons it.
    ResetStream {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        code: u64,
        /// The final size of the stream in bytes.
        final_size: u64,
    },
    /// The receiver of the stream wants no more data.
    StopSending {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        code: u64,
    },
    /// The stateless reset token for the client's current address.
    ResetToken([u8; 16]),
    /// The sender's public share for the keys after the next update.
    KeyShare([u8; 32]),
    /// A ticket for the client's next visit.
    NewTicket(NewTicket<'a>),
    /// Data to be returned on the same path.
    PathChallenge([u8; 8]),
    /// The data of a PATH_CHALLENGE.
    PathResponse([u8; 8]),
    /// The sender uses the path no longer.
    PathAbandon(PathId),
    /// How much the client prefers the path of this packet; lower numbers are preferred.
    PathPreference(u8),
    /// How often the sender wants packets of this path acknowledged.
    AckFrequency(AckFrequency),
    /// A packet of another path has arrived, and the reports so far count what arrived before.
    Arrived {
        /// The path.
        path: PathId,
        /// The largest packet number received there.
        largest: u64,
    },
    /// Packets of this path to the sender of the frame have this destination id.
    NewConnectionId {
        /// The path, which may be open or not.
        path: PathId,
        /// Its id.
        id: ConnectionId,
    },
    /// Closes the connection.
    Close {
        /// True if the application closed the connection, false if the transport did.
        by_application: bool,
        /// The error code of the application or the transport.
        code: u64,
        /// Text for people. It is truncated to [`CLOSE_REASON_MAX`] bytes and, when parsed, at the first byte that is not UTF-8.
        reason: &'a str,
    },
    /// A frame of an unknown type, to be ignored.
    Skippable {
        /// The type, at least [`SKIPPABLE_FRAME_MIN`]. Only frames of even types are ack-eliciting.
        kind: u64,
        /// The bytes after type and length.
        contents: &'a [u8],
    },
}

impl<'a> Frame<'a> {
    /// Whether the peer must acknowledge a packet with this frame.
    #[must_use]
    pub const fn is_ack_eliciting(&self) -> bool {
        match self {
            Self::Padding(_)
            | Self::PathAck(_)
            | Self::DecoderReport(..)
            | Self::Arrived { .. }
            | Self::Close { .. } => false,
            Self::Skippable { kind, .. } => *kind % 2 == 0,
            _ => true,
        }
    }

    /// Whether the frame extends to the end of the packet, so that no frame can follow it.
    #[must_use]
    pub const fn is_combination(&self) -> bool {
        matches!(self, Self::Combination(..))
    }

    /// Parses the frame at the reader's position.
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let kind = reader.shortest_varint()?;
        if kind >= SKIPPABLE_FRAME_MIN {
            let contents = reader.prefixed()?;
            return match u8::try_from(kind) {
                Ok(kind::ACK_FREQUENCY) => AckFrequency::parse(contents).map(Self::AckFrequency),
                Ok(kind::ARRIVED) => path::parse_arrived(contents),
                _ => Ok(Self::Skippable { kind, contents }),
            };
        }
        match kind as u8 {
            kind::PADDING => Ok(Self::Padding(path::parse_padding(reader))),
            kind::PING => Ok(Self::Ping),
            kind @ kind::PATH_ACK_RANGES..=kind::PATH_ACK_BITMAP_ECN => {
                PathAck::parse(kind, reader).map(Self::PathAck)
            }
            kind @ (kind::DECODER_REPORT..=kind::LAST_OF_CONTEXT) => {
                let context = parse_context(kind, reader)?;
                match kind & !kind::HAS_CONTEXT {
                    kind::DECODER_REPORT => {
                        DecoderReport::parse(reader).map(|report| Self::DecoderReport(context, report))
                    }
                    kind => Combination::parse(kind, reader)
                        .map(|combination| Self::Combination(context, combination)),
                }
            }
            kind @ kind::MAX_DATA..=kind::STOP_SENDING => control::parse(kind, reader),
            kind::RESET_TOKEN => reader.array().map(Self::ResetToken),
            kind::KEY_SHARE => reader.array().map(Self::KeyShare),
            kind::PATH_CHALLENGE => reader.array().map(Self::PathChallenge),
            kind::PATH_RESPONSE => reader.array().map(Self::PathResponse),
            kind::NEW_CONNECTION_ID => {
                let path = path::parse_id(reader)?;
                let id = ConnectionId::new(reader.prefixed()?).filter(|id| !id.as_bytes().is_empty());
                let id = id.ok_or(Malformed::new("connection id of another length than 1 to 20"))?;
                Ok(Self::NewConnectionId { path, id })
            }
            kind @ (kind::CLOSE_TRANSPORT | kind::CLOSE_APPLICATION) => close::parse(kind, reader),
            kind::NEW_TICKET => NewTicket::parse(reader).map(Self::NewTicket),
            kind::PATH_ABANDON => path::parse_id(reader).map(Self::PathAbandon),
            kind::PATH_PREFERENCE => reader.array().map(|[preference]| Self::PathPreference(preference)),
            _ => Err(Malformed::new("frame of unknown type")),
        }
    }

    /// Appends the frame.
    ///
    /// # Panics
    /// Panics if a value is outside its documented range. Values from the network are checked when they are parsed.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding(count) => out.resize(out.len() + count, kind::PADDING),
            Self::Ping => out.push(kind::PING),
            Self::PathAck(ack) => {
                let fits = ack.write_within(out, usize::MAX);
                debug_assert!(fits, "an acknowledgement fits into any space");
            }
            Self::DecoderReport(context, report) => {
                let fits = report.write_within(*context, out, usize::MAX);
                debug_assert!(fits, "a report fits into any space");
            }
            Self::Combination(context, combination) => combination.write(*context, out),
            Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams(_)
            | Self::ResetStream { .. }
            | Self::StopSending { .. } => control::write(self, out),
            Self::ResetToken(token) => path::write(kind::RESET_TOKEN, token, out),
            Self::KeyShare(public) => path::write(kind::KEY_SHARE, public, out),
            Self::NewTicket(ticket) => ticket.write(out),
            Self::PathChallenge(data) => path::write(kind::PATH_CHALLENGE, data, out),
            Self::PathResponse(data) => path::write(kind::PATH_RESPONSE, data, out),
            Self::PathAbandon(id) => {
                out.push(kind::PATH_ABANDON);
                write_varint(out, u64::from(id.0));
            }
            Self::PathPreference(preference) => path::write(kind::PATH_PREFERENCE, &[*preference], out),
            Self::AckFrequency(frequency) => frequency.write(out),
            Self::Arrived { path, largest } => {
                write_skippable(kind::ARRIVED, &[u64::from(path.0), *largest], out);
            }
            Self::NewConnectionId { path, id } => {
                out.push(kind::NEW_CONNECTION_ID);
                write_varint(out, u64::from(path.0));
                write_varint(out, id.as_bytes().len() as u64);
                out.extend_from_slice(id.as_bytes());
            }
            Self::Close { by_application, code, reason } => close::write(*by_application, *code, reason, out),
            Self::Skippable { kind, contents } => {
                assert!(*kind >= SKIPPABLE_FRAME_MIN, "frames of type {kind} have no length");
                write_varint(out, *kind);
                write_varint(out, contents.len() as u64);
                out.extend_from_slice(contents);
            }
        }
    }

    /// The exact number of bytes that [`Frame::write`] appends.
    #[must_use]
    pub fn encoded_length(&self) -> usize {
        match self {
            Self::Padding(count) => *count,
            Self::Ping => 1,
            Self::PathAck(ack) => ack.encoded_length(),
            Self::DecoderReport(context, report) => report.encoded_length(*context),
            Self::Combination(context, combination) => combination.encoded_length(*context),
            Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams(_)
            | Self::ResetStream { .. }
            | Self::StopSending { .. } => control::length(self),
            Self::ResetToken(token) => 1 + token.len(),
            Self::KeyShare(public) => 1 + public.len(),
            Self::NewTicket(ticket) => ticket.length(),
            Self::PathChallenge(data) | Self::PathResponse(data) => 1 + data.len(),
            Self::PathAbandon(id) => 1 + varint_length(u64::from(id.0)),
            Self::PathPreference(_) => 2,
            Self::AckFrequency(frequency) => frequency.length(),
            Self::Arrived { path, largest } => {
                skippable_length(kind::ARRIVED, &[u64::from(path.0), *largest])
            }
            Self::NewConnectionId { path, id } => 2 + varint_length(u64::from(path.0)) + id.as_bytes().len(),
            Self::Close { code, reason, .. } => close::length(*code, reason),
            Self::Skippable { kind, contents } => {
                varint_length(*kind) + varint_length(contents.len() as u64) + contents.len()
            }
        }
    }
}

/// Parses the context after the type `kind`. The context of the streams has only one encoding, the even type.
fn parse_context(kind: u8, reader: &mut Reader<'_>) -> Result<ContextId, Malformed> {
    if kind & kind::HAS_CONTEXT == 0 {
        return Ok(ContextId::Streams);
    }
    let context = ContextId::from_number(reader.varint()?).filter(|&context| context != ContextId::Streams);
    context.ok_or(Malformed::new("frame of an unknown context"))
}

/// Appends the type `kind` of a frame and its context.
fn write_kind(kind: u8, context: ContextId, out: &mut Vec<u8>) {
    if context == ContextId::Streams {
        out.push(kind);
    } else {
        out.push(kind | kind::HAS_CONTEXT);
        write_varint(out, context.number());
    }
}

/// The length of what [`write_kind`] appends.
pub(super) fn kind_length(context: ContextId) -> usize {
    if context == ContextId::Streams { 1 } else { 1 + varint_length(context.number()) }
}

/// Appends a frame of a type that receivers may skip, which consists of numbers.
fn write_skippable(kind: u8, fields: &[u64], out: &mut Vec<u8>) {
    write_varint(out, u64::from(kind));
    write_varint(out, fields_length(fields) as u64);
    fields.iter().for_each(|&field| write_varint(out, field));
}

/// The length of what [`write_skippable`] appends.
fn skippable_length(kind: u8, fields: &[u64]) -> usize {
    let contents = fields_length(fields);
    varint_length(u64::from(kind)) + varint_length(contents as u64) + contents
}

fn fields_length(fields: &[u64]) -> usize {
    fields.iter().map(|&field| varint_length(field)).sum()
}

/// Iterates over the frames of a packet's payload. The iterator ends after an error.
#[must_use]
pub const fn frames(payload: &[u8]) -> Frames<'_> {
    Frames { reader: Reader::new(payload) }
}

/// Iterator returned by [`frames`].
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
