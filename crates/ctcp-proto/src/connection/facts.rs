//! What is known about a connection: its peer, its state and what was negotiated.

use core::net::SocketAddr;

use super::{Connection, State};
use crate::crypto::PublicKey;
use crate::id::Role;
use crate::profile::Profile;

impl Connection {
    /// Whether packets are waiting for the pacer.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        matches!(&self.state, State::Established(established) if established.timers.pacing.is_some())
    }

    /// Whether this is the client or the server side.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The peer's static public key. A client knows it from the start, a server since the handshake.
    #[must_use]
    pub fn peer_key(&self) -> PublicKey {
        self.peer_key
    }

    /// Further addresses that a server told its client, for paths.
    #[must_use]
    pub fn server_addresses(&self) -> &[SocketAddr] {
        match &self.state {
            State::Established(established) => &established.negotiated.addresses,
            _ => &[],
        }
    }

    /// The peer's current address.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        match &self.state {
            State::Handshaking(handshake) => Some(handshake.remote()),
            State::Established(established) => Some(established.paths.main().network.remote),
            State::Ending(ending) => Some(ending.remote()),
            State::Over => None,
        }
    }

    /// True from the end of the handshake until the connection closes. A server's connection is in this state before [`crate::Event::Connected`],
    /// too.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Established(_))
    }

    /// True while the handshake waits although a REJECT said that the server could not open the INITIATE. Most likely the server has
    /// another key. A REJECT is not authenticated, so a valid RESPONSE may still arrive.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        matches!(&self.state, State::Handshaking(handshake) if handshake.is_rejected())
    }

    /// True once no more data can be sent or received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Ending(_) | State::Over)
    }

    /// Whether the keys are also derived from a secret of ML-KEM, so that a quantum computer cannot decrypt recorded packets. False before
    /// the end of the handshake.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        matches!(&self.state, State::Established(established) if established.negotiated.is_hybrid)
    }

    /// The profile granted in the handshake.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        match &self.state {
            State::Established(established) => Some(established.negotiated.profile),
            _ => None,
        }
    }

    /// The profile this client asked for, if the server granted another one.
    #[must_use]
    pub fn declined_profile(&self) -> Option<Profile> {
        let granted = self.profile().filter(|_| self.role == Role::Client)?;
        Some(self.config.profile).filter(|&asked| asked != granted)
    }
}
