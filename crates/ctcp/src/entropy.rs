//! The only place that asks the operating system for randomness. Everything below draws from a generator that is
//! seeded here once per endpoint, and into which more is mixed before each handshake.

use std::io;

use ctcp_proto::SecretKey;

/// 32 bytes from the operating system.
///
/// # Errors
/// When the operating system has no randomness to give, which on usual systems never happens.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}

/// Hands fresh randomness to `mix`, which mixes it into what an endpoint or a connection draws from. Without any they go on with what they
/// have: their generators give away nothing of their seeds.
pub(crate) fn mix(mix: impl FnOnce(&[u8; 32])) {
    match seed() {
        Ok(entropy) => mix(&entropy),
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
