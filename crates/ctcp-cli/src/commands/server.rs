//! `ctcp server`: the reverse proxy.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ctcp::{ClientPolicy, Endpoint, Grant, PublicKey, ServerConfig};
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::{Rule, TargetPolicy};
use tracing::info;

use crate::args::ServerArgs;
use crate::error::CliError;
use crate::key_file::Role;
use crate::{key_file, metrics, network, open_files};

/// Serves until it is interrupted.
pub(crate) async fn run(args: &ServerArgs) -> Result<(), CliError> {
    let clients = policy(args)?;
    let limits = ServerLimits::for_open_files(open_files::raise_limit());
    let dialer = Dialer::new(target_policy(args)?);
    let files = match &args.files {
        Some(directory) => Some(FileService::open(directory, args.files_write).map_err(|error| {
            CliError::failure(format!("cannot serve files from {}: {error}", directory.display()))
        })?),
        None => None,
    };
    metrics::start(args.common.metrics)?;
    let secret_key = key_file::read_or_make(&args.key, Role::Server)?;
    let public_key = secret_key.public_key();
    let config = ServerConfig {
        transport: network::transport(args.common.profile()),
        grant: grant(args),
        ..ServerConfig::new(args.listen, secret_key, clients)
    };
    let endpoint = Endpoint::server(config)
        .map_err(|error| CliError::failure(format!("cannot listen on {}: {error}", args.listen)))?;
    let listening = endpoint.local_addr().unwrap_or(args.listen);
    announce(listening, &public_key);
    let proxy = ReverseProxy::new(dialer, files, limits);
    tokio::select! {
        () = proxy.serve(&endpoint) => {}
        _ = super::interrupted() => info!("interrupted: closing connections"),
    }
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
fn policy(args: &ServerArgs) -> Result<ClientPolicy, CliError> {
    if args.any_client {
        return Ok(ClientPolicy::Any);
    }
    let mut keys: BTreeSet<PublicKey> = args.client.iter().copied().collect();
    if let Some(file) = &args.clients {
        keys.extend(read_clients(file)?);
    }
    if keys.is_empty() {
        return Err(CliError::usage(
            "nobody may connect: give the clients' public keys with --client or --clients, or say --any-client",
        ));
    }
    Ok(ClientPolicy::Listed(keys))
}

/// A public key on each line; what follows the key is a comment, as is a line that begins with `#`.
fn read_clients(file: &Path) -> Result<Vec<PublicKey>, CliError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::failure(format!("cannot read {}: {error}", file.display())))?;
    let mut keys = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(word) = line.split_whitespace().next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let key = word.parse().map_err(|_| {
            CliError::usage(format!("{}:{}: `{word}` is no public key", file.display(), number + 1))
        })?;
        keys.push(key);
    }
    Ok(keys)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_clients_may_have_comments_but_no_nonsense() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clients");
        let key = key_file::generate().expect("a key").public_key();
        std::fs::write(&file, format!("# laptops\n\n{key} anna\n  {key}\n")).expect("a file");
        assert_eq!(read_clients(&file).expect("keys"), [key, key]);
        std::fs::write(&file, "anna\n").expect("a file");
        assert!(matches!(read_clients(&file), Err(CliError::Usage(_))));
    }
}
