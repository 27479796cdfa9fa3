//! Network coded transport: reliable streams over lossy paths, on tokio.
//!
//! An [`Endpoint`] is one UDP socket. A [`Connection`] joins it to one peer, authenticated by its [`PublicKey`]
//! and encrypted; it carries any number of independent bidirectional [`Stream`]s, each an `AsyncRead` and
//! `AsyncWrite`. Lost packets are repaired by coding over the whole connection instead of retransmission, so
//! random loss costs its share of the link and not the connection's speed.
//!
//! ```
//! use ctcp::{ClientConfig, ClientPolicy, Endpoint, ServerConfig};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server_key = ctcp::generate_key()?;
//! let server_name = server_key.public_key();
//! let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse()?, server_key, ClientPolicy::Any))?;
//! let address = server.local_addr()?;
//! tokio::spawn(async move {
//!     let connection = server.accept().await?;
//!     let mut stream = connection.accept().await.ok()?;
//!     stream.write_all(b"hello").await.ok()?;
//!     stream.finish().ok()?;
//!     stream.finished().await.ok()
//! });
//!
//! let client = Endpoint::client(ClientConfig::new(ctcp::generate_key()?))?;
//! let connection = client.connect(address, server_name).await?;
//! let mut stream = connection.open().await?;
//! stream.finish()?; // Sends no data; the end of the stream alone opens it at the server.
//! let mut greeting = String::new();
//! stream.read_to_string(&mut greeting).await?;
//! assert_eq!(greeting, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! The protocol itself is `ctcp-proto`. Only this crate gives it a clock, a socket and the entropy of the operating system.
#![warn(unnameable_types)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod clock;
mod config;
mod connection;
mod driver;
mod endpoint;
mod entropy;
mod error;
mod local_path;
mod outbox;
mod ports;
mod recv_stream;
mod refusals;
mod relayed;
mod send_stream;
mod slot;
mod socket;
mod state;
mod stream;
mod timer;
mod turns;

pub use config::{ClientConfig, ServerConfig, TransportConfig};
pub use connection::Connection;
pub use ctcp_proto::{
    Catalogue, ClientPolicy, CloseReason, Code, ConnectionError, ConnectionStats, EndpointStats, Grant,
    HopRepair, KeyError, MessageError, MessageStats, Misfit, PREFERENCE_OF_FIRST, PathError, PathId,
    PathMode, PathStats, Profile, ProfileName, PublicKey, RELAYED_PACKET, RELAYED_PAYLOAD, Ratio, Redundancy,
    Role, RttStats, SecretKey, StreamId, Ticket, TransportError, TransportErrorCode, UnknownName,
    congestion::Algorithm,
};
pub use endpoint::Endpoint;
pub use entropy::generate_key;
pub use error::{ConnectError, EndpointLost, StreamError, StreamReset, StreamStopped};
pub use local_path::LocalPath;
pub use recv_stream::RecvStream;
pub use relayed::RelayError;
pub use send_stream::SendStream;
pub use socket::SocketStats;
pub use stream::Stream;
