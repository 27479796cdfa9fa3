//! The server side of an HTTP/1.1 proxy (RFC 9110, RFC 9112).
//!
//! ```text
//!  CONNECT host:443 HTTP/1.1            a tunnel, as browsers and curl use for https
//!  GET http://host/path HTTP/1.1        one plain request, rewritten and sent on (`http_proxy=` of curl and wget)
//!  GET /proxy.pac HTTP/1.1              a request to the proxy itself
//! ```
//!
//! A plain request is the only one of its connection: `Connection: close` goes to both sides, the request's body ends
//! where its framing says, and whatever an application sends behind it is dropped instead of reaching a server it was
//! not meant for. Bodies are streamed in both directions; heads are bounded by [`HEAD_BYTES_MAX`].
//!
//! Requirement: C7

use core::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::{AddressError, TargetAddress};
use crate::request::ReplyCode;

mod framing;
mod head;
mod local_page;
mod request_body;
mod response_head;

pub use framing::Framing;
pub use local_page::{LocalPage, LocalStatus};
pub use request_body::RequestBody;
pub use response_head::ResponseHead;

use head::Head;

/// Longest head of a request or response in bytes. Browsers and servers stop at 8 to 64 KiB.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What an application asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpRequest {
    /// A tunnel to a target.
    Tunnel {
        /// Where to.
        target: TargetAddress,
        /// Bytes that came with the head and belong into the tunnel.
        early: Vec<u8>,
    },
    /// One plain request.
    Plain {
        /// Where to.
        target: TargetAddress,
        /// The rewritten head and the first bytes of the body.
        early: Vec<u8>,
        /// How much of the body is still to come.
        framing: Framing,
    },
    /// A page of the proxy itself.
    Local(LocalPage),
}

/// Why there is no request: a status and a sentence, or a connection that ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpError {
    /// The application's connection failed or ended.
    Stream(io::Error),
    /// Something that is answered with this status and text.
    Status(Status, String),
}

/// A status code of RFC 9110 section 15 with its phrase.
pub type Status = (u16, &'static str);

pub(crate) const OK: Status = (200, "OK");
const BAD_REQUEST: Status = (400, "Bad Request");
const FORBIDDEN: Status = (403, "Forbidden");
const NOT_FOUND: Status = (404, "Not Found");
const METHOD_NOT_ALLOWED: Status = (405, "Method Not Allowed");
const HEAD_TOO_LARGE: Status = (431, "Request Header Fields Too Large");
const NOT_IMPLEMENTED: Status = (501, "Not Implemented");
const BAD_GATEWAY: Status = (502, "Bad Gateway");
pub(crate) const UNAVAILABLE: Status = (503, "Service Unavailable");
const GATEWAY_TIMEOUT: Status = (504, "Gateway Timeout");
const VERSION_NOT_SUPPORTED: Status = (505, "HTTP Version Not Supported");

impl fmt::Display for HttpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(error) => write!(formatter, "the application's connection ended: {error}"),
            Self::Status((code, phrase), text) => write!(formatter, "{code} {phrase}: {text}"),
        }
    }
}

impl core::error::Error for HttpError {}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

impl From<AddressError> for HttpError {
    fn from(error: AddressError) -> Self {
        bad_request(error.to_string())
    }
}

fn bad_request(text: impl Into<String>) -> HttpError {
    HttpError::Status(BAD_REQUEST, text.into())
}

/// Reads one head and says what it asks.
///
/// # Errors
/// See [`HttpError`]; answering it is the caller's: [`write_failure`].
pub async fn read_request<R: AsyncRead + Unpin>(reader: &mut R) -> Result<HttpRequest, HttpError> {
    let (head, rest) = read_head(reader).await?;
    Head::parse(&head)?.into_request(rest)
}

/// The head up to and with its empty line, and the bytes behind it that were read with it.
async fn read_head<R: AsyncRead + Unpin>(reader: &mut R) -> Result<(Vec<u8>, Vec<u8>), HttpError> {
    let mut bytes = Vec::with_capacity(1024);
    let mut searched = 0;
    loop {
        if reader.read_buf(&mut bytes).await? == 0 {
            return Err(HttpError::Stream(io::ErrorKind::UnexpectedEof.into()));
        }
        // Empty lines before a request are ignored (RFC 9112 section 2.2).
        while bytes.starts_with(b"\r\n") {
            bytes.drain(..2);
            searched = 0;
        }
        if let Some(end) = head_end(&bytes, searched) {
            if end > HEAD_BYTES_MAX {
                break;
            }
            let rest = bytes.split_off(end);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD_BYTES_MAX {
            break;
        }
        // A TLS hello or a binary protocol would otherwise be waited upon until the time-out.
        if bytes.first().is_some_and(|first| !first.is_ascii_graphic()) && !bytes.starts_with(b"\r") {
            return Err(bad_request("this is an HTTP proxy, and what came is not HTTP"));
        }
        searched = bytes.len().saturating_sub(3);
    }
    Err(HttpError::Status(
        HEAD_TOO_LARGE,
        format!("the head of the request has more than {HEAD_BYTES_MAX} bytes"),
    ))
}

/// The index behind the empty line, searched from `from` on.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let found = bytes.get(from..)?.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(from + found + 4)
}

/// Tells the application that its tunnel is there.
///
/// # Errors
/// When the application's connection fails.
pub async fn write_connected<W: AsyncWrite + Unpin>(writer: &mut W) -> io::Result<()> {
    writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    writer.flush().await
}

/// Answers with a status and a sentence in plain text, and that the connection ends.
///
/// # Errors
/// When the application's connection fails.
pub async fn write_failure<W: AsyncWrite + Unpin>(
    writer: &mut W,
    status: Status,
    text: &str,
) -> io::Result<()> {
    let body = format!("ctcp: {text}\n");
    write_page(writer, status, "text/plain; charset=utf-8", &body, true).await
}

/// Answers with a page; without its body when `with_body` is false (HEAD).
///
/// # Errors
/// When the application's connection fails.
pub async fn write_page<W: AsyncWrite + Unpin>(
    writer: &mut W,
    (code, phrase): Status,
    content_type: &str,
    body: &str,
    with_body: bool,
) -> io::Result<()> {
    let length = body.len();
    let mut page = format!(
        "HTTP/1.1 {code} {phrase}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    if with_body {
        page.push_str(body);
    }
    writer.write_all(page.as_bytes()).await?;
    writer.flush().await
}

/// The status that says the same as a reply of the server.
#[must_use]
pub fn status_of(code: ReplyCode) -> Status {
    match code {
        ReplyCode::NotAllowed => FORBIDDEN,
        ReplyCode::TimedOut => GATEWAY_TIMEOUT,
        ReplyCode::TooManyStreams => UNAVAILABLE,
        _ => BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests;
