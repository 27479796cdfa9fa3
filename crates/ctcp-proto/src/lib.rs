//! The ctcp transport protocol without I/O.
//!
//! [`Endpoint`] stands for one socket: it knows connection ids, answers first packets and hands datagrams to
//! connections. [`Connection`] is one peer: streams above, sealed packets below. Neither reads a clock, opens a
//! socket or asks for entropy: time, datagrams and a seed are arguments, so that a simulator and the real
//! runtime drive the very same code.
#![forbid(unsafe_code)]

mod ack;
mod code;
mod config;
pub mod congestion;
mod connection;
pub mod crypto;
mod endpoint;
mod error;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod grant;
pub mod handshake;
mod id;
mod memory;
mod network;
mod path;
mod profile;
mod recovery;
mod redundancy;
mod stream;
#[cfg(test)]
mod tests;
pub mod wire;

pub use code::{SymbolicChannel, SymbolicRecoder};
pub use config::{ClientPolicy, EndpointConfig, TransportConfig};
pub use connection::{Connection, ConnectionStats, RttStats, TimerKind};
pub use crypto::{KeyError, PublicKey, SecretKey, Suite};
pub use endpoint::{
    ConnectError, ConnectionHandle, DatagramOutcome, DropReason, Endpoint, EndpointStats, Incoming,
    RefusedClient,
};
pub use error::{CloseReason, ConnectionError, TransportError, TransportErrorCode};
pub use event::{EndpointEvent, Event};
pub use grant::Grant;
pub use id::{ConnectionId, Direction, PacketNumber, PathId, Role, StreamId, SymbolIndex};
pub use network::{Ecn, NetworkPath, Transmit};
pub use profile::{Code, Profile, ProfileName, Ratio, Redundancy, UnknownName};
pub use stream::{OpenError, ReadError, ReadOutcome, UnknownStream, WriteError};
