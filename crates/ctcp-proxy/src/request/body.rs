//! Fields of a head's body: big-endian numbers, counted bytes, targets.

use std::net::{IpAddr, SocketAddr};

use super::HeadError;
use crate::address::{AddressError, Host, TargetAddress};

/// Kinds of address, numbered as in SOCKS5 (RFC 1928 section 5).
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The body does not match its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It ends inside a field.
    #[error("the body ends inside a field")]
    Short,
    /// Bytes remain after the last field.
    #[error("bytes remain after the last field")]
    Long,
    /// An unknown kind of address.
    #[error("unknown kind of address {0}")]
    AddressKind(u8),
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A way of too many stops.
    #[error("a way of {0} stops, at most {max}", max = super::carry::STOPS_MAX)]
    Stops(usize),
    /// An unknown way to carry datagrams, or a port 0 for it.
    #[error("unknown way to carry datagrams: {0}")]
    Granted(u8),
}

/// Parses fields from the front of a body.
pub(super) struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], BodyError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BodyError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BodyError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(BodyError::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, BodyError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, BodyError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, BodyError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, BodyError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// UTF-8 after a 16-bit length.
    pub(super) fn text(&mut self) -> Result<&'a str, BodyError> {
        let length = usize::from(self.u16()?);
        core::str::from_utf8(self.bytes(length)?).map_err(|_| BodyError::Text)
    }

    pub(super) fn target(&mut self) -> Result<TargetAddress, HeadError> {
        match self.u8()? {
            NAME => {
                let length = usize::from(self.u8()?);
                let name = core::str::from_utf8(self.bytes(length)?).map_err(|_| BodyError::Text)?;
                TargetAddress::new(name, self.u16()?).map_err(HeadError::Target)
            }
            kind => {
                let address = self.address(kind)?;
                match self.u16()? {
                    0 => Err(HeadError::Target(AddressError::Port("0".to_owned()))),
                    port => Ok(SocketAddr::new(address, port).into()),
                }
            }
        }
    }

    /// An address and a port that may be 0: the bound address in a reply.
    pub(super) fn socket_address(&mut self) -> Result<SocketAddr, BodyError> {
        let kind = self.u8()?;
        Ok(SocketAddr::new(self.address(kind)?, self.u16()?))
    }

    fn address(&mut self, kind: u8) -> Result<IpAddr, BodyError> {
        match kind {
            IPV4 => Ok(IpAddr::from(self.array::<4>()?)),
            IPV6 => Ok(IpAddr::from(self.array::<16>()?)),
            unknown => Err(BodyError::AddressKind(unknown)),
        }
    }

    /// What follows the fields that were parsed.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn end(self) -> Result<(), BodyError> {
        if self.0.is_empty() { Ok(()) } else { Err(BodyError::Long) }
    }
}

pub(super) fn put_target(body: &mut Vec<u8>, target: &TargetAddress) {
    match &target.host {
        Host::Address(address) => put_address(body, SocketAddr::new(*address, target.port)),
        Host::Name(name) => {
            let length = u8::try_from(name.len()).expect("names are checked when they are created");
            body.extend([NAME, length]);
            body.extend_from_slice(name.as_bytes());
            body.extend(target.port.to_be_bytes());
        }
    }
}

pub(super) fn put_address(body: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            body.push(IPV4);
            body.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            body.push(IPV6);
            body.extend(ip.octets());
        }
    }
    body.extend(address.port().to_be_bytes());
}

pub(super) fn put_text(body: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("texts are bounded when they are created");
    body.extend(length.to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}
