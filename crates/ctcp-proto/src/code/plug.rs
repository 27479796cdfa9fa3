//! Where a laboratory plugs in another way to keep and combine symbols. A product has one: [`Encoder`] and [`Decoder`].

use core::fmt;

use ctcp_coding::{
    Arrival, DecodeError, Decoder, DecoderConfig, Encoder, MissingInterval, SymbolRange, coefficients,
};

use super::Sent;
use crate::id::{Role, SymbolIndex};

/// The sender's window of source symbols.
pub trait SymbolEncoder: fmt::Debug + Send {
    /// Appends a symbol, for which there is room, and returns its index.
    fn push(&mut self, contents: &[u8]) -> SymbolIndex;

    /// A symbol as it was pushed.
    fn symbol(&self, index: SymbolIndex) -> Option<&[u8]>;

    /// Computes a combination of `range` with the coefficients of `key` and `density` into `out`. False if the range is not in the window.
    fn combine(&mut self, range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) -> bool;

    /// Forgets what is below `index`.
    fn release_before(&mut self, index: SymbolIndex);

    /// The oldest symbol in the window.
    fn first(&self) -> SymbolIndex;

    /// One past the newest symbol.
    fn next_index(&self) -> SymbolIndex;

    /// True when there is no room for another symbol.
    fn is_full(&self) -> bool;

    /// Symbols that the window holds at most.
    fn window(&self) -> usize;

    /// Bytes of memory.
    fn memory(&self) -> usize;

    /// A datagram with this combination was sealed: nodes of a simulation may want to know.
    fn on_sealed(&mut self, _sent: &Sent, _datagram: &[u8]) {}
}

/// The receiver's decoder.
pub trait SymbolDecoder: fmt::Debug + Send {
    /// Takes an uncoded symbol.
    ///
    /// # Errors
    /// When the peer may not have sent it.
    fn handle_source(&mut self, index: SymbolIndex, contents: &[u8]) -> Result<Arrival, DecodeError>;

    /// Takes a combination with the coefficients of `key` and `density`.
    ///
    /// # Errors
    /// When the peer may not have sent it.
    fn handle_keyed(
        &mut self,
        range: SymbolRange,
        density: u8,
        key: u16,
        payload: &[u8],
    ) -> Result<Arrival, DecodeError>;

    /// Takes a combination with these coefficients.
    ///
    /// # Errors
    /// When the peer may not have sent it.
    fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError>;

    /// A combination that came to the decoder by other means than a packet, as [`crate::Connection::on_decoder_news`] says.
    fn take_news(&mut self) -> Option<Arrival> {
        None
    }

    /// The next symbol that became known.
    fn poll_decoded(&mut self) -> Option<(SymbolIndex, &[u8])>;

    /// Forgets what is below `index`, if it was handed out.
    fn release_before(&mut self, index: SymbolIndex);

    /// The oldest symbol that is not decoded.
    fn oldest_undecoded(&self) -> SymbolIndex;

    /// The oldest symbol that is not seen (TCP/NC definition 1).
    fn oldest_unseen(&self) -> SymbolIndex;

    /// One past the newest symbol heard of.
    fn known_end(&self) -> SymbolIndex;

    /// Appends at most `limit` groups of undecodable symbols; they are complete below the index returned.
    fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> SymbolIndex;

    /// Bytes of memory.
    fn memory(&self) -> usize;
}

/// Makes both for a connection.
pub trait Coding: fmt::Debug + Send + Sync {
    /// For what this side, `role`, sends.
    fn encoder(&self, role: Role) -> Box<dyn SymbolEncoder>;

    /// For what this side, `role`, receives.
    fn decoder(&self, role: Role) -> Box<dyn SymbolDecoder>;

    /// Symbols that a sender may be ahead of what its peer has decoded.
    fn peer_window(&self) -> u64;
}

/// Our encoder, and the memory of its coefficients.
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
        debug_assert_eq!(pushed, Ok(index), "the caller asked for room");
        index
    }

    fn symbol(&self, index: SymbolIndex) -> Option<&[u8]> {
        self.encoder.symbol(index)
    }

    fn combine(&mut self, range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) -> bool {
        self.coefficients.resize(usize::from(range.length()), 0);
        coefficients::generate(key, density, &mut self.coefficients);
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
}

/// Our decoder, and the memory of the coefficients of what arrives.
#[derive(Debug)]
pub(super) struct RealDecoder {
    decoder: Decoder,
    coefficients: Vec<u8>,
}

impl RealDecoder {
    pub(super) fn new(config: DecoderConfig) -> Self {
        Self { decoder: Decoder::new(config), coefficients: Vec::new() }
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
        self.coefficients.resize(usize::from(range.length()), 0);
        coefficients::generate(key, density, &mut self.coefficients);
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
        self.decoder.undecodable_intervals(limit, intervals)
    }

    fn memory(&self) -> usize {
        self.decoder.memory()
    }
}
