//! `ctcp relay`: carries datagrams between clients and servers.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use ctcp::{Catalogue, ClientPolicy, Endpoint, HopRepair, PublicKey, ServerConfig};
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::relay::{Destinations, Mode, Relay, RelayLimits};
use ctcp_proxy::target_policy::TargetPolicy;
use tracing::info;

use crate::args::{RelayArgs, RelayMode};
use crate::error::CliError;
use crate::metrics::{self, RelayFigures};
use crate::{allocator, key_file, network, open_files};

/// Open files that a client needs of a relay that forwards: two sockets, and as many for all else.
const FILES_PER_WAY: usize = 4;

/// Connections that a client may have beside its ways: those that have just begun or ended.
const CONNECTIONS_SPARE: usize = 16;

/// Carries until it is interrupted.
pub(crate) async fn run(args: &RelayArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    let listener = metrics::start(args.common.metrics)?;
    let secret_key = key_file::read_or_make(&args.key)?;
    let public_key = secret_key.public_key();
    let destinations = destinations(args, public_key)?;
    let policy = ClientPolicy::Listed(args.client.iter().copied().collect());
    let mut config = ServerConfig::new(args.listen, secret_key, policy);
    let mut transport = network::transport(args.common.profile(catalogue)?, catalogue);
    transport.relay_window(args.window);
    let mut limits = RelayLimits::default();
    if args.mode == RelayMode::Forward {
        limits.ways = limits.ways.min(open_files::raise_limit() / FILES_PER_WAY);
    }
    // A client may be another relay, with a connection for each of its own clients.
    config
        .transport(transport)
        .relays(args.client.iter().copied())
        .connections_per_relay(limits.ways_of_client() + CONNECTIONS_SPARE);
    let endpoint = Endpoint::server(config)
        .map_err(|error| CliError::failure(format!("cannot listen on {}: {error}", args.listen)))?;
    announce(&endpoint, args, &public_key);
    let mode = match args.mode {
        RelayMode::Recode => Mode::Repair(HopRepair::Combinations),
        RelayMode::Repeat => Mode::Repair(HopRepair::Repetitions),
        RelayMode::Forward => Mode::Forward,
    };
    let relay = Relay::new(destinations, mode, limits);
    let _metrics = metrics::publish(listener, RelayFigures::of(&relay, &endpoint))?;
    // Its connections must outlast it, so that they are closed with the reason.
    let mut serving = pin!(relay.serve(&endpoint));
    let serve = async {
        tokio::select! {
            () = &mut serving => {}
            () = allocator::give_back(&endpoint) => {}
            _ = super::interrupted() => info!("interrupted: closing connections"),
        }
    };
    super::unless_lost(&endpoint, serve).await?;
    // Not 0: what the ways carried is not over.
    super::close_with(&endpoint, 1, "the relay was stopped").await;
    Ok(())
}

/// Where it carries.
fn destinations(args: &RelayArgs, own: PublicKey) -> Result<Destinations, CliError> {
    if let Some(stop) = args.to.iter().find(|stop| stop.key == own) {
        return Err(CliError::usage(format!("--to {stop}: this is the key of the relay itself")));
    }
    let named = Destinations::new(own, args.to.clone());
    if args.allow_target.is_empty() {
        return Ok(named);
    }
    if args.mode == RelayMode::Forward {
        return Err(CliError::usage(
            "--allow-target with --mode forward would forward to any UDP port there: name the stops with --to",
        ));
    }
    let policy = TargetPolicy::new(args.allow_target.clone(), args.deny_target.clone());
    let policy = policy.map_err(|error| CliError::usage(error.to_string()))?;
    Ok(named.or_allowed_by(Dialer::new(policy)))
}

/// Prints what servers and clients need to know.
#[expect(clippy::print_stdout, reason = "the lines to paste are the result")]
fn announce(endpoint: &Endpoint, args: &RelayArgs, public_key: &PublicKey) {
    let listening = endpoint.local_addr().unwrap_or(args.listen);
    info!(%listening, "listening");
    if args.mode != RelayMode::Forward {
        println!("servers take datagrams from this relay with: --relay {public_key}");
    }
    let port = listening.port();
    let address = network::reachable_from_outside(listening.ip())
        .map_or_else(|| format!("RELAY_ADDRESS:{port}"), |ip| SocketAddr::new(ip, port).to_string());
    println!("clients use it with: --via {address}={public_key}");
}
