//! The only place that asks the operating system for randomness. Everything below draws from a generator that is
//! seeded here once per endpoint, and into which more is mixed before each handshake.

use std::io;

use ctcp_proto::{Connection, Endpoint, SecretKey};

/// 32 bytes from the operating system.
///
/// # Errors
/// When the operating system has no randomness to give, which on usual systems never happens.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}

/// Mixes fresh randomness into what an endpoint draws from. Without any the endpoint goes on with what it has: its
/// generator gives away nothing of its seed.
pub(crate) fn mix(endpoint: &mut Endpoint) {
    match seed() {
        Ok(entropy) => endpoint.mix_entropy(&entropy),
        Err(error) => tracing::debug!(%error, "no randomness to mix in"),
    }
}

/// The same for a connection, which makes shares of new keys now and then.
pub(crate) fn mix_into(connection: &mut Connection) {
    match seed() {
        Ok(entropy) => connection.mix_entropy(&entropy),
        Err(error) => tracing::debug!(%error, "no randomness to mix in"),
    }
}

/// A new private key from the entropy of the operating system.
///
/// # Errors
/// When the operating system has no randomness to give, which on usual systems never happens.
pub fn generate_key() -> io::Result<SecretKey> {
    Ok(SecretKey::from_bytes(seed()?))
}
