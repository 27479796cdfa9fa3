//! Names, addresses and endpoints, as several commands need them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ctcp::{ClientConfig, Endpoint, Profile, ProfileName, TransportConfig};

use crate::error::CliError;

/// The limits of a connection with this profile.
pub(crate) fn transport(profile: ProfileName) -> TransportConfig {
    TransportConfig { profile: Profile::named(profile), ..TransportConfig::default() }
}

/// Checks `HOST:PORT` without resolving it: the host may be a name, an IPv4 address or an IPv6 address in brackets.
pub(crate) fn split_host_port(text: &str) -> Result<(String, u16), CliError> {
    let wrong = || CliError::usage(format!("`{text}` is not HOST:PORT (IPv6 as [::1]:443)"));
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().ok().filter(|&port| port > 0).ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(inside) if inside.parse::<Ipv6Addr>().is_ok() => Ok((inside.to_owned(), port)),
        None if !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']) => Ok((host.to_owned(), port)),
        _ => Err(wrong()),
    }
}

/// The local socket address for `--path`.
pub(crate) fn bind_address(path: Option<IpAddr>) -> Option<SocketAddr> {
    path.map(|address| SocketAddr::new(address, 0))
}

/// The address under which others on this machine reach a socket bound to `listen`.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
    let address = match listen.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    SocketAddr::new(address, listen.port())
}

/// An endpoint that connects.
pub(crate) fn client_endpoint(config: ClientConfig) -> Result<Endpoint, CliError> {
    let bind = config.bind;
    Endpoint::client(config).map_err(|error| match bind {
        Some(address) => CliError::failure(format!("cannot send from {}: {error}", address.ip())),
        None => CliError::failure(format!("cannot open a UDP socket: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        assert_eq!(split_host_port("a.example:443").ok(), Some(("a.example".to_owned(), 443)));
        assert_eq!(split_host_port("[::1]:80").ok(), Some(("::1".to_owned(), 80)));
        assert_eq!(split_host_port("192.0.2.1:1").ok(), Some(("192.0.2.1".to_owned(), 1)));
        for wrong in ["", "a", "a:", ":1", "a:0", "a:65536", "::1:80", "[x]:1", "a b:1", "http://a:1"] {
            assert!(split_host_port(wrong).is_err(), "{wrong}");
        }
    }
}
