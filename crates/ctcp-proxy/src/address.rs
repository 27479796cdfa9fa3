//! The target of a proxied connection: a name or an address, and a port.
//!
//! Names are not resolved here but by the reverse proxy (`socks5h`), so they mean what they mean at the server. All
//! input comes from applications or from the peer, so parsing never panics and enforces limits.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest name in bytes: one length byte on the wire, and the limit of DNS (RFC 1035 section 2.3.4).
pub const NAME_BYTES_MAX: usize = 255;

/// A name or an address, without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name to be resolved at the server: 1 to [`NAME_BYTES_MAX`] letters, digits, `-`, `_` and dots.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// A host and a port: what a proxied connection connects to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetAddress {
    /// The name or address.
    pub host: Host,
    /// The TCP port, not 0.
    pub port: u16,
}

/// Why a text is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The host is missing.
    #[error("there is no host name or address")]
    EmptyHost,
    /// More than [`NAME_BYTES_MAX`] bytes.
    #[error("the host name has more than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    /// A character that host names cannot contain.
    #[error("a host name cannot contain {0:?} (names beyond ASCII need xn-- form)")]
    NameCharacter(char),
    /// No `:PORT` at the end.
    #[error("the port is missing: write HOST:PORT")]
    MissingPort,
    /// The port is not a number from 1 to 65535.
    #[error("{0:?} is not a port (1 to 65535)")]
    Port(String),
    /// An IPv6 address with a port needs brackets.
    #[error("write an IPv6 address with a port as [ADDRESS]:PORT")]
    Brackets,
}

impl Host {
    /// Parses a host without a port: an address (IPv6 with or without brackets) or a name.
    ///
    /// # Errors
    /// Returns an error if the text is neither.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        if let Some(inner) = bare {
            return inner
                .parse::<Ipv6Addr>()
                .map(|ip| Self::Address(ip.into()))
                .map_err(|_| AddressError::Brackets);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address));
        }
        if text.is_empty() {
            return Err(AddressError::EmptyHost);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(AddressError::NameTooLong);
        }
        let is_allowed = |character: &char| character.is_ascii_alphanumeric() || "-_.".contains(*character);
        if let Some(character) = text.chars().find(|character| !is_allowed(character)) {
            return Err(AddressError::NameCharacter(character));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl TargetAddress {
    /// Creates a target from its parts.
    ///
    /// # Errors
    /// Returns an error if the host is invalid or the port is 0.
    pub fn new(host: &str, port: u16) -> Result<Self, AddressError> {
        if port == 0 {
            return Err(AddressError::Port(port.to_string()));
        }
        Ok(Self { host: Host::parse(host)?, port })
    }

    /// Parses `HOST:PORT`, or a host alone if there is a `default_port`.
    ///
    /// # Errors
    /// Returns an error if the host or the port is invalid, or if the port is missing and there is no default.
    pub fn parse_with_default(text: &str, default_port: Option<u16>) -> Result<Self, AddressError> {
        let (host, port) = split_port(text)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None if default_port.is_none() && host.parse::<Ipv6Addr>().is_ok() => {
                return Err(AddressError::Brackets);
            }
            None => default_port.ok_or(AddressError::MissingPort)?,
        };
        Self::new(host, port)
    }
}

/// Splits the port off, if the text has one. A bare IPv6 address has none.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<&str>), AddressError> {
    if text.starts_with('[') {
        let end = text.find(']').ok_or(AddressError::Brackets)?;
        let (host, rest) = text.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(AddressError::Brackets),
        };
    }
    match text.rsplit_once(':') {
        None => Ok((text, None)),
        Some((host, _)) if host.contains(':') => {
            if text.parse::<Ipv6Addr>().is_ok() {
                Ok((text, None))
            } else {
                Err(AddressError::Brackets)
            }
        }
        Some((host, port)) => Ok((host, Some(port))),
    }
}

/// Parses a port from 1 to 65535 that consists of digits only (`u16::from_str` would accept a sign).
pub(crate) fn parse_port(digits: &str) -> Result<u16, AddressError> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse::<u16>() {
        Ok(port) if is_number && port != 0 => Ok(port),
        _ => Err(AddressError::Port(digits.to_owned())),
    }
}

impl FromStr for TargetAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse_with_default(text, None)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]:{}", self.port),
            host => write!(formatter, "{host}:{}", self.port),
        }
    }
}

impl From<SocketAddr> for TargetAddress {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Address(address.ip()), port: address.port() }
    }
}

/// The address that stands for "unknown" in replies.
pub const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_read_and_written_in_the_usual_form() {
        for (text, written) in [
            ("example.com:80", "example.com:80"),
            ("10.0.0.1:443", "10.0.0.1:443"),
            ("[::1]:22", "[::1]:22"),
            ("[2001:DB8::1]:65535", "[2001:db8::1]:65535"),
            ("under_score-1.example:1", "under_score-1.example:1"),
        ] {
            assert_eq!(
                text.parse::<TargetAddress>().map(|target| target.to_string()),
                Ok(written.to_owned())
            );
        }
    }

    #[test]
    fn invalid_targets_are_refused_with_the_reason() {
        for (text, error) in [
            ("", AddressError::MissingPort),
            (":80", AddressError::EmptyHost),
            ("example.com", AddressError::MissingPort),
            ("example.com:", AddressError::Port(String::new())),
            ("example.com:0", AddressError::Port("0".into())),
            ("example.com:65536", AddressError::Port("65536".into())),
            ("example.com:+80", AddressError::Port("+80".into())),
            ("::1", AddressError::Brackets),
            ("::1:zz", AddressError::Brackets),
            ("[::1", AddressError::Brackets),
            ("[::1]80", AddressError::Brackets),
            ("[127.0.0.1]:80", AddressError::Brackets),
            ("ex ample:80", AddressError::NameCharacter(' ')),
            ("a\0b:80", AddressError::NameCharacter('\0')),
            ("user@host:80", AddressError::NameCharacter('@')),
        ] {
            assert_eq!(text.parse::<TargetAddress>(), Err(error), "{text:?}");
        }
        let long = format!("{}:80", "a".repeat(256));
        assert_eq!(long.parse::<TargetAddress>(), Err(AddressError::NameTooLong));
    }

    #[test]
    fn an_address_in_place_of_a_name_is_parsed_as_an_address() {
        assert_eq!(Host::parse("127.0.0.1"), Ok(Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST))));
        assert_eq!(Host::parse("::1"), Ok(Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST))));
    }

    proptest! {
        #[test]
        fn random_text_never_panics_and_a_parsed_target_survives_formatting(text in "\\PC{0,40}") {
            if let Ok(target) = text.parse::<TargetAddress>() {
                prop_assert_eq!(target.to_string().parse::<TargetAddress>(), Ok(target));
            }
        }
    }
}
