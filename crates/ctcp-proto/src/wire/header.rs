//! Packet headers (PROTOCOL.md section 2), compatible with QUIC's invariants (RFC 8999).
//!
//! ```text
//!  long    |1|1|T T|0 0 E P| version (32) | len, destination id | len, source id | body by type |
//!  short   |0|1|K|0 0 0|L L| destination id | path id (8) | packet number (1..3 bytes) | sealed |
//! ```
//!
//! [`peek`] parses what all versions have in common. Routers and endpoints of another version need no more. The rest is parsed only for
//! [`VERSION`].

use crate::id::{ConnectionId, PathId};
use crate::wire::varint::{Reader, write_u32, write_varint};
use crate::wire::{Malformed, TruncatedNumber};

/// The version of this protocol.
pub const VERSION: u32 = 0x4354_0004;
/// Minimum size of a datagram with an INITIATE, which every path must carry. QUIC has the same limit.
pub const DATAGRAM_SIZE_MIN: usize = 1200;
/// Longest token, that of a ticket ([`crate::crypto::Ticket`]). A COOKIE of this implementation has 24 bytes.
pub const TOKEN_MAX: usize = 108;
/// Longest Noise message. With the longest token and ids it fits into [`DATAGRAM_SIZE_MIN`].
pub const NOISE_MESSAGE_MAX: usize = 1024;
/// The length of a part: what a Noise message commits to and the next datagram carries. That is a ciphertext of ML-KEM-768, or as much of
/// an encapsulation key. With the longest ids it fits into [`DATAGRAM_SIZE_MIN`].
pub const PART_LENGTH: usize = 1088;
/// The tag in the last bytes of an INITIATE and of its part, see [`crate::crypto::FirstPacketKey`].
pub const FIRST_PACKET_TAG_LENGTH: usize = 16;
/// The length of the authentication tag after a sealed payload.
pub const TAG_LENGTH: usize = 16;

/// Minimum length of a client's first destination id, so that it cannot be guessed.
const INITIAL_DESTINATION_MIN: usize = 8;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const KEY_PHASE: u8 = 0x20;
const RESERVED: u8 = 0x1c;
/// In a long header: the part of the message, in a datagram of its own.
const PART: u8 = 0x01;
/// In a long header of type 0: early data.
const EARLY: u8 = 0x02;
const NUMBER_LENGTH: u8 = 0x03;

/// The fields common to all versions. In other versions ids may have up to 255 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<'a> {
    /// A long header. Version 0 is a version negotiation packet.
    Long {
        /// The packet's version.
        version: u32,
        /// The destination connection id.
        destination: &'a [u8],
        /// The source connection id.
        source: &'a [u8],
    },
    /// A short header, or a stateless reset.
    Short {
        /// The destination connection id.
        destination: ConnectionId,
    },
}

/// Whether a datagram, if it begins with a header at all, begins with a long header.
#[must_use]
pub fn is_long_header(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG != 0)
}

/// Parses the fields that all versions share. `local_id_length` is the length of the ids that this endpoint chose for itself, which short
/// headers do not contain.
///
/// # Errors
/// Returns an error if the datagram ends within the header, or the second bit of a short header is not set.
pub fn peek(datagram: &[u8], local_id_length: usize) -> Result<Peek<'_>, Malformed> {
    let mut reader = Reader::new(datagram);
    let first = reader.u8()?;
    if first & LONG == 0 {
        if first & FIXED == 0 {
            return Err(Malformed::new("short header without its fixed bit"));
        }
        let destination = connection_id(reader.bytes(local_id_length)?)?;
        return Ok(Peek::Short { destination });
    }
    let version = reader.u32()?;
    let length = usize::from(reader.u8()?);
    let destination = reader.bytes(length)?;
    let length = usize::from(reader.u8()?);
    let source = reader.bytes(length)?;
    Ok(Peek::Long { version, destination, source })
}

/// The connection ids of a long header of [`VERSION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader {
    /// The connection id of the receiver.
    pub destination: ConnectionId,
    /// The connection id of the sender.
    pub source: ConnectionId,
}

/// Why a server rejected an INITIATE. Not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The first message could not be opened. Most likely it was made for another server key.
    Unopened,
    /// Too many handshakes in progress.
    Busy,
    /// A reason defined by a later version.
    Unknown(u8),
}

impl RejectReason {
    /// Returns the reason for a number on the wire.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Unopened,
            2 => Self::Busy,
            other => Self::Unknown(other),
        }
    }

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Unopened => 1,
            Self::Busy => 2,
            Self::Unknown(other) => other,
        }
    }
}

/// A packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongPacket<'a> {
    /// The client's first packet. Its last [`FIRST_PACKET_TAG_LENGTH`] bytes are zero after [`Self::write`]; the tag is added later.
    Initiate {
        /// Destination: the client's random choice; source: the client's id.
        header: LongHeader,
        /// The token of a COOKIE, or empty.
        token: &'a [u8],
        /// Noise message 1.
        message: &'a [u8],
    },
    /// The part of an INITIATE. Its tag is added later, as for [`Self::Initiate`].
    InitiatePart {
        /// The same as in the INITIATE.
        header: LongHeader,
        /// The bytes to which message 1 commits.
        part: &'a [u8; PART_LENGTH],
    },
    /// Data that a client with a ticket sends before the RESPONSE. Its tag is added later, as for [`Self::Initiate`].
    Early {
        /// The same as in the INITIATE.
        header: LongHeader,
        /// Counts the datagrams of this kind.
        index: u8,
        /// A sealed symbol, see PROTOCOL.md section 3.3.
        sealed: &'a [u8],
    },
    /// The server's answer.
    Response {
        /// Destination: the client's id; source: the server's id.
        header: LongHeader,
        /// Noise message 2.
        message: &'a [u8],
    },
    /// The part of a RESPONSE.
    ResponsePart {
        /// The same as in the RESPONSE.
        header: LongHeader,
        /// The bytes to which message 2 commits.
        part: &'a [u8; PART_LENGTH],
    },
    /// The server requests proof of the client's address.
    Cookie {
        /// Destination: the client's id; source: the destination id of the INITIATE.
        header: LongHeader,
        /// Token to be sent back.
        token: &'a [u8],
    },
    /// The server rejects the INITIATE.
    Reject {
        /// Destination: the client's id; source: the destination id of the INITIATE.
        header: LongHeader,
        /// The reason.
        reason: RejectReason,
    },
}

impl<'a> LongPacket<'a> {
    /// Parses a datagram for which [`peek`] returned [`VERSION`].
    ///
    /// # Errors
    /// Returns an error if it is no handshake packet, exceeds a limit, or is an INITIATE in a datagram below [`DATAGRAM_SIZE_MIN`] or with
    /// a destination id short enough to guess.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let Peek::Long { version: VERSION, destination, source } = peek(datagram, 0)? else {
            return Err(Malformed::new("no long header of this version"));
        };
        let header = LongHeader { destination: connection_id(destination)?, source: connection_id(source)? };
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & FIXED == 0 || first & 0x0f & !(PART | EARLY) != 0 {
            return Err(Malformed::new("long header with wrong bits"));
        }
        reader.bytes(4 + 1 + destination.len() + 1 + source.len())?;
        let packet = match (first >> 4 & 3, first & PART != 0) {
            (0, false) if first & EARLY != 0 => Self::parse_early(header, reader)?,
            _ if first & EARLY != 0 => return Err(Malformed::new("early data with wrong bits")),
            (0, false) => return Self::parse_initiate(datagram, header, reader),
            (0, true) => {
                check_destination(&header)?;
                let part = part(&mut reader)?;
                reader.bytes(FIRST_PACKET_TAG_LENGTH)?;
                Self::InitiatePart { header, part }
            }
            (1, false) => Self::Response { header, message: message(&mut reader)? },
            (1, true) => Self::ResponsePart { header, part: part(&mut reader)? },
            (2, false) => Self::Cookie { header, token: token(&mut reader)? },
            (3, false) => Self::Reject { header, reason: RejectReason::from_number(reader.u8()?) },
            _ => return Err(Malformed::new("part of a message that has none")),
        };
        match packet {
            Self::Early { .. } => Ok(packet),
            _ if reader.is_empty() => Ok(packet),
            _ => Err(Malformed::new("bytes after a handshake packet")),
        }
    }

    /// Everything between the index and the tag is sealed.
    fn parse_early(header: LongHeader, mut reader: Reader<'a>) -> Result<Self, Malformed> {
        check_destination(&header)?;
        let index = reader.u8()?;
        let sealed = reader.rest().split_last_chunk::<FIRST_PACKET_TAG_LENGTH>();
        let (sealed, _) = sealed.ok_or(Malformed::TRUNCATED)?;
        Ok(Self::Early { header, index, sealed })
    }

    fn parse_initiate(
        datagram: &[u8],
        header: LongHeader,
        mut reader: Reader<'a>,
    ) -> Result<Self, Malformed> {
        if datagram.len() < DATAGRAM_SIZE_MIN {
            return Err(Malformed::new("INITIATE in a datagram below 1200 bytes"));
        }
        check_destination(&header)?;
        // The rest is padding and the tag, which the endpoint checks before it parses anything.
        let (token, message) = (token(&mut reader)?, message(&mut reader)?);
        if reader.remaining() < FIRST_PACKET_TAG_LENGTH {
            return Err(Malformed::new("INITIATE without room for its tag"));
        }
        Ok(Self::Initiate { header, token, message })
    }

    /// The connection ids.
    #[must_use]
    pub const fn header(&self) -> LongHeader {
        match self {
            Self::Initiate { header, .. }
            | Self::InitiatePart { header, .. }
            | Self::Early { header, .. }
            | Self::Response { header, .. }
            | Self::ResponsePart { header, .. }
            | Self::Cookie { header, .. }
            | Self::Reject { header, .. } => *header,
        }
    }

    /// Replaces the contents of `out` with the whole datagram, padded if required.
    ///
    /// # Panics
    /// Panics if a token or message exceeds its limit.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let kind = match self {
            Self::Initiate { .. } => 0,
            Self::InitiatePart { .. } => PART,
            Self::Early { .. } => EARLY,
            Self::Response { .. } => 1 << 4,
            Self::ResponsePart { .. } => 1 << 4 | PART,
            Self::Cookie { .. } => 2 << 4,
            Self::Reject { .. } => 3 << 4,
        };
        let LongHeader { destination, source } = self.header();
        write_long(out, LONG | FIXED | kind, VERSION, [destination.as_bytes(), source.as_bytes()]);
        match self {
            Self::Initiate { token, message, .. } => {
                write_prefixed(out, token, TOKEN_MAX);
                write_prefixed(out, message, NOISE_MESSAGE_MAX);
                let length = out.len() + FIRST_PACKET_TAG_LENGTH;
                out.resize(length.max(DATAGRAM_SIZE_MIN), 0);
            }
            Self::InitiatePart { part, .. } => {
                out.extend_from_slice(*part);
                out.resize(out.len() + FIRST_PACKET_TAG_LENGTH, 0);
            }
            Self::Early { index, sealed, .. } => {
                out.push(*index);
                out.extend_from_slice(sealed);
                out.resize(out.len() + FIRST_PACKET_TAG_LENGTH, 0);
            }
            Self::Response { message, .. } => write_prefixed(out, message, NOISE_MESSAGE_MAX),
            Self::ResponsePart { part, .. } => out.extend_from_slice(*part),
            Self::Cookie { token, .. } => write_prefixed(out, token, TOKEN_MAX),
            Self::Reject { reason, .. } => out.push(reason.number()),
        }
    }
}

/// A version negotiation packet (RFC 8999 section 6): lists the versions that its sender supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNegotiation<'a> {
    /// The source id of the packet it answers.
    pub destination: &'a [u8],
    /// The destination id of the packet it answers.
    pub source: &'a [u8],
    versions: &'a [u8],
}

impl<'a> VersionNegotiation<'a> {
    /// Parses a datagram for which [`peek`] returned version 0.
    ///
    /// # Errors
    /// Returns an error if it is no version negotiation packet or lists no version.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let Peek::Long { version: 0, destination, source } = peek(datagram, 0)? else {
            return Err(Malformed::new("no version negotiation packet"));
        };
        let mut reader = Reader::new(datagram);
        reader.bytes(1 + 4 + 1 + destination.len() + 1 + source.len())?;
        let versions = reader.rest();
        if versions.is_empty() || !versions.len().is_multiple_of(4) {
            return Err(Malformed::new("version negotiation without a list of versions"));
        }
        Ok(Self { destination, source, versions })
    }

    /// The versions that the sender supports.
    pub fn versions(&self) -> impl Iterator<Item = u32> + 'a {
        self.versions
            .chunks_exact(4)
            .map(|bytes| bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }

    /// Replaces the contents of `out` with the answer to a packet of an unknown version. `destination` and `source` are those of that
    /// packet, swapped.
    ///
    /// # Panics
    /// Panics if an id is longer than 255 bytes, which [`peek`] never returns.
    pub fn write(out: &mut Vec<u8>, destination: &[u8], source: &[u8]) {
        out.clear();
        write_long(out, LONG | FIXED, 0, [destination, source]);
        write_u32(out, VERSION);
    }
}

/// A short header without header protection, which sealing adds and opening removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeader {
    /// Which of two successive keys sealed the packet.
    pub key_phase: bool,
    /// The connection id of the receiver.
    pub destination: ConnectionId,
    /// The path of the packet.
    pub path: PathId,
    /// The packet's number on that path, truncated.
    pub packet_number: TruncatedNumber,
}

impl ShortHeader {
    /// The length of the longest short header.
    pub const LENGTH_MAX: usize = 1 + ConnectionId::MAX + 1 + TruncatedNumber::LENGTH_MAX;

    /// The length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        1 + self.destination.as_bytes().len() + 1 + self.packet_number.length()
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let key_phase = if self.key_phase { KEY_PHASE } else { 0 };
        out.push(FIXED | key_phase | self.packet_number.length() as u8);
        out.extend_from_slice(self.destination.as_bytes());
        out.push(self.path.0);
        self.packet_number.write(out);
    }

    /// Parses a header whose protection was removed. The destination id has `destination_length` bytes.
    ///
    /// # Errors
    /// Returns an error if the datagram ends within the header, or if fixed or reserved bits have the wrong value.
    pub fn parse(datagram: &[u8], destination_length: usize) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & (LONG | FIXED | RESERVED) != FIXED {
            return Err(Malformed::new("short header with wrong bits"));
        }
        let destination = connection_id(reader.bytes(destination_length)?)?;
        let path = PathId(reader.u8()?);
        let packet_number = TruncatedNumber::from_bytes(reader.bytes(usize::from(first & NUMBER_LENGTH))?)?;
        Ok(Self { key_phase: first & KEY_PHASE != 0, destination, path, packet_number })
    }
}

fn connection_id(bytes: &[u8]) -> Result<ConnectionId, Malformed> {
    ConnectionId::new(bytes).ok_or(Malformed::new("connection id above 20 bytes"))
}

/// A client's first destination id must not be guessable.
fn check_destination(header: &LongHeader) -> Result<(), Malformed> {
    if header.destination.as_bytes().len() < INITIAL_DESTINATION_MIN {
        return Err(Malformed::new("INITIATE to an id below 8 bytes"));
    }
    Ok(())
}

fn part<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8; PART_LENGTH], Malformed> {
    reader.bytes(PART_LENGTH)?.try_into().map_err(|_| Malformed::TRUNCATED)
}

fn token<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let token = reader.prefixed()?;
    if token.len() > TOKEN_MAX { Err(Malformed::new("token above 108 bytes")) } else { Ok(token) }
}

fn message<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let message = reader.prefixed()?;
    if message.len() > NOISE_MESSAGE_MAX {
        return Err(Malformed::new("handshake message above 1024 bytes"));
    }
    Ok(message)
}

fn write_long(out: &mut Vec<u8>, first: u8, version: u32, ids: [&[u8]; 2]) {
    out.push(first);
    write_u32(out, version);
    for id in ids {
        out.push(u8::try_from(id.len()).expect("connection ids have at most 255 bytes"));
        out.extend_from_slice(id);
    }
}

fn write_prefixed(out: &mut Vec<u8>, bytes: &[u8], longest: usize) {
    assert!(bytes.len() <= longest, "{} bytes where {longest} are allowed", bytes.len());
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
