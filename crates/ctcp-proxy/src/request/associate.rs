//! UDP associations: their request, their messages, and notices on their stream (PROTOCOL.md section 9).
//!
//! ```text
//!  ASSOCIATE  number (32), flags (8)                 flags: 1 answers from any address, 2 only one target
//!             reply: flags (8)                       those that are granted
//!  message    number (32), address, datagram         the address is the target, or the source of an answer
//!  notice     a reply head: code, address, text      why datagrams to a target were dropped
//! ```
//!
//! From its fourth byte on, a message is the UDP datagram of SOCKS5 from its FRAG on, so that a SOCKS5 relay copies
//! nothing.

use std::io;

use ctcp_base::Escaped;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::body::{Body, BodyError, put_target};
use super::{HeadError, Reply, ReplyCode, TEXT_BYTES_MAX};
use crate::address::TargetAddress;

/// A request to exchange UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Associate {
    /// Names the association in messages. The client chooses it; no open association of the connection has the same.
    pub number: u32,
    /// Answers from addresses that were not contacted are wanted as well.
    pub full_cone: bool,
    /// All datagrams have the same target, so the server can tell that nothing listens there.
    pub single: bool,
}

impl Associate {
    const FULL_CONE: u8 = 1;
    const SINGLE: u8 = 2;

    pub(super) fn write(self, body: &mut Vec<u8>) {
        body.extend(self.number.to_be_bytes());
        body.push(self.flags());
    }

    fn flags(self) -> u8 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.full_cone, Self::FULL_CONE) | flag(self.single, Self::SINGLE)
    }

    /// Flags of later versions are ignored; the reply tells that they are not granted.
    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, BodyError> {
        Ok(Self::with_flags(body.u32()?, body.u8()?))
    }

    fn with_flags(number: u32, flags: u8) -> Self {
        Self { number, full_cone: flags & Self::FULL_CONE != 0, single: flags & Self::SINGLE != 0 }
    }

    /// Encodes it as the reply that grants it.
    #[must_use]
    pub fn reply(self) -> Reply {
        Reply { code: ReplyCode::Succeeded, body: vec![self.flags()] }
    }

    /// Decodes what a successful reply to this request grants.
    ///
    /// # Errors
    /// Returns an error if the body holds something else.
    pub fn granted(self, reply: &Reply) -> Result<Self, HeadError> {
        let mut body = Body::new(&reply.body);
        let flags = body.u8()?;
        body.end()?;
        Ok(Self::with_flags(self.number, flags))
    }
}

/// Tells a client why datagrams to a target were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The reason.
    pub code: ReplyCode,
    /// The target as the client named it.
    pub target: TargetAddress,
    /// The reason for people: one line, [`Escaped`].
    pub text: String,
}

impl Notice {
    /// Reads the next notice.
    ///
    /// # Errors
    /// Returns an error if the stream ends, or something else follows.
    pub async fn read<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Self, HeadError> {
        let Reply { code, body } = Reply::read(reader).await?;
        let mut body = Body::new(&body);
        let target = body.target()?;
        let text = body.rest();
        let text = String::from_utf8_lossy(text.get(..TEXT_BYTES_MAX).unwrap_or(text));
        Ok(Self { code, target, text: Escaped(&text).to_string() })
    }

    /// Writes it in one piece.
    ///
    /// # Errors
    /// Returns an error if the stream fails.
    pub async fn write<W: AsyncWrite + Unpin>(&self, writer: &mut W) -> io::Result<()> {
        let mut body = Vec::new();
        put_target(&mut body, &self.target);
        body.extend(Reply::failure(self.code, &self.text).body);
        writer.write_all(&Reply { code: self.code, body }.encode()).await?;
        writer.flush().await
    }
}

/// Writes what precedes the datagram in a message.
pub(crate) fn put_datagram_head(message: &mut Vec<u8>, number: u32, target: &TargetAddress) {
    message.extend(number.to_be_bytes());
    put_target(message, target);
}

/// Parses the association's number at the beginning of a message.
pub(crate) fn split_number(message: &[u8]) -> Result<(u32, &[u8]), BodyError> {
    let mut body = Body::new(message);
    Ok((body.u32()?, body.rest()))
}

/// Parses an address and returns it with the datagram that follows.
pub(crate) fn split_datagram(bytes: &[u8]) -> Result<(TargetAddress, &[u8]), HeadError> {
    let mut body = Body::new(bytes);
    Ok((body.target()?, body.rest()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::Request;

    fn target(text: &str) -> TargetAddress {
        text.parse().unwrap()
    }

    #[test]
    fn an_association_has_the_documented_bytes() {
        let request = Associate { number: 7, full_cone: true, single: false };
        assert_eq!(Request::Associate(request).encode(), b"\x01\x04\x00\x05\0\0\0\x07\x01");
        assert_eq!(request.reply().encode(), b"\x01\x00\x00\x01\x01");
        let mut message = Vec::new();
        put_datagram_head(&mut message, 7, &target("192.0.2.1:53"));
        message.extend(b"?");
        assert_eq!(message, b"\0\0\0\x07\x01\xc0\0\x02\x01\0\x35?");
    }

    #[test]
    fn only_what_was_granted_is_used() {
        let asked = Associate { number: 7, full_cone: true, single: true };
        let denied = Associate { full_cone: false, single: false, ..asked };
        assert_eq!(asked.granted(&denied.reply()).unwrap(), denied);
        for body in [&b""[..], b"\0\0"] {
            let reply = Reply { code: ReplyCode::Succeeded, body: body.to_vec() };
            assert!(asked.granted(&reply).is_err(), "{body:?}");
        }
    }

    #[tokio::test]
    async fn notices_follow_each_other_on_a_stream() {
        let notice = |text: &str| Notice {
            code: ReplyCode::NotAllowed,
            target: target("a.example:53"),
            text: text.to_owned(),
        };
        let mut stream = Vec::new();
        notice("no").write(&mut stream).await.unwrap();
        notice("never\n").write(&mut stream).await.unwrap();
        notice(&"ä".repeat(400)).write(&mut stream).await.unwrap();
        let mut reader = &stream[..];
        assert_eq!(Notice::read(&mut reader).await.unwrap(), notice("no"));
        assert_eq!(Notice::read(&mut reader).await.unwrap().text, "never\\n");
        assert_eq!(Notice::read(&mut reader).await.unwrap().text, "ä".repeat(256));
        assert!(Notice::read(&mut reader).await.is_err());
    }

    #[test]
    fn a_message_that_ends_inside_its_head_is_refused() {
        for address in ["192.0.2.1:53", "[2001:db8::1]:53", "a.example:53"] {
            let mut message = Vec::new();
            put_datagram_head(&mut message, u32::MAX, &target(address));
            for length in 0..message.len() {
                let split = split_number(&message[..length]).map(|(_, rest)| split_datagram(rest).is_ok());
                assert!(!matches!(split, Ok(true)), "{address} {length}");
            }
            let (number, rest) = split_number(&message).unwrap();
            assert_eq!((number, split_datagram(rest).unwrap()), (u32::MAX, (target(address), &[][..])));
        }
    }

    #[test]
    fn invalid_addresses_of_messages_are_refused() {
        for bytes in [
            &b"\x00\x01\x02\x03\x04\0\x35"[..], // unknown kinds
            b"\x02\x01\x02\x03\x04\0\x35",
            b"\x05\x01\x02\x03\x04\0\x35",
            b"\x01\x01\x02\x03\x04\0\0", // port 0
            b"\x03\x01a\0\0",
            b"\x03\x00\0\x35",         // no name
            b"\x03\x02\xff\xfe\0\x35", // no text
            b"\x03\x03a\0b\0\x35",     // characters that names do not have
            b"\x03\x03a b\0\x35",
        ] {
            assert!(split_datagram(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn random_messages_never_panic_and_parsed_ones_encode_to_the_same_bytes(
            number: u32, kind in 0u8..6, noise in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [&number.to_be_bytes()[..], &[kind], &noise].concat();
            let (parsed, rest) = split_number(&bytes).unwrap();
            if let Ok((target, datagram)) = split_datagram(rest) {
                let mut again = Vec::new();
                put_datagram_head(&mut again, parsed, &target);
                again.extend(datagram);
                // A name that is an address gets the kind of the address.
                let (_, rest) = split_number(&again).unwrap();
                prop_assert_eq!(split_datagram(rest).unwrap(), (target, datagram));
                prop_assert!(kind == 3 || again == bytes);
            }
        }
    }
}
