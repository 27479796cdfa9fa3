//! `ctcp server`: the reverse proxy.

use std::net::{IpAddr, SocketAddr};

use ctcp::{ClientPolicy, Endpoint, Grant, PublicKey, ServerConfig};
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::{Rule, TargetPolicy};
use tracing::info;

use crate::args::ServerArgs;
use crate::clients_file::{ClientList, Clients, Hangups};
use crate::error::CliError;
use crate::key_file::Role;
use crate::metrics::{self, ServerFigures};
use crate::{key_file, network, open_files};

/// Serves until it is interrupted.
pub(crate) async fn run(args: &ServerArgs) -> Result<(), CliError> {
    let clients = clients(args).await?;
    // Before anybody learns that the server is there.
    let mut hangups = Hangups::new();
    let limits = ServerLimits::for_open_files(open_files::raise_limit());
    let dialer = Dialer::new(target_policy(args)?);
    let files = match &args.files {
        Some(directory) => Some(FileService::open(directory, args.files_write).map_err(|error| {
            CliError::failure(format!("cannot serve files from {}: {error}", directory.display()))
        })?),
        None => None,
    };
    let listener = metrics::start(args.common.metrics)?;
    let secret_key = key_file::read_or_make(&args.key, Role::Server)?;
    let public_key = secret_key.public_key();
    let policy = clients.clients().map_or(ClientPolicy::Any, Clients::policy);
    let mut config = ServerConfig::new(args.listen, secret_key, policy);
    config.transport(network::transport(args.common.profile())).grant(grant(args));
    let endpoint = Endpoint::server(config)
        .map_err(|error| CliError::failure(format!("cannot listen on {}: {error}", args.listen)))?;
    let listening = endpoint.local_addr().unwrap_or(args.listen);
    announce(listening, &public_key);
    let proxy = ReverseProxy::new(dialer, files, limits);
    if let Some(clients) = clients.clients() {
        proxy.clients().set_names(clients.names());
    }
    let _publisher = metrics::publish(listener, ServerFigures::of(&proxy, &endpoint))?;
    let serve = async {
        tokio::select! {
            () = proxy.serve(&endpoint) => {}
            () = clients.follow(&mut hangups, &endpoint, &proxy) => {}
            _ = super::interrupted() => info!("interrupted: closing connections"),
        }
    };
    super::unless_lost(&endpoint, serve).await?;
    super::close(&endpoint).await;
    Ok(())
}

/// Prints what to run on the client's machine.
#[expect(clippy::print_stdout, reason = "the line to paste is the result")]
fn announce(listening: SocketAddr, public_key: &PublicKey) {
    let host = match listening.ip() {
        ip if ip.is_unspecified() => "THIS_HOST".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    info!(%listening, "listening");
    println!(
        "ctcp client --server {host}:{} --server-key {public_key} --key client.key --socks 127.0.0.1:1080",
        listening.port()
    );
}

/// Which profiles clients may choose.
fn grant(args: &ServerArgs) -> Grant {
    if args.pin_profile { Grant::nothing() } else { Grant::of(args.grant.iter().copied()) }
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
    let parse = |option: &str, rules: &[String]| -> Result<Vec<Rule>, CliError> {
        rules
            .iter()
            .map(|rule| rule.parse().map_err(|error| CliError::usage(format!("{option} {rule}: {error}"))))
            .collect()
    };
    let (allow, deny) =
        (parse("--allow-target", &args.allow_target)?, parse("--deny-target", &args.deny_target)?);
    TargetPolicy::new(allow, deny).map_err(|error| CliError::usage(error.to_string()))
}
