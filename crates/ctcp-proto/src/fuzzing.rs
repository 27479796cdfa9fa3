//! Internals for fuzz targets and tests of other crates. Not part of the public API, and not stable.

pub use crate::stream::{
    Assembler, Control, Interactive, Lane, Pace, PagePool, SEND_BUFFER_MAX, SEND_TOTAL_MAX, StreamEvent,
    Streams, StreamsConfig,
};

use crate::code::{Arrived, SymbolSink};
use crate::error::TransportError;
use crate::id::SymbolIndex;
use crate::message::Incoming;

/// The receiving half of messages.
#[derive(Debug)]
pub struct MessageReceiver(Incoming);

impl Default for MessageReceiver {
    fn default() -> Self {
        Self(Incoming::new())
    }
}

impl MessageReceiver {
    /// Processes a decoded symbol.
    ///
    /// # Errors
    /// Returns an error if the symbol violates the protocol.
    pub fn on_symbol(&mut self, index: SymbolIndex, symbol: &[u8]) -> Result<(), TransportError> {
        self.0.on_symbol_decoded(symbol, Arrived { index, is_repaired: index.is_multiple_of(2) })
    }

    /// All symbols below `floor` are decoded or given up.
    pub fn settle_before(&mut self, floor: SymbolIndex) {
        self.0.settle_before(floor);
    }

    /// The next message.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.0.pop()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.0.memory()
    }
}
