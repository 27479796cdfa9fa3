//! `ctcp client`: the forward proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ctcp::Catalogue;
use ctcp_proxy::client::{ClientLimits, ForwardProxy, Greeting, listen};
use ctcp_proxy::forward::{Forward, ForwardProtocol};
use ctcp_proxy::link::CtcpConnector;
use ctcp_proxy::request::Request;
use ctcp_proxy::udp::{self, UdpOptions};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::args::ClientArgs;
use crate::error::CliError;
use crate::metrics::{self, LinkFigures};
use crate::{network, open_files};

/// The SOCKS5 address if no listener is given.
const SOCKS_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);

/// Serves until it is interrupted.
pub(crate) async fn run(args: &ClientArgs, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    let limits = ClientLimits::for_open_files(open_files::raise_limit());
    let nothing_asked = args.socks.is_none() && args.http.is_none() && args.forward.is_empty();
    let socks = args.socks.or(nothing_asked.then_some(SOCKS_DEFAULT));
    // All listeners are bound before the first packet is sent, so that a port in use is reported at once.
    let socks = bind_optional(socks).await?;
    let http = bind_optional(args.http).await?;
    let mut listeners = Vec::new();
    for forward in &args.forward {
        listeners.push((bind_forward(forward).await?, forward.clone()));
    }
    let listener = metrics::start(args.common.metrics)?;
    let (endpoint, link) = network::link(&args.remote, args.common.profile(catalogue)?, catalogue)?;
    let _publisher = metrics::publish(listener, LinkFigures::of(&link))?;
    let greeting = if args.wait_for_targets { Greeting::WhenConnected } else { Greeting::AtOnce };
    let udp = UdpOptions { advertise: args.udp_advertise, full_cone: args.udp_full_cone };
    let proxy = ForwardProxy::with_options(link, limits, greeting, udp);
    let mut services = JoinSet::new();
    serve(&mut services, &proxy, socks, http, listeners);
    super::unless_lost(&endpoint, super::interrupted_or_hung_up()).await?;
    info!("interrupted: closing the connection");
    services.shutdown().await;
    drop(proxy);
    super::close(&endpoint, super::FINISHED).await;
    Ok(())
}

fn warn_if_open(name: &str, address: SocketAddr) {
    if !address.ip().is_loopback() {
        warn!(%address, "anyone who can reach this address can use the {name} proxy, which has no password");
    }
}

#[expect(clippy::print_stdout, reason = "the lines to paste are the result")]
fn serve(
    services: &mut JoinSet<()>,
    proxy: &Arc<ForwardProxy<CtcpConnector>>,
    socks: Option<(TcpListener, SocketAddr)>,
    http: Option<(TcpListener, SocketAddr)>,
    forwards: Vec<((ForwardListener, SocketAddr), Forward)>,
) {
    if let Some((listener, address)) = socks {
        warn_if_open("SOCKS", address);
        println!("export ALL_PROXY=socks5h://{}", network::reachable(address));
        let proxy = Arc::clone(proxy);
        services.spawn(async move { proxy.serve_socks5(listener).await });
    }
    if let Some((listener, address)) = http {
        warn_if_open("HTTP", address);
        let address = network::reachable(address);
        println!("export http_proxy=http://{address} https_proxy=http://{address}");
        println!("PAC file for browsers: http://{address}/proxy.pac, status page: http://{address}/");
        let proxy = Arc::clone(proxy);
        services.spawn(async move { proxy.serve_http(listener).await });
    }
    for ((listener, address), forward) in forwards {
        let proxy = Arc::clone(proxy);
        match listener {
            ForwardListener::Tcp(listener) => {
                println!("{address} leads to {}", forward.target);
                let request = match forward.protocol {
                    ForwardProtocol::TcpLowLatency => Request::ConnectLowLatency(forward.target),
                    _ => Request::Connect(forward.target),
                };
                services.spawn(async move { proxy.serve_forward(listener, request).await });
            }
            ForwardListener::Udp(socket) => {
                println!("udp:{address} leads to {}", forward.target);
                services.spawn(async move { proxy.serve_udp_forward(socket, forward.target).await });
            }
        }
    }
}

/// Where a forward takes connections or datagrams.
enum ForwardListener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

async fn bind_forward(forward: &Forward) -> Result<(ForwardListener, SocketAddr), CliError> {
    match forward.protocol {
        ForwardProtocol::Tcp | ForwardProtocol::TcpLowLatency => {
            let (listener, local) = bind(forward.listen).await?;
            Ok((ForwardListener::Tcp(listener), local))
        }
        ForwardProtocol::Udp => {
            let fail = |error| CliError::failure(format!("cannot listen on udp:{}: {error}", forward.listen));
            let socket = udp::listen(forward.listen).map_err(fail)?;
            let local = socket.local_addr().map_err(fail)?;
            Ok((ForwardListener::Udp(socket), local))
        }
    }
}

async fn bind_optional(address: Option<SocketAddr>) -> Result<Option<(TcpListener, SocketAddr)>, CliError> {
    match address {
        Some(address) => bind(address).await.map(Some),
        None => Ok(None),
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    let fail = |error| CliError::failure(format!("cannot listen on {address}: {error}"));
    let listener = listen(address).map_err(fail)?;
    let local = listener.local_addr().map_err(fail)?;
    Ok((listener, local))
}
