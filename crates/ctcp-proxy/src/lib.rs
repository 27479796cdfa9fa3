//! Proxies over ctcp: they carry unchanged programs over a coded connection, in user space.
//!
//! ```text
//!  program --SOCKS5 / HTTP / forward / stdin--> ForwardProxy --+
//!                                                              | ServerLink: one ctcp connection, reconnecting
//!  program <-------------- TCP -------------- ReverseProxy <---+
//!                                              | TargetPolicy, Dialer
//!  files of a directory <--------------------- FileService
//! ```
//!
//! **Server**: rules form a [`target_policy::TargetPolicy`], which a [`dial::Dialer`] enforces. A
//! [`server::ReverseProxy`] with the dialer and optionally a [`files::FileService`] serves the clients of a
//! [`ctcp::Endpoint`].
//!
//! **Client**: a [`link::CtcpConnector`] holds the server's address and key, [`link::ServerLink`] keeps a connection to
//! it, and a [`client::ForwardProxy`] serves listeners over it. [`files::get`] and [`files::put`] only need the link.
//!
//! ```no_run
//! # use ctcp_proxy::{client::*, counters::Counters, dial::Dialer, link::*, server::*, target_policy::*};
//! # use std::sync::Arc;
//! # async fn server(endpoint: ctcp::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
//! let policy = TargetPolicy::new(vec!["10.0.0.0/8:80".parse()?], vec![])?;
//! let proxy = ReverseProxy::new(Dialer::new(policy), None, ServerLimits::default());
//! proxy.serve(&endpoint).await; // until the endpoint is closed
//! # Ok(()) }
//! # async fn client(endpoint: ctcp::Endpoint, server_key: ctcp::PublicKey) -> Result<(), Box<dyn std::error::Error>> {
//! let connector = CtcpConnector::new(endpoint, "server.example:4433".parse()?, server_key);
//! let counters = Arc::new(Counters::new("client"));
//! let link = ServerLink::start(connector, LinkTimes::default(), counters);
//! let proxy = ForwardProxy::new(link, ClientLimits::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:1080").await?;
//! proxy.serve_socks5(listener).await; // until the future is dropped
//! # Ok(()) }
//! ```
//!
//! A client that is stopped leaves nothing that looks complete: connections of applications are reset, and files are
//! parts. A program should drop the futures first and then call [`ctcp::Endpoint::close`].
//!
//! The state of a running proxy: [`counters`], the statistics of its connections ([`traffic`]), and at a server those
//! of each client ([`clients`]).

pub mod address;
pub mod client;
pub mod clients;
pub mod coded;
pub mod counters;
pub mod dial;
pub mod early;
mod failures;
pub mod files;
pub mod forward;
pub mod http_proxy;
pub mod link;
mod pulse;
pub mod relay;
pub mod request;
mod seldom;
pub mod server;
mod shares;
pub mod socks5;
pub mod splice;
pub mod target_policy;
pub mod traffic;
pub mod udp;
pub mod unanswered;

#[cfg(test)]
mod memory;
