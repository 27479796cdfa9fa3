//! `ctcp demo`: shows the effect of coding on a lossy link, on this machine alone.
//!
//! ```text
//!   download --SOCKS5--> forward proxy ==[ emulated link ]==> reverse proxy --> web server
//! ```
//!
//! Everything runs in this process; only the link is emulated. The same download runs once with the requested profile
//! and once uncoded, each over a fresh link with the same seed. If the requested profile is uncoded it runs once.

mod link;
mod report;
mod web;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ctcp::{Catalogue, ClientConfig, ClientPolicy, Endpoint, Grant, Profile, ServerConfig};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};
use ctcp_proxy::client::{ClientLimits, ForwardProxy};
use ctcp_proxy::counters::Counters;
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::link::{CtcpConnector, LinkTimes, ServerAddress, ServerLink};
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::TargetPolicy;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::args::DemoArgs;
use crate::error::CliError;
use crate::{args, key_file, network};
use link::EmulatedLink;
use report::Report;
use web::Download;

/// The time limit of the coded download. A link on which it takes longer shows nothing useful.
const PATIENCE: Duration = Duration::from_secs(600);

/// The uncoded download is stopped after this many times the coded one's time, and at the soonest after [`BASELINE_MIN`].
const BASELINE_FACTOR: u32 = 3;
const BASELINE_MIN: Duration = Duration::from_secs(2);

/// Runs both downloads and prints their results.
pub(crate) async fn run(args: &DemoArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    check(args)?;
    let web = web::serve(args.size).await.map_err(|error| failed("the web server", &error))?;
    let profile = args::profile(catalogue, &args.profile)?;
    let report = Report::new(args, profile);
    report.announce();
    let coded = measure(args, catalogue, profile, web, PATIENCE).await?;
    if !coded.is_complete {
        return Err(CliError::failure(format!(
            "only {} of {} bytes arrived within {} s",
            coded.bytes,
            args.size,
            PATIENCE.as_secs()
        )));
    }
    report.first(&coded);
    if profile == Profile::TCP {
        report.finish(&coded, None);
        return Ok(());
    }
    let limit = (coded.elapsed * BASELINE_FACTOR).max(BASELINE_MIN);
    let uncoded = measure(args, catalogue, Profile::TCP, web, limit).await?;
    report.finish(&coded, Some(&uncoded));
    Ok(())
}

fn check(args: &DemoArgs) -> Result<(), CliError> {
    if args.rate.as_bits_per_second() == 0 || args.size == 0 {
        return Err(CliError::usage("--rate and --size must be above zero"));
    }
    if args.loss.as_f64() > 0.9 {
        return Err(CliError::usage("--loss must be at most 0.9"));
    }
    Ok(())
}

/// Runs one download with `profile` over a fresh link.
async fn measure(
    args: &DemoArgs,
    catalogue: &Arc<Catalogue>,
    profile: Profile,
    web: SocketAddr,
    limit: Duration,
) -> Result<Download, CliError> {
    let (server_key, client_key) = (key_file::generate()?, key_file::generate()?);
    let server_public = server_key.public_key();
    let listed = [client_key.public_key()].into_iter().collect();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut tasks = JoinSet::new();

    let mut config = ServerConfig::new(loopback, server_key, ClientPolicy::Listed(listed));
    config.transport(network::transport(profile, catalogue)).grant(Grant::of([profile.name]));
    let server = Endpoint::server(config).map_err(|error| failed("the server", &error))?;
    let address = server.local_addr().map_err(|error| failed("the server", &error))?;
    let targets = TargetPolicy::new(
        vec!["127.0.0.1/32".parse().map_err(|error| failed("the policy", &error))?],
        vec![],
    )
    .map_err(|error| failed("the policy", &error))?;
    let reverse = ReverseProxy::new(Dialer::new(targets), None, ServerLimits::default());
    let served = server.clone();
    tasks.spawn(async move { reverse.serve(&served).await });

    let link = EmulatedLink::start(&link_config(args), args.seed, address)
        .map_err(|error| failed("the emulated link", &error))?;

    let mut config = ClientConfig::new(client_key);
    config.bind(loopback).transport(network::client_transport(profile, catalogue));
    let client = Endpoint::client(config).map_err(|error| failed("the client", &error))?;
    let at: ServerAddress = link.address().to_string().parse().map_err(|error| failed("the link", &error))?;
    let connector = CtcpConnector::new(client.clone(), at, server_public);
    let counters = Arc::new(Counters::new("client"));
    let forward = ForwardProxy::new(
        ServerLink::start(connector, LinkTimes::default(), counters),
        ClientLimits::default(),
    );
    let listener = TcpListener::bind(loopback).await.map_err(|error| failed("the SOCKS5 proxy", &error))?;
    let socks = listener.local_addr().map_err(|error| failed("the SOCKS5 proxy", &error))?;
    tasks.spawn(async move { forward.serve_socks5(listener).await });

    let bar = progress_bar(args, profile);
    let downloaded = web::download(socks, web, limit, |bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    tasks.shutdown().await;
    super::close(&client, super::FINISHED).await;
    super::close(&server, super::FINISHED).await;
    drop(link);
    downloaded.map_err(|error| failed("the download", &error))
}

/// The same in both directions; the queue holds one bandwidth-delay product, at least 10 packets.
fn link_config(args: &DemoArgs) -> LinkConfig {
    let product = args.rate.bytes_in(args.rtt) / 1500;
    LinkConfig {
        rate: args.rate,
        delay: args.rtt / 2,
        loss: LossModel::Bernoulli(args.loss),
        queue: QueueLimit::Packets(product.max(10)),
        ..LinkConfig::default()
    }
}

fn progress_bar(args: &DemoArgs, profile: Profile) -> ProgressBar {
    if args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(args.size);
    if let Ok(style) =
        ProgressStyle::with_template("  {msg:8} {bar:40} {bytes}/{total_bytes} {bytes_per_sec}")
    {
        bar.set_style(style);
    }
    bar.set_message(profile.name.as_str());
    bar
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> CliError {
    CliError::failure(format!("{what}: {error}"))
}
