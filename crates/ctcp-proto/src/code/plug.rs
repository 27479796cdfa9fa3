//! Interfaces for external encoders and decoders, used by simulations. The product uses [`Encoder`] and [`Decoder`].

use core::fmt;

use ctcp_coding::{
    Arrival, DecodeError, Decoder, DecoderConfig, Encoder, MissingInterval, SymbolRange, coefficients,
};

use super::Sent;
use crate::id::{Role, SymbolIndex};

/// The sender's window of source symbols.
pub trait SymbolEncoder: fmt::Debug + Send {
    /// Appends a symbol and returns its index. There must be room for it.
    fn push(&mut self, contents: &[u8]) -> SymbolIndex;

    /// Returns a symbol as it was pushed.
    fn symbol(&self, index: SymbolIndex) -> Option<&[u8]>;

    /// Computes a combination of `range` into `out`, with coefficients from `key` and `density`. Returns false if the range is not in the
    /// window.
    fn combine(&mut self, range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) -> bool;

    /// For a relay: computes a combination of what it holds of `range` into `out`, its coefficients into `coefficients`, with random
    /// factors from `key`. A `range` of one symbol stands for the sum that this symbol leads. Returns the range of the combination.
    fn recode(
        &mut self,
        _range: SymbolRange,
        _key: u16,
        _coefficients: &mut Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> Option<SymbolRange> {
        None
    }

    /// Whether this is a relay, whose combinations come from [`Self::recode`].
    fn recodes(&self) -> bool {
        false
    }

    /// Removes the symbols below `index`.
    fn release_before(&mut self, index: SymbolIndex);

    /// The oldest symbol in the window.
    fn first(&self) -> SymbolIndex;

    /// One past the newest symbol.
    fn next_index(&self) -> SymbolIndex;

    /// Whether there is no room for another symbol.
    fn is_full(&self) -> bool;

    /// The capacity of the window in symbols.
    fn window(&self) -> usize;

    /// Bytes of memory.
    fn memory(&self) -> usize;

    /// Frees memory kept for reuse.
    fn shrink(&mut self) {}

    /// A datagram with this combination was sealed. Simulated nodes may use it.
    fn on_sealed(&mut self, _sent: &Sent, _datagram: &[u8]) {}
}

/// The receiver's decoder.
pub trait SymbolDecoder: fmt::Debug + Send {
    /// Processes an uncoded symbol.
    ///
    /// # Errors
    /// Returns an error if the peer was not allowed to send it.
    fn handle_source(&mut self, index: SymbolIndex, contents: &[u8]) -> Result<Arrival, DecodeError>;

    /// Processes a combination with the coefficients derived from `key` and `density`.
    ///
    /// # Errors
    /// Returns an error if the peer was not allowed to send it.
    fn handle_keyed(
        &mut self,
        range: SymbolRange,
        density: u8,
        key: u16,
        payload: &[u8],
    ) -> Result<Arrival, DecodeError>;

    /// Processes a combination with explicit coefficients.
    ///
    /// # Errors
    /// Returns an error if the peer was not allowed to send it.
    fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError>;

    /// The outcome of a combination that did not arrive in a packet, see [`crate::Connection::on_decoder_news`].
    fn take_news(&mut self) -> Option<Arrival> {
        None
    }

    /// Returns the next symbol that was decoded.
    fn poll_decoded(&mut self) -> Option<(SymbolIndex, &[u8])>;

    /// Removes the symbols below `index` that were already returned.
    fn release_before(&mut self, index: SymbolIndex);

    /// Forgets the symbols below `index`, which the sender has given up. Only for contexts with deadlines.
    fn skip_before(&mut self, _index: SymbolIndex) {}

    /// The oldest symbol that is not decoded.
    fn oldest_undecoded(&self) -> SymbolIndex;

    /// The oldest symbol that is not seen (TCP/NC definition 1).
    fn oldest_unseen(&self) -> SymbolIndex;

    /// One past the newest symbol that any packet mentioned.
    fn known_end(&self) -> SymbolIndex;

    /// Appends at most `limit` groups of undecodable symbols. They are complete below the returned index.
    fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> SymbolIndex;

    /// Bytes of memory.
    fn memory(&self) -> usize;

    /// Frees memory kept for reuse.
    fn shrink(&mut self) {}
}

/// Creates the encoder and decoder of a connection.
pub trait Coding: fmt::Debug + Send + Sync {
    /// The encoder for the data that this side, `role`, sends.
    fn encoder(&self, role: Role) -> Box<dyn SymbolEncoder>;

    /// The decoder for the data that this side, `role`, receives.
    fn decoder(&self, role: Role) -> Box<dyn SymbolDecoder>;

    /// How many symbols a sender may be ahead of what its peer has decoded.
    fn peer_window(&self) -> u64;
}

/// Replaces `out` by the coefficients of a combination of `range`.
pub(super) fn generate(range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) {
    out.resize(usize::from(range.length()), 0);
    coefficients::generate(key, density, out);
}

/// The regular encoder with a buffer for coefficients.
#[derive(Debug)]
pub(super) struct RealEncoder {
    encoder: Encoder,
    coefficients: Vec<u8>,
}

impl RealEncoder {
    pub(super) fn new(symbol_size_max: usize, window: usize) -> Self {
        Self { encoder: Encoder::new(symbol_size_max, window), coefficients: Vec::new() }
    }
}

impl SymbolEncoder for RealEncoder {
    fn push(&mut self, contents: &[u8]) -> SymbolIndex {
        let index = self.encoder.next_index();
        let pushed = self.encoder.push(contents);
        debug_assert_eq!(pushed, Ok(index), "the caller checked for room");
        index
    }

    fn symbol(&self, index: SymbolIndex) -> Option<&[u8]> {
        self.encoder.symbol(index)
    }

    fn combine(&mut self, range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) -> bool {
        generate(range, density, key, &mut self.coefficients);
        self.encoder.combine(range, &self.coefficients, out).is_ok()
    }

    fn release_before(&mut self, index: SymbolIndex) {
        self.encoder.release_before(index);
    }

    fn first(&self) -> SymbolIndex {
        self.encoder.first()
    }

    fn next_index(&self) -> SymbolIndex {
        self.encoder.next_index()
    }

    fn is_full(&self) -> bool {
        self.encoder.is_full()
    }

    fn window(&self) -> usize {
        self.encoder.window()
    }

    fn memory(&self) -> usize {
        self.encoder.memory()
    }

    fn shrink(&mut self) {
        self.encoder.shrink();
    }
}

/// The regular decoder with a buffer for coefficients.
#[derive(Debug)]
pub(super) struct RealDecoder {
    decoder: Decoder,
    coefficients: Vec<u8>,
    /// Reports list unseen symbols instead of groups that are not decodable.
    lists_unseen: bool,
}

impl RealDecoder {
    pub(super) fn new(config: DecoderConfig) -> Self {
        Self { decoder: Decoder::new(config), coefficients: Vec::new(), lists_unseen: false }
    }

    /// For a sender whose combinations span few symbols: reports list the symbols that are not seen.
    pub(super) fn listing_unseen(self) -> Self {
        Self { lists_unseen: true, ..self }
    }
}

impl SymbolDecoder for RealDecoder {
    fn handle_source(&mut self, index: SymbolIndex, contents: &[u8]) -> Result<Arrival, DecodeError> {
        self.decoder.handle_source(index, contents)
    }

    fn handle_keyed(
        &mut self,
        range: SymbolRange,
        density: u8,
        key: u16,
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        generate(range, density, key, &mut self.coefficients);
        self.decoder.handle_combination(range, &self.coefficients, payload)
    }

    fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        self.decoder.handle_combination(range, coefficients, payload)
    }

    fn poll_decoded(&mut self) -> Option<(SymbolIndex, &[u8])> {
        self.decoder.poll_decoded()
    }

    fn release_before(&mut self, index: SymbolIndex) {
        self.decoder.release_before(index);
    }

    fn skip_before(&mut self, index: SymbolIndex) {
        self.decoder.skip_before(index);
    }

    fn oldest_undecoded(&self) -> SymbolIndex {
        self.decoder.oldest_undecoded()
    }

    fn oldest_unseen(&self) -> SymbolIndex {
        self.decoder.oldest_unseen()
    }

    fn known_end(&self) -> SymbolIndex {
        self.decoder.known_end()
    }

    fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> SymbolIndex {
        if self.lists_unseen {
            return self.decoder.unseen_intervals(limit, intervals);
        }
        self.decoder.undecodable_intervals(limit, intervals)
    }

    fn memory(&self) -> usize {
        self.decoder.memory()
    }

    fn shrink(&mut self) {
        self.decoder.shrink();
    }
}
