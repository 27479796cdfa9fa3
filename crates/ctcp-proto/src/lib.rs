//! The ctcp transport protocol without I/O.
//!
//! [`Endpoint`] is one UDP socket: it routes datagrams to connections by connection id and handles the first packets of new clients.
//! [`Connection`] is the state machine for one peer: streams, coding, recovery and packet protection. Neither reads a clock, opens a socket
//! or gathers entropy. Time, datagrams and a seed are arguments, so a simulator and the real runtime run the same code.

mod ack;
mod catalogue;
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
mod message;
mod network;
mod path;
mod pieces;
mod profile;
mod recovery;
mod stream;
#[cfg(test)]
mod tests;
pub mod wire;

pub use catalogue::Catalogue;
pub use code::redundancy::{Ratio, Redundancy, RepairRule};
pub use code::{Code, RelayBuffer};
pub use config::{ClientPolicy, EndpointConfig, TransportConfig};
pub use connection::{
    Carriage, Connection, ConnectionStats, HopRepair, MessageStats, PathError, PathStats, RttStats, TimerKind,
};
pub use crypto::{KeyError, PublicKey, SecretKey, Suite, Ticket};
pub use endpoint::{
    ConnectError, ConnectionHandle, DatagramOutcome, DropReason, Endpoint, EndpointStats, Incoming,
    RefusedClient,
};
pub use error::{CloseReason, ConnectionError, Mismatch, TransportError, TransportErrorCode, UnknownName};
pub use event::{EndpointEvent, Event};
pub use grant::Grant;
pub use id::{ConnectionId, ContextId, Direction, PacketNumber, PathId, Role, StreamId, SymbolIndex};
pub use message::MessageError;
pub use network::{Ecn, NetworkPath, Transmit, hop_of, relayed_address};
pub use path::{PREFERENCE_OF_FIRST, PathMode, RELAYED_PACKET, RELAYED_PAYLOAD};
pub use profile::{AckRule, ExpiryRule, LossRule, Misfit, Profile, ProfileName, Rules};
pub use stream::{OpenError, ReadError, ReadOutcome, UnknownStream, WriteError};

/// The types that a new coding scheme implements or uses.
pub mod scheme {
    pub use crate::code::redundancy::{Need, RepairRule, TakesRatio, whole_packets};
    pub use crate::code::{
        Block, Blocks, Choice, Code, CodeLimits, CodeSpec, Coding, Feedback, Prospect, Prospects, Scheme,
        Sent, Setup, Signal, Situation, SymbolDecoder, SymbolEncoder,
    };
    pub use crate::congestion::WindowOf;
}
