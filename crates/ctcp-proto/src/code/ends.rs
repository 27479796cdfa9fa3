//! Where the bytes of symbols come from and where they go: the two ends of a context.

use crate::error::TransportError;
use crate::id::SymbolIndex;

/// Fills symbols.
pub(crate) trait SymbolSource {
    /// Whether a symbol could be filled now.
    fn has_data(&self) -> bool;

    /// Fills the symbol `index`, with at most `capacity` bytes. Indices grow from call to call. Returns false, with `out` empty, if there is
    /// nothing to send.
    fn fill_symbol(&mut self, index: SymbolIndex, capacity: usize, out: &mut Vec<u8>) -> bool;
}

/// How a symbol became known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) index: SymbolIndex,
    /// It follows from repairs. Its own packet was lost or is late.
    pub(crate) is_repaired: bool,
}

/// Receives symbols.
pub(crate) trait SymbolSink {
    /// Memory that may still be used, in bytes.
    fn room(&self) -> u64;

    /// Processes a decoded symbol. They arrive in any order, each once.
    ///
    /// # Errors
    /// Returns an error if the symbol violates the protocol.
    fn on_symbol_decoded(&mut self, symbol: &[u8], arrived: Arrived) -> Result<(), TransportError>;
}
