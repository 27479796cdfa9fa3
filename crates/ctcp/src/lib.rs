//! Network coded transport: reliable streams over lossy paths, on tokio.
//!
//! An [`Endpoint`] is one UDP socket. A [`Connection`] joins it to one peer, authenticated by its [`PublicKey`]
//! and encrypted; it carries any number of independent bidirectional [`Stream`]s, each an `AsyncRead` and
//! `AsyncWrite`. Lost packets are repaired by coding over the whole connection instead of retransmission, so
//! that random loss costs its share of the link and not the connection's speed.
//!
//! This crate is the only place where the protocol meets a clock, a socket and the entropy of the operating
//! system; the protocol itself is `ctcp-proto`.
#![forbid(unsafe_code)]

mod clock;
mod config;
mod connection;
mod driver;
mod endpoint;
mod entropy;
mod error;
mod outbox;
mod proto_stub;
mod recv_stream;
mod send_stream;
mod slot;
mod socket;
mod state;
mod stream;

use proto_stub as proto;

pub use config::{ClientConfig, ServerConfig};
pub use connection::Connection;
pub use ctcp_proto::{CloseReason, ConnectionError, StreamId, TransportError, TransportErrorCode};
pub use endpoint::Endpoint;
pub use entropy::generate_key;
pub use error::{ConnectError, StreamError, StreamReset, StreamStopped};
pub use proto::{
    ClientPolicy, ConnectionStats, EndpointStats, Profile, ProfileName, PublicKey, SecretKey, TransportConfig,
};
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use socket::SocketStats;
pub use stream::Stream;
