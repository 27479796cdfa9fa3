//! The server side of SOCKS5 (RFC 1928): no authentication, CONNECT, UDP ASSOCIATE.
//!
//! ```text
//!  client                                   proxy
//!   05 n methods             ------->
//!                            <-------       05 00            (05 ff when "no authentication" is not offered)
//!   05 cmd 00 atyp addr port ------->
//!                            <-------       05 rep 00 atyp addr port
//! ```
//!
//! Every field has an explicit length, and nothing is read beyond the request: bytes that the application sends early
//! stay in its socket until the target is connected. Invalid requests are answered where RFC 1928 defines an answer.
//! The caller bounds the time, and the largest message has 262 bytes. Names go to the server unresolved (`socks5h`).
//!
//! Requirement: C7

use core::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::{AddressError, TargetAddress, UNSPECIFIED};
use crate::request::ReplyCode;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// What an application asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A connection to a target.
    Connect(TargetAddress),
    /// A UDP association.
    Associate {
        /// The port that the application will send from; 0 if it does not know yet. The address that it declares is
        /// not used: behind address translation it is wrong.
        port: u16,
    },
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Socks5Error {
    /// The application's connection failed or ended.
    Stream(#[from] io::Error),
    /// Not SOCKS5; contains the first byte. 4 is SOCKS4, and a capital letter is most likely HTTP.
    Version(u8),
    /// The application offers only methods with authentication.
    NoAcceptableMethod,
    /// A command other than CONNECT and UDP ASSOCIATE. A reply was sent.
    Command(u8),
    /// An unknown kind of address. A reply was sent.
    AddressType(u8),
    /// An invalid target. A reply was sent.
    Target(#[source] AddressError),
}

impl fmt::Display for Socks5Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(error) => write!(formatter, "the application's connection ended: {error}"),
            Self::Version(4) => formatter.write_str("SOCKS4 is not spoken here, SOCKS5 is"),
            Self::Version(first) if first.is_ascii_uppercase() => {
                formatter.write_str("this is the SOCKS5 port, and an HTTP request came")
            }
            Self::Version(first) => write!(formatter, "no SOCKS5: the first byte is {first}"),
            Self::NoAcceptableMethod => {
                formatter.write_str("the application requires authentication, which is not supported")
            }
            Self::Command(2) => formatter.write_str("the command BIND is not supported"),
            Self::Command(command) => write!(formatter, "the command {command} is not supported"),
            Self::AddressType(kind) => write!(formatter, "the address type {kind} is not supported"),
            Self::Target(error) => error.fmt(formatter),
        }
    }
}

/// Reads the greeting and the request, and answers the greeting. Refusals are sent here. For a returned request the
/// caller sends the reply with [`write_reply`].
///
/// # Errors
/// See [`Socks5Error`].
pub async fn handshake<S>(stream: &mut S) -> Result<Asked, Socks5Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let version = stream.read_u8().await?;
    if version != VERSION {
        return Err(Socks5Error::Version(version));
    }
    let mut methods = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NO_ACCEPTABLE_METHOD]).await?;
        return Err(Socks5Error::NoAcceptableMethod);
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    stream.flush().await?;

    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, command, _reserved, kind] = head;
    if version != VERSION {
        return Err(Socks5Error::Version(version));
    }
    // The address is read first, so that every reply follows the whole request, as applications expect.
    let (host, port) = match read_address(stream, kind).await {
        Err(error @ Socks5Error::AddressType(_)) => {
            write_reply(stream, ReplyCode::AddressTypeNotSupported, UNSPECIFIED).await?;
            return Err(error);
        }
        address => address?,
    };
    if command == UDP_ASSOCIATE {
        return Ok(Asked::Associate { port });
    }
    if command != CONNECT {
        write_reply(stream, ReplyCode::CommandNotSupported, UNSPECIFIED).await?;
        return Err(Socks5Error::Command(command));
    }
    match TargetAddress::new(&host, port) {
        Ok(target) => Ok(Asked::Connect(target)),
        Err(error) => {
            write_reply(stream, ReplyCode::GeneralFailure, UNSPECIFIED).await?;
            Err(Socks5Error::Target(error))
        }
    }
}

/// Reads a host, which may be invalid, and a port.
async fn read_address<S: AsyncRead + Unpin>(stream: &mut S, kind: u8) -> Result<(String, u16), Socks5Error> {
    let host = match kind {
        IPV4 => {
            let mut octets = [0; 4];
            stream.read_exact(&mut octets).await?;
            IpAddr::from(octets).to_string()
        }
        IPV6 => {
            let mut octets = [0; 16];
            stream.read_exact(&mut octets).await?;
            IpAddr::from(octets).to_string()
        }
        NAME => {
            let mut name = vec![0; usize::from(stream.read_u8().await?)];
            stream.read_exact(&mut name).await?;
            // Invalid UTF-8 becomes a character that names cannot contain, and is refused.
            String::from_utf8_lossy(&name).into_owned()
        }
        unknown => return Err(Socks5Error::AddressType(unknown)),
    };
    Ok((host, stream.read_u16().await?))
}

/// Sends the reply to a request. Codes that SOCKS5 does not have become general failure.
///
/// # Errors
/// Returns an error if the application's connection fails.
pub async fn write_reply<W: AsyncWrite + Unpin>(
    writer: &mut W,
    code: ReplyCode,
    bound: SocketAddr,
) -> io::Result<()> {
    let mut reply = vec![VERSION, code.socks5(), 0];
    match bound.ip() {
        IpAddr::V4(ip) => {
            reply.push(IPV4);
            reply.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            reply.push(IPV6);
            reply.extend(ip.octets());
        }
    }
    reply.extend(bound.port().to_be_bytes());
    writer.write_all(&reply).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests;
