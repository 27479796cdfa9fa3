//! Names, addresses and endpoints, as several commands need them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use ctcp::{Catalogue, ClientConfig, Endpoint, PathMode, Profile, TransportConfig};
use ctcp_proxy::counters::Counters;
use ctcp_proxy::link::{CtcpConnector, LinkState, LinkTimes, PathChoice, ServerLink, Tickets, Ways};
use tracing::warn;

use crate::args::RemoteArgs;
use crate::error::CliError;
use crate::key_file;

/// Shorter than a proxy's time-out of one attempt, so that the handshake reports why it failed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(4);

/// The limits of a server's or a relay's connections with this profile.
pub(crate) fn transport(profile: Profile, catalogue: &Arc<Catalogue>) -> TransportConfig {
    with_profile(TransportConfig::default(), profile, catalogue)
}

/// The limits of a client's connections with this profile.
pub(crate) fn client_transport(profile: Profile, catalogue: &Arc<Catalogue>) -> TransportConfig {
    with_profile(TransportConfig::for_client(), profile, catalogue)
}

fn with_profile(
    mut transport: TransportConfig,
    profile: Profile,
    catalogue: &Arc<Catalogue>,
) -> TransportConfig {
    transport.profile(profile).catalogue(catalogue.clone()).handshake_timeout(HANDSHAKE_TIMEOUT);
    transport
}

/// The address under which programs on this machine reach a socket bound to `listen`.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
    let address = match listen.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    SocketAddr::new(address, listen.port())
}

/// The address under which other machines probably reach a socket bound to `listen`, if it is known.
pub(crate) fn reachable_from_outside(listen: IpAddr) -> Option<IpAddr> {
    if listen.is_unspecified() { source_address(listen) } else { Some(listen) }
}

/// The address from which this machine would send to the internet, determined without sending a packet.
fn source_address(any: IpAddr) -> Option<IpAddr> {
    let source = |any: IpAddr, far: IpAddr| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((far, 9)).ok()?; // discard
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
    };
    // Documentation addresses (RFC 5737, RFC 3849): they use the default route.
    let v4 = source(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let v6 = || source(any, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into());
    v4.or_else(|| any.is_ipv6().then(v6).flatten())
}

/// Creates a client's link to the server of `remote`; it starts to connect at once.
pub(crate) fn link(
    remote: &RemoteArgs,
    profile: Profile,
    catalogue: &Arc<Catalogue>,
) -> Result<(Endpoint, ServerLink<CtcpConnector>), CliError> {
    let secret_key = key_file::read_of_client(&remote.key)?;
    let own_key = secret_key.public_key();
    let mut config = ClientConfig::new(secret_key);
    let mut transport = client_transport(profile, catalogue);
    transport.tickets(remote.ticket_file.is_some());
    let ways = Ways::new(&remote.via).map_err(|error| CliError::usage(format!("--via: {error}")))?;
    let has_several = ways.count() > 1 || remote.path.len() > 1 || remote.path.contains(&PathChoice::Auto);
    if remote.paths != PathMode::default() && !has_several {
        warn!(
            "--paths {} has no effect with a single path: repeat --path, or separate relays by commas in --via",
            remote.paths
        );
    }
    transport.path_mode(remote.paths).further_paths(!remote.path.is_empty() || ways.count() > 1);
    config.transport(transport);
    let endpoint = Endpoint::client(config)
        .map_err(|error| CliError::failure(format!("cannot open a UDP socket: {error}")))?;
    let mut connector = CtcpConnector::new(endpoint.clone(), remote.server.clone(), remote.server_key)
        .with_own_key(own_key)
        .with_paths(remote.path.clone())
        .with_via(ways);
    if let Some(file) = &remote.ticket_file {
        connector = connector.with_tickets(Tickets::in_file(file.clone()));
    }
    let counters = Arc::new(Counters::new("client"));
    Ok((endpoint, ServerLink::start(connector, LinkTimes::default(), counters)))
}

/// The profile granted on the link's current connection, as text.
pub(crate) fn granted(link: &ServerLink<CtcpConnector>) -> String {
    match &*link.state().borrow() {
        LinkState::Connected { connection, .. } => connection.profile().map(|profile| profile.to_string()),
        LinkState::Connecting { .. } => None,
    }
    .unwrap_or_else(|| "unknown".to_owned())
}
