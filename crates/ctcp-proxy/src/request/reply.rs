//! The reply to a request.

use core::fmt;
use std::io;
use std::net::SocketAddr;

use ctcp_base::Escaped;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{BODY_BYTES_MAX, Body, HeadError, frame, put_address, read_frame};

/// The longest text of a failure in bytes: a sentence, not a page.
pub const TEXT_BYTES_MAX: usize = 512;

/// Success, or the reason of a failure. 0 to 8 are the replies of SOCKS5 (RFC 1928 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyCode {
    /// The request succeeded; what follows depends on the request.
    Succeeded,
    /// Another failure.
    GeneralFailure,
    /// The server's rules forbid the target.
    NotAllowed,
    /// No route to the target's network.
    NetworkUnreachable,
    /// The target does not answer, or its name does not resolve.
    HostUnreachable,
    /// The target refused the connection.
    ConnectionRefused,
    /// The target did not answer in time.
    TimedOut,
    /// A kind of request that the server does not serve.
    CommandNotSupported,
    /// A kind of address that the server does not support.
    AddressTypeNotSupported,
    /// There is no file with this name.
    FileNotFound,
    /// The name is never served: it is absolute, contains `..`, or leads through a link.
    FileNameRefused,
    /// It is a directory or something else that is not a regular file.
    NotAFile,
    /// The server accepts no files.
    ReadOnly,
    /// The server's disk is full.
    NoSpace,
    /// The part does not match the other side's content: start over.
    ContentDiffers,
    /// Another transfer writes the same file, or the limit of transfers is reached: retry later.
    Busy,
    /// The server's system denies access to the file.
    PermissionDenied,
    /// The server serves no files.
    FilesOff,
    /// The file is larger than the server accepts.
    FileTooLarge,
    /// Reading or writing the file failed.
    FileFailure,
    /// The request could not be parsed.
    BadRequest,
    /// The request has another version.
    UnsupportedVersion,
    /// The server's limit of open streams is reached.
    TooManyStreams,
    /// A code that this version does not know.
    Unknown(u8),
}

/// The codes and their numbers on the wire.
const NUMBERS: [(ReplyCode, u8); 23] = [
    (ReplyCode::Succeeded, 0x00),
    (ReplyCode::GeneralFailure, 0x01),
    (ReplyCode::NotAllowed, 0x02),
    (ReplyCode::NetworkUnreachable, 0x03),
    (ReplyCode::HostUnreachable, 0x04),
    (ReplyCode::ConnectionRefused, 0x05),
    (ReplyCode::TimedOut, 0x06),
    (ReplyCode::CommandNotSupported, 0x07),
    (ReplyCode::AddressTypeNotSupported, 0x08),
    (ReplyCode::FileNotFound, 0x20),
    (ReplyCode::FileNameRefused, 0x21),
    (ReplyCode::NotAFile, 0x22),
    (ReplyCode::ReadOnly, 0x23),
    (ReplyCode::NoSpace, 0x24),
    (ReplyCode::ContentDiffers, 0x25),
    (ReplyCode::Busy, 0x26),
    (ReplyCode::PermissionDenied, 0x27),
    (ReplyCode::FilesOff, 0x28),
    (ReplyCode::FileTooLarge, 0x29),
    (ReplyCode::FileFailure, 0x2a),
    (ReplyCode::BadRequest, 0x40),
    (ReplyCode::UnsupportedVersion, 0x41),
    (ReplyCode::TooManyStreams, 0x42),
];

impl ReplyCode {
    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Unknown(number) => number,
            known => NUMBERS.iter().find(|(code, _)| *code == known).map_or(1, |(_, number)| *number),
        }
    }

    /// The code for a number from the wire.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        let known = NUMBERS.iter().find(|(_, known)| *known == number);
        known.map_or(Self::Unknown(number), |(code, _)| *code)
    }

    /// The corresponding SOCKS5 reply, or general failure.
    #[must_use]
    pub fn socks5(self) -> u8 {
        match self.number() {
            number @ 0..=8 => number,
            _ => 1,
        }
    }
}

/// A reply: its code and its body. On success the request defines the body; otherwise it is a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Success, or the reason of the failure.
    pub code: ReplyCode,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// CONNECT succeeded; `bound` is the server's end of the connection to the target.
    #[must_use]
    pub fn connected(bound: SocketAddr) -> Self {
        let mut body = Vec::new();
        put_address(&mut body, bound);
        Self { code: ReplyCode::Succeeded, body }
    }

    /// Success without a body: a PUT was stored.
    #[must_use]
    pub fn done() -> Self {
        Self { code: ReplyCode::Succeeded, body: Vec::new() }
    }

    /// A failure with its text, truncated to [`TEXT_BYTES_MAX`].
    #[must_use]
    pub fn failure(code: ReplyCode, text: &str) -> Self {
        let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        Self { code, body: text.as_bytes()[..end.unwrap_or(0)].to_vec() }
    }

    /// Returns true if the request succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == ReplyCode::Succeeded
    }

    /// The text of a failure in a form that can be displayed: one line, [`Escaped`].
    #[must_use]
    pub fn text(&self) -> String {
        let body = self.body.get(..TEXT_BYTES_MAX).unwrap_or(&self.body);
        let text = String::from_utf8_lossy(body);
        if text.is_empty() { format!("{:?}", self.code) } else { Escaped(&text).to_string() }
    }

    /// The bound address of a successful CONNECT.
    ///
    /// # Errors
    /// Returns an error if the body holds none.
    pub fn bound(&self) -> Result<SocketAddr, HeadError> {
        let mut body = Body::new(&self.body);
        let address = body.socket_address()?;
        body.end()?;
        Ok(address)
    }

    /// Encodes the reply.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.body.len() <= BODY_BYTES_MAX);
        frame(self.code.number(), &self.body)
    }

    /// Reads a reply and nothing after it.
    ///
    /// # Errors
    /// See [`HeadError`].
    pub async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, HeadError> {
        let (number, body) = read_frame(reader).await?;
        Ok(Self { code: ReplyCode::from_number(number), body })
    }

    /// Writes the reply in one piece.
    ///
    /// # Errors
    /// Returns an error if the stream fails.
    pub async fn write<W: AsyncWrite + Unpin>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.encode()).await?;
        writer.flush().await
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}
