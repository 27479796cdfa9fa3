//! A fixed forward: connections or datagrams to a local address are carried to one target.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::address::{AddressError, TargetAddress, parse_port};

/// What a forward carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardProtocol {
    /// Connections.
    #[default]
    Tcp,
    /// Connections that need low latency.
    TcpLowLatency,
    /// Datagrams.
    Udp,
}

/// `LISTEN=TARGET`, `low-latency:LISTEN=TARGET` or `udp:LISTEN=TARGET`: a local address, or only a port of 127.0.0.1, and the target of its connections or datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Connections or datagrams.
    pub protocol: ForwardProtocol,
    /// The local address to listen on.
    pub listen: SocketAddr,
    /// The target, as the server sees it.
    pub target: TargetAddress,
}

impl ForwardProtocol {
    const ALL: [Self; 3] = [Self::Udp, Self::TcpLowLatency, Self::Tcp];

    /// What such a forward begins with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Tcp => "",
            Self::TcpLowLatency => "low-latency:",
            Self::Udp => "udp:",
        }
    }
}

/// Why a text is not a forward.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// There is no `=`.
    #[error("write a forward as LISTEN=TARGET, like 127.0.0.1:8080=example.com:80")]
    NoTarget,
    /// The left side is neither `ADDRESS:PORT` nor `PORT`.
    #[error("{0:?} is not an address to listen on: write ADDRESS:PORT, or PORT for 127.0.0.1")]
    Listen(String),
    /// The right side is not a valid target.
    #[error(transparent)]
    Target(#[from] AddressError),
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let (protocol, text) = ForwardProtocol::ALL
            .into_iter()
            .find_map(|protocol| Some((protocol, text.strip_prefix(protocol.prefix())?)))
            .unwrap_or((ForwardProtocol::Tcp, text));
        let (listen, target) = text.split_once('=').ok_or(ForwardError::NoTarget)?;
        let listen = match parse_port(listen) {
            Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            Err(_) => listen.parse().map_err(|_| ForwardError::Listen(listen.to_owned()))?,
        };
        Ok(Self { protocol, listen, target: target.parse().map_err(ForwardError::Target)? })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}={}", self.protocol.prefix(), self.listen, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_parsed_and_formatted() {
        for (text, written) in [
            ("8080=example.com:80", "127.0.0.1:8080=example.com:80"),
            ("0.0.0.0:53=[::1]:5353", "0.0.0.0:53=[::1]:5353"),
            ("[::1]:1=10.0.0.1:2", "[::1]:1=10.0.0.1:2"),
            ("low-latency:2222=10.0.0.1:22", "low-latency:127.0.0.1:2222=10.0.0.1:22"),
            ("udp:5353=9.9.9.9:53", "udp:127.0.0.1:5353=9.9.9.9:53"),
            ("udp:[::1]:53=dns.example:53", "udp:[::1]:53=dns.example:53"),
        ] {
            assert_eq!(text.parse::<Forward>().map(|forward| forward.to_string()), Ok(written.to_owned()));
        }
    }

    #[test]
    fn invalid_forwards_are_refused_with_the_reason() {
        assert_eq!("8080".parse::<Forward>(), Err(ForwardError::NoTarget));
        assert_eq!("udp:53".parse::<Forward>(), Err(ForwardError::NoTarget));
        assert_eq!("tcp:1=a:1".parse::<Forward>(), Err(ForwardError::Listen("tcp:1".into())));
        assert_eq!("x=a:1".parse::<Forward>(), Err(ForwardError::Listen("x".into())));
        assert_eq!("=a:1".parse::<Forward>(), Err(ForwardError::Listen(String::new())));
        assert_eq!("99999=a:1".parse::<Forward>(), Err(ForwardError::Listen("99999".into())));
        assert_eq!("1=a".parse::<Forward>(), Err(ForwardError::Target(AddressError::MissingPort)));
    }
}
