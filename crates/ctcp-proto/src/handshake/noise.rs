//! The Noise IK handshake (`Noise_IK_25519_ChaChaPoly_BLAKE2s`, PROTOCOL.md section 3) through snow, with the
//! parameters as payloads.
//!
//! ```text
//!  message 1    e (32) | s, sealed (32 + 16) | client's parameters, sealed (n + 16)
//!  message 2    e (32) | server's parameters, sealed (n + 16)
//! ```
//!
//! The only random values are the ephemeral keys. They are derived from an entropy argument, so the same entropy gives the same messages:
//! the caller must never use the same entropy for two handshakes.

mod random;
#[cfg(test)]
mod tests;

use core::fmt;

use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use self::random::SeededResolver;
use crate::crypto::kem::combine;
use crate::crypto::{PublicKey, SecretKey};
use crate::wire::{NOISE_MESSAGE_MAX, VERSION};

/// The length of message 1 in addition to the client's parameters.
pub const MESSAGE_1_OVERHEAD: usize = 32 + (32 + 16) + 16;
/// The length of message 2 in addition to the server's parameters.
pub const MESSAGE_2_OVERHEAD: usize = 32 + 16;

/// "ctcp" and the version. Both sides mix it in, so that an attacker cannot make them use different versions.
const PROLOGUE: [u8; 8] = {
    let version = VERSION.to_be_bytes();
    [b'c', b't', b'c', b'p', version[0], version[1], version[2], version[3]]
};
const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";

/// Why a step of the handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// This side's parameters do not fit into a message of [`NOISE_MESSAGE_MAX`] bytes.
    ParametersTooLong,
    /// The message could not be opened: it is for another key or another handshake, damaged or forged.
    NotAuthentic,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ParametersTooLong => "the parameters do not fit into a handshake message",
            Self::NotAuthentic => "the handshake message could not be opened",
        })
    }
}

impl core::error::Error for HandshakeError {}

/// The first secret of each direction (`secret_0`).
#[derive(Clone)]
pub struct Secrets {
    /// Seals sent packets.
    pub send: [u8; 32],
    /// Opens received packets.
    pub receive: [u8; 32],
    /// The hash of both messages, which binds further secrets to them.
    hash: [u8; 32],
}

impl Secrets {
    /// The secrets of a finished handshake. The first of the Noise split seals the initiator's packets.
    fn of(state: &mut HandshakeState) -> Self {
        let hash = state.get_handshake_hash().try_into().expect("BLAKE2s has 32 bytes");
        let (send, receive) = state.dangerously_get_raw_split();
        if state.is_initiator() {
            Self { send, receive, hash }
        } else {
            Self { send: receive, receive: send, hash }
        }
    }

    /// Combines these secrets with that of ML-KEM.
    #[must_use]
    pub fn with_kem(self, kem: &[u8; 32]) -> Self {
        let [send, receive] = [&self.send, &self.receive].map(|split| combine(split, kem, &self.hash));
        Self { send, receive, hash: self.hash }
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.send.zeroize();
        self.receive.zeroize();
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secrets(..)")
    }
}

/// The client's side, waiting for message 2.
///
/// A server that restarts answers message 1 again, and differently. So everything from which the state follows is kept.
pub struct Initiator {
    state: HandshakeState,
    entropy: Zeroizing<[u8; 32]>,
    own: SecretKey,
    server: PublicKey,
    parameters: Vec<u8>,
}

impl Initiator {
    /// Begins a handshake with the server with this public key. Returns the state and message 1.
    ///
    /// # Errors
    /// [`HandshakeError::ParametersTooLong`].
    pub fn start(
        entropy: [u8; 32],
        own: &SecretKey,
        server: &PublicKey,
        parameters: &[u8],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut state = builder(entropy, own)
            .remote_public_key(&server.0)
            .and_then(Builder::build_initiator)
            .expect("the pattern and its keys are complete");
        let message = write(&mut state, parameters, MESSAGE_1_OVERHEAD)?;
        let (entropy, own) = (Zeroizing::new(entropy), own.clone());
        Ok((Self { state, entropy, own, server: *server, parameters: parameters.to_vec() }, message))
    }

    /// Processes message 2. Returns the server's parameters and the secrets. Anyone can send garbage to a client, so after a failure the
    /// state keeps waiting for the valid message. Another valid message begins from message 1 again.
    ///
    /// # Errors
    /// [`HandshakeError::NotAuthentic`].
    pub fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Secrets), HandshakeError> {
        if self.state.is_handshake_finished() {
            let (again, _) = Self::start(*self.entropy, &self.own, &self.server, &self.parameters)?;
            *self = again;
        }
        let parameters = read(&mut self.state, message)?;
        Ok((parameters, Secrets::of(&mut self.state)))
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Initiator(..)")
    }
}

/// The server's side, between message 1 and message 2.
#[derive(Debug)]
pub struct Responder(HandshakeState);

impl Responder {
    /// Processes message 1. Returns the client's key and parameters. This costs public-key operations, see [`super::HalfOpen`]. The message
    /// may be a replay, so it must have no effect other than an answer.
    ///
    /// # Errors
    /// [`HandshakeError::NotAuthentic`].
    pub fn open(
        entropy: [u8; 32],
        own: &SecretKey,
        message: &[u8],
    ) -> Result<(Self, PublicKey, Vec<u8>), HandshakeError> {
        let mut state =
            builder(entropy, own).build_responder().expect("the pattern and its keys are complete");
        let parameters = read(&mut state, message)?;
        let client = state.get_remote_static().and_then(|key| key.try_into().ok());
        let client = PublicKey(client.expect("message 1 of IK holds the client's key"));
        Ok((Self(state), client, parameters))
    }

    /// Writes message 2. Returns it and the secrets.
    ///
    /// # Errors
    /// [`HandshakeError::ParametersTooLong`].
    pub fn answer(mut self, parameters: &[u8]) -> Result<(Vec<u8>, Secrets), HandshakeError> {
        let message = write(&mut self.0, parameters, MESSAGE_2_OVERHEAD)?;
        Ok((message, Secrets::of(&mut self.0)))
    }
}

fn builder(entropy: [u8; 32], own: &SecretKey) -> Builder<'_> {
    let pattern = PATTERN.parse().expect("snow supports the pattern");
    Builder::with_resolver(pattern, Box::new(SeededResolver::new(entropy)))
        .local_private_key(own.as_bytes())
        .and_then(|builder| builder.prologue(&PROLOGUE))
        .expect("each is set once")
}

fn write(state: &mut HandshakeState, parameters: &[u8], overhead: usize) -> Result<Vec<u8>, HandshakeError> {
    let length = parameters.len() + overhead;
    if length > NOISE_MESSAGE_MAX {
        return Err(HandshakeError::ParametersTooLong);
    }
    let mut message = vec![0; length];
    let written =
        state.write_message(parameters, &mut message).expect("the state and the buffer size are correct");
    assert_eq!(written, length, "the overhead of a message is known");
    Ok(message)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, HandshakeError> {
    if message.len() > NOISE_MESSAGE_MAX {
        return Err(HandshakeError::NotAuthentic);
    }
    let mut parameters = vec![0; message.len()];
    let length = state.read_message(message, &mut parameters).map_err(|_| HandshakeError::NotAuthentic)?;
    parameters.truncate(length);
    Ok(parameters)
}
