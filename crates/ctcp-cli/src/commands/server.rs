//! `ctcp server`: the reverse proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use ctcp::{ClientPolicy, Endpoint, Grant, PublicKey, ServerConfig};
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::TargetPolicy;
use tracing::{info, warn};

use crate::args::ServerArgs;
use crate::clients_file::{ClientList, Clients, Hangups};
use crate::error::CliError;
use crate::key_file::Role;
use crate::metrics::{self, ServerFigures};
use crate::{allocator, key_file, network, open_files};

/// Serves until it is interrupted.
pub(crate) async fn run(args: &ServerArgs) -> Result<(), CliError> {
    let clients = clients(args).await?;
    // Before anybody learns that the server is there.
    let mut hangups = Hangups::new();
    let limits = ServerLimits::for_open_files(open_files::raise_limit());
    let dialer = Dialer::new(target_policy(args)?);
    let files =
        args.files.as_deref().map(|folder| open_files_folder(folder, args.files_write)).transpose()?;
    let listener = metrics::start(args.common.metrics)?;
    let secret_key = key_file::read_or_make(&args.key, Role::Server)?;
    let public_key = secret_key.public_key();
    let policy = clients.clients().map_or(ClientPolicy::Any, Clients::policy);
    let mut config = ServerConfig::new(args.listen, secret_key, policy);
    config.transport(network::transport(args.common.profile())).grant(grant(args)).memory(args.memory);
    let endpoint = Endpoint::server(config)
        .map_err(|error| CliError::failure(format!("cannot listen on {}: {error}", args.listen)))?;
    let listening = endpoint.local_addr().unwrap_or(args.listen);
    announce(listening, &public_key);
    let proxy = ReverseProxy::new(dialer, files, limits);
    if let Some(clients) = clients.clients() {
        clients.name_in(&endpoint, &proxy);
    }
    let _publisher = metrics::publish(listener, ServerFigures::of(&proxy, &endpoint))?;
    let serve = async {
        tokio::select! {
            () = proxy.serve(&endpoint) => {}
            () = clients.follow(&mut hangups, &endpoint, &proxy) => {}
            () = allocator::give_back(&endpoint) => {}
            _ = super::interrupted() => info!("interrupted: closing connections"),
        }
    };
    super::unless_lost(&endpoint, serve).await?;
    super::close(&endpoint, "the server was stopped").await;
    Ok(())
}

/// Opens the folder that is served, and makes it if there is none: the name may be a mistake, so it is said.
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

/// Prints what to run on the client's machine.
#[expect(clippy::print_stdout, reason = "the line to paste is the result")]
fn announce(listening: SocketAddr, public_key: &PublicKey) {
    let guessed = listening.ip().is_unspecified().then(|| source_address(listening.ip()));
    let host = match guessed.unwrap_or(Some(listening.ip())) {
        None => "THIS_HOST".to_owned(),
        Some(IpAddr::V6(ip)) => format!("[{ip}]"),
        Some(IpAddr::V4(ip)) => ip.to_string(),
    };
    info!(%listening, "listening");
    if guessed.is_some() {
        info!(
            "clients may know this machine by another address or by a name: then write that for {host} in the line for them"
        );
    }
    println!(
        "ctcp client --server {host}:{} --server-key {public_key} --key client.key --socks 127.0.0.1:1080 \
         --http 127.0.0.1:8118",
        listening.port()
    );
}

/// Which profiles clients may choose.
fn grant(args: &ServerArgs) -> Grant {
    if args.pin_profile { Grant::nothing() } else { Grant::of(args.grant.iter().copied()) }
}

/// The address from which this machine would send to the internet; no packet is sent to find it.
fn source_address(any: IpAddr) -> Option<IpAddr> {
    let source = |any: IpAddr, far: IpAddr| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((far, 9)).ok()?; // discard
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
    };
    // Addresses for documentation (RFC 5737, RFC 3849): they go where the default route leads.
    let v4 = source(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let v6 = || source(any, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into());
    v4.or_else(|| any.is_ipv6().then(v6).flatten())
}

/// Who may connect.
async fn clients(args: &ServerArgs) -> Result<ClientList, CliError> {
    if args.any_client {
        return Ok(ClientList::everybody());
    }
    let fixed = Clients::unnamed(args.client.iter().copied());
    let list = ClientList::read(fixed, args.clients.clone()).await?;
    if list.clients().is_some_and(Clients::is_empty) {
        return Err(CliError::usage(
            "nobody may connect: give the clients' public keys with --client or --clients, or say --any-client",
        ));
    }
    Ok(list)
}

fn target_policy(args: &ServerArgs) -> Result<TargetPolicy, CliError> {
    TargetPolicy::new(args.allow_target.clone(), args.deny_target.clone())
        .map_err(|error| CliError::usage(error.to_string()))
}
