//! The only place that reads randomness from the operating system. The protocol draws from a generator that is seeded here once per
//! endpoint; more entropy is mixed in before each handshake.

use std::io;

use ctcp_proto::SecretKey;

/// Returns 32 bytes from the operating system.
///
/// # Errors
/// Returns an error if the operating system has no randomness, which does not happen on usual systems.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}

/// Passes fresh randomness to `mix`, which mixes it into the generator of an endpoint or a connection. If the system has none, the
/// generators continue with their current state, which does not reveal their seeds.
pub(crate) fn mix(mix: impl FnOnce(&[u8; 32])) {
    match seed() {
        Ok(entropy) => mix(&entropy),
        Err(error) => tracing::debug!(%error, "no randomness to mix in"),
    }
}

/// Generates a private key from the operating system's entropy.
///
/// # Errors
/// Returns an error if the operating system has no randomness, which does not happen on usual systems.
pub fn generate_key() -> io::Result<SecretKey> {
    Ok(SecretKey::from_bytes(seed()?))
}
