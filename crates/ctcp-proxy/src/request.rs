//! The request that the opener of a coded stream writes first, and the reply of the other side (PROTOCOL.md section 9).
//!
//! ```text
//!  request                                        reply
//!  +---------+------+-------------+------------+  +---------+------+-------------+-----------+
//!  | version | kind | length (16) | body ...   |  | version | code | length (16) | body ...  |
//!  +---------+------+-------------+------------+  +---------+------+-------------+-----------+
//!  kind 1 CONNECT, 2 GET, 3 PUT, 4 ASSOCIATE,     code 0: success; else the body is a text for people
//!  5 CONNECT with low latency, 6 CARRY
//! ```
//!
//! The length precedes the body, so that a server can answer "unknown kind" without parsing it. The length is bounded,
//! so a head costs at most [`BODY_BYTES_MAX`] of memory. Parsing takes a whole body and must consume all of it.
//!
//! Requirement: C7

use core::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::{AddressError, TargetAddress};

mod associate;
mod body;
mod carry;
mod file;
mod reply;

pub use associate::{Associate, Notice};
pub(crate) use associate::{put_datagram_head, split_datagram, split_number};
pub use body::BodyError;
pub use carry::{Carry, Granted, STOPS_MAX, Stop};
pub use file::{FileIdentity, GetAccepted, GetRequest, PutAccepted, PutRequest};
pub use reply::{Reply, ReplyCode, TEXT_BYTES_MAX};

use body::{Body, put_address, put_target};

/// The version of requests and replies. Requests of another version are answered with
/// [`ReplyCode::UnsupportedVersion`].
pub const VERSION: u8 = 1;

/// The longest body of a request or reply in bytes. A file name of [`crate::files::NAME_BYTES_MAX`] and its numbers
/// fit.
pub const BODY_BYTES_MAX: usize = 1536;

/// Codes of RESET_STREAM and STOP_SENDING on proxy streams (PROTOCOL.md section 9).
pub mod stream_code {
    /// The stream was dropped without a reason (a task ended, or a program was stopped).
    pub const DROPPED: u64 = 0;
    /// The TCP connection behind the stream failed or was reset.
    pub const ABORTED: u64 = 1;
    /// The file changed while it was being read: start over.
    pub const FILE_CHANGED: u64 = 2;
    /// The file could not be read to its end.
    pub const FILE_UNREADABLE: u64 = 3;
    /// The transfer stalled while others waited for its slot: retry later.
    pub const GAVE_WAY: u64 = 4;
    /// The other side sent everything, and no more is needed: a regular end for a sender that could still send.
    pub const ENOUGH: u64 = 5;
}

/// The request at the head of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Connect to a TCP target. After a successful reply the stream carries its bytes both ways.
    Connect(TargetAddress),
    /// The same, and the server asks for low latency for what it sends.
    ConnectLowLatency(TargetAddress),
    /// Send a file.
    Get(GetRequest),
    /// Receive a file.
    Put(PutRequest),
    /// Exchange UDP datagrams in messages of the connection.
    Associate(Associate),
    /// Carry the datagrams of another connection.
    Carry(Carry),
}

/// Why a head could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The stream failed or ended inside the head.
    #[error("the stream ended inside the head: {0}")]
    Stream(#[from] io::Error),
    /// Another version than [`VERSION`].
    #[error("version {0} of proxy streams is not supported here, only version {VERSION}")]
    Version(u8),
    /// An unknown kind of request.
    #[error("unknown kind of request {0}")]
    Kind(u8),
    /// A length beyond [`BODY_BYTES_MAX`].
    #[error("a head of {0} bytes, at most {BODY_BYTES_MAX}")]
    TooLong(usize),
    /// The body does not match its kind.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] AddressError),
}

impl HeadError {
    /// The code of the reply to the peer.
    #[must_use]
    pub fn reply_code(&self) -> ReplyCode {
        match self {
            Self::Version(_) => ReplyCode::UnsupportedVersion,
            Self::Kind(_) => ReplyCode::CommandNotSupported,
            _ => ReplyCode::BadRequest,
        }
    }
}

impl fmt::Display for Request {
    /// The target, or what else is asked for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(target) | Self::ConnectLowLatency(target) => target.fmt(formatter),
            Self::Get(_) => formatter.write_str("get"),
            Self::Put(_) => formatter.write_str("put"),
            Self::Associate(_) => formatter.write_str("udp"),
            Self::Carry(_) => formatter.write_str("carry"),
        }
    }
}

impl Request {
    const CONNECT: u8 = 1;
    const GET: u8 = 2;
    const PUT: u8 = 3;
    const ASSOCIATE: u8 = 4;
    const CONNECT_LOW_LATENCY: u8 = 5;
    const CARRY: u8 = 6;

    /// Whether both sides ask for low latency for the stream.
    #[must_use]
    pub fn wants_low_latency(&self) -> bool {
        matches!(self, Self::ConnectLowLatency(_))
    }

    /// Encodes the head.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Connect(target) => {
                put_target(&mut body, target);
                Self::CONNECT
            }
            Self::ConnectLowLatency(target) => {
                put_target(&mut body, target);
                Self::CONNECT_LOW_LATENCY
            }
            Self::Get(get) => {
                get.write(&mut body);
                Self::GET
            }
            Self::Put(put) => {
                put.write(&mut body);
                Self::PUT
            }
            Self::Associate(associate) => {
                associate.write(&mut body);
                Self::ASSOCIATE
            }
            Self::Carry(carry) => {
                carry.write(&mut body);
                Self::CARRY
            }
        };
        frame(kind, &body)
    }

    /// Decodes a request from its kind and whole body.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown, or the body is too short, too long or out of range.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, HeadError> {
        let mut body = Body::new(body);
        let request = match kind {
            Self::CONNECT => Self::Connect(body.target()?),
            Self::CONNECT_LOW_LATENCY => Self::ConnectLowLatency(body.target()?),
            Self::GET => Self::Get(GetRequest::parse(&mut body)?),
            Self::PUT => Self::Put(PutRequest::parse(&mut body)?),
            Self::ASSOCIATE => Self::Associate(Associate::parse(&mut body)?),
            Self::CARRY => Self::Carry(Carry::parse(&mut body)?),
            unknown => return Err(HeadError::Kind(unknown)),
        };
        body.end()?;
        Ok(request)
    }

    /// Reads the head of a stream and nothing after it.
    ///
    /// # Errors
    /// See [`HeadError`].
    pub async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, HeadError> {
        let (kind, body) = read_frame(reader).await?;
        Self::decode(kind, &body)
    }

    /// Writes the head in one piece, so that it leaves with the first flight.
    ///
    /// # Errors
    /// Returns an error if the stream fails.
    pub async fn write<W: AsyncWrite + Unpin>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.encode()).await?;
        writer.flush().await
    }
}

/// Encodes version, kind or code, length and body. A body beyond the limit is a bug of ours, because names and texts
/// are bounded where they are created.
fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    assert!(body.len() <= BODY_BYTES_MAX, "bodies consist of bounded parts");
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend([VERSION, kind, length[0], length[1]]);
    bytes.extend_from_slice(body);
    bytes
}

/// Returns how many bytes a head has that begins with `head`, as far as they say: 4 before its length is known, and if
/// it is invalid.
pub(crate) fn head_bytes_wanted(head: &[u8]) -> usize {
    match *head {
        [VERSION, _, high, low, ..] => match usize::from(u16::from_be_bytes([high, low])) {
            length @ 0..=BODY_BYTES_MAX => 4 + length,
            _ => 4,
        },
        _ => 4,
    }
}

async fn read_frame<R: AsyncRead + Unpin>(reader: &mut R) -> Result<(u8, Vec<u8>), HeadError> {
    let mut head = [0; 4];
    reader.read_exact(&mut head).await?;
    let [version, kind, high, low] = head;
    if version != VERSION {
        return Err(HeadError::Version(version));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > BODY_BYTES_MAX {
        return Err(HeadError::TooLong(length));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok((kind, body))
}

#[cfg(test)]
mod tests;
