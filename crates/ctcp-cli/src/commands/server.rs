//! `ctcp server`: the reverse proxy.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ctcp::{Catalogue, ClientPolicy, Endpoint, PublicKey, ServerConfig};
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::TargetPolicy;
use tracing::{info, warn};

use crate::args::ServerArgs;
use crate::clients_file::{ClientList, Clients, Hangups};
use crate::error::CliError;
use crate::metrics::{self, ServerFigures};
use crate::{allocator, key_file, network, open_files};

/// How long a client may be silent, for example because its machine sleeps. Its own time-out is shorter: a server that does not answer is
/// gone.
const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// What the handshake carries (PROTOCOL.md section 3.1).
const FURTHER_ADDRESSES_MAX: usize = 8;

/// The placeholder for the server's address if it is unknown.
const PLACEHOLDER: &str = "SERVER_ADDRESS";

/// Serves until it is interrupted.
pub(crate) async fn run(args: &ServerArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    if args.further_address.len() > FURTHER_ADDRESSES_MAX {
        return Err(CliError::usage(format!(
            "--further-address may be given {FURTHER_ADDRESSES_MAX} times at most"
        )));
    }
    if let Some(missed) = args.further_address.iter().find(|address| !covers(args.listen, **address)) {
        warn!(listen = %args.listen, address = %missed, "--listen does not cover a further address: something must forward its packets");
    }
    let clients = clients(args).await?;
    // Installed before any client can connect.
    let mut hangups = Hangups::new();
    let mut limits = ServerLimits::for_open_files(open_files::raise_limit());
    limits.udp.full_cone = args.udp_full_cone;
    let dialer = Dialer::new(target_policy(args)?);
    let files =
        args.files.as_deref().map(|folder| open_files_folder(folder, args.files_write)).transpose()?;
    let listener = metrics::start(args.common.metrics)?;
    let secret_key = key_file::read_or_make(&args.key)?;
    let public_key = secret_key.public_key();
    let policy = clients.clients().map_or(ClientPolicy::Any, Clients::policy);
    let mut config = ServerConfig::new(args.listen, secret_key, policy);
    let profile = args.common.profile(catalogue)?;
    let mut transport = network::transport(profile, catalogue);
    transport.idle_timeout(CLIENT_IDLE_TIMEOUT);
    config.transport(transport).further_addresses(args.further_address.clone());
    config.grant(args.grant(catalogue)?).memory(args.memory).relays(args.relay.iter().copied());
    let endpoint = Endpoint::server(config)
        .map_err(|error| CliError::failure(format!("cannot listen on {}: {error}", args.listen)))?;
    let listening = endpoint.local_addr().unwrap_or(args.listen);
    announce(listening, &public_key);
    let proxy = ReverseProxy::new(dialer, files, limits);
    if let Some(clients) = clients.clients() {
        clients.name_in(&endpoint, &proxy);
    }
    proxy.accept_relays(args.relay.iter().copied());
    let _publisher = metrics::publish(listener, ServerFigures::of(&proxy, &endpoint))?;
    // Its connections must outlast it, so that they are closed with the reason.
    let mut serving = pin!(proxy.serve(&endpoint));
    let serve = async {
        tokio::select! {
            () = &mut serving => {}
            () = clients.follow(&mut hangups, &endpoint, &proxy) => {}
            () = allocator::give_back(&endpoint) => {}
            _ = super::interrupted() => info!("interrupted: closing connections"),
        }
    };
    super::unless_lost(&endpoint, serve).await?;
    super::close(&endpoint, "the server was stopped").await;
    Ok(())
}

/// Whether a socket at `listen` receives what is sent to an address.
fn covers(listen: SocketAddr, address: SocketAddr) -> bool {
    let (own, other) = (listen.ip(), address.ip());
    listen.port() == address.port()
        && (own == other || own.is_unspecified() && (own.is_ipv6() || other.is_ipv4()))
}

/// Opens the served folder, and creates it if it does not exist. The name may be a mistake, so creation is logged.
fn open_files_folder(folder: &Path, is_writable: bool) -> Result<FileService, CliError> {
    let fail = |error: std::io::Error| {
        let folder = folder.display();
        CliError::failure(format!(
            "cannot serve files from {folder}: {error}; --files names a folder that can be read"
        ))
    };
    if !folder.exists() {
        std::fs::create_dir_all(folder).map_err(fail)?;
        warn!("{} did not exist: made an empty folder there, whose files are served", folder.display());
    }
    FileService::open(folder, is_writable).map_err(fail)
}

/// Prints the command to run on the client's machine.
#[expect(clippy::print_stdout, reason = "the line to paste is the result")]
fn announce(listening: SocketAddr, public_key: &PublicKey) {
    let host = network::reachable_from_outside(listening.ip());
    info!(%listening, "listening");
    if let Some(host) = host.filter(|_| listening.ip().is_unspecified()) {
        info!(
            "if clients reach this server by another address or name than {host}, they must use that in the command below"
        );
    }
    println!("{}", invitation(host, listening.port(), public_key));
}

/// The command for clients of a server with this address; if it is unknown, with a placeholder and a hint.
fn invitation(host: Option<IpAddr>, port: u16, public_key: &PublicKey) -> String {
    let name = match host {
        None => PLACEHOLDER.to_owned(),
        Some(IpAddr::V6(ip)) => format!("[{ip}]"),
        Some(IpAddr::V4(ip)) => ip.to_string(),
    };
    let advice = match host {
        None => format!(
            "\n(replace {PLACEHOLDER} with the name or IP address by which clients reach this server)"
        ),
        Some(_) => String::new(),
    };
    format!(
        "ctcp client --server {name}:{port} --server-key {public_key} --key client.key --socks 127.0.0.1:1080 \
         --http 127.0.0.1:8118{advice}"
    )
}

/// The clients that may connect.
async fn clients(args: &ServerArgs) -> Result<ClientList, CliError> {
    if args.any_client {
        warn!("--any-client: anyone who knows this server's public key can connect through it");
        return Ok(ClientList::everybody());
    }
    let fixed = Clients::unnamed(args.client.iter().chain(&args.relay).copied());
    let list = ClientList::read(fixed, args.clients.clone()).await?;
    if list.clients().is_some_and(Clients::is_empty) {
        return Err(CliError::usage(
            "no client may connect: name the clients' public keys with --client or --clients, or use --any-client",
        ));
    }
    Ok(list)
}

fn target_policy(args: &ServerArgs) -> Result<TargetPolicy, CliError> {
    TargetPolicy::new(args.allow_target.clone(), args.deny_target.clone())
        .map_err(|error| CliError::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn the_command_for_clients_names_the_placeholder_only_if_there_is_one() {
        let key = PublicKey([1; 32]);
        let unknown = invitation(None, 4433, &key);
        assert!(unknown.starts_with("ctcp client --server SERVER_ADDRESS:4433 --server-key "), "{unknown}");
        assert!(unknown.ends_with(
            "\n(replace SERVER_ADDRESS with the name or IP address by which clients reach this server)"
        ));
        let known = invitation(Some(Ipv6Addr::LOCALHOST.into()), 1, &key);
        assert!(known.contains("--server [::1]:1 ") && known.lines().count() == 1, "{known}");
    }
}
