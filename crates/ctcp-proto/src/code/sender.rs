//! The sending half of the symbol space: it keeps the source symbols that the receiver may still lack and turns the
//! code's choices into frames.

use ctcp_coding::{Encoder, SymbolRange, coefficients};

use super::{Choice, Feedback, SendCode, Sent, Situation};
use crate::id::SymbolIndex;
use crate::stream::Streams;
use crate::wire::{COMBINATION_OVERHEAD_MAX, DatagramBuilder, Frame};

/// Density threshold of our coefficients: 15, never zero (RFC 8681 section 3.6).
const DENSITY: u8 = 15;

/// Room below which no new symbol is begun in a datagram: a few bytes would cost a whole symbol's overhead.
const SYMBOL_ROOM_MIN: usize = 256;

/// Source symbols in the window, and which of them to combine next.
#[derive(Debug)]
pub(crate) struct CodedSender {
    code: SendCode,
    encoder: Encoder,
    /// How many symbols behind its oldest undecoded one the receiver stores.
    peer_window: u64,
    /// Oldest symbol the receiver cannot decode, by its newest acknowledgement.
    peer_undecoded: SymbolIndex,
    coefficients: Vec<u8>,
    scratch: Vec<u8>,
    counts: SenderCounts,
}

/// What was sent, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounts {
    /// New source symbols.
    pub(crate) symbols: u64,
    /// Combinations and repeated symbols.
    pub(crate) repairs: u64,
}

impl CodedSender {
    /// `symbol_size_max` in bytes, `window` in symbols: what we keep ourselves; `peer_window`: what the receiver keeps.
    pub(crate) fn new(code: SendCode, symbol_size_max: usize, window: usize, peer_window: u64) -> Self {
        Self {
            code,
            encoder: Encoder::new(symbol_size_max, window),
            peer_window,
            peer_undecoded: 0,
            coefficients: Vec::new(),
            scratch: Vec::new(),
            counts: SenderCounts::default(),
        }
    }

    /// True when another source symbol fits into the windows of both sides.
    pub(crate) fn has_room(&self) -> bool {
        !self.encoder.is_full()
            && self.encoder.next_index() < self.peer_undecoded.saturating_add(self.peer_window)
    }

    /// Symbols the receiver may still lack.
    pub(crate) fn outstanding(&self) -> u64 {
        self.encoder.next_index() - self.peer_undecoded
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// Which combination would be useful now.
    pub(crate) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        self.code.choose(situation)
    }

    /// Which combination to probe a silent path with.
    pub(crate) fn choose_probe(&mut self) -> Option<Choice> {
        self.code.choose_probe()
    }

    /// The longest payload that the frame of `choice` may have, in bytes; 0 for a new symbol, which takes what room
    /// there is.
    pub(crate) fn payload_size_max(&self, choice: Choice) -> usize {
        let (first, length) = match choice {
            Choice::NewSymbol => return 0,
            Choice::Again(index) => (index, 1),
            Choice::Combination { first, length, .. } => (first, u64::from(length)),
        };
        let symbols = (first..first + length).filter_map(|index| self.encoder.symbol(index));
        symbols.map(<[u8]>::len).max().unwrap_or(0)
    }

    /// Writes the frame of `choice` behind what the datagram holds already; `None` if it does not fit or the streams
    /// have nothing after all. New symbols have at most `symbol_size` bytes.
    pub(crate) fn write(
        &mut self,
        choice: Choice,
        symbol_size: usize,
        streams: &mut Streams,
        builder: &mut DatagramBuilder,
        situation: &Situation,
    ) -> Option<Sent> {
        let room = builder.remaining().saturating_sub(COMBINATION_OVERHEAD_MAX);
        let index = match choice {
            Choice::NewSymbol => self.write_new(symbol_size.min(room), streams, builder)?,
            Choice::Again(index) => self.write_again(index, room, builder)?,
            Choice::Combination { first, length, key } => {
                self.write_combination(first, length, key, room, builder)?
            }
        };
        match choice {
            Choice::NewSymbol => self.counts.symbols += 1,
            Choice::Again(_) | Choice::Combination { .. } => self.counts.repairs += 1,
        }
        Some(self.code.on_sent(choice, index, situation))
    }

    pub(crate) fn on_acked(&mut self, sent: &Sent) {
        self.code.on_acked(sent);
    }

    pub(crate) fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.code.on_lost(sent, was_expired);
    }

    pub(crate) fn on_expired(&mut self, sent: &Sent) {
        self.code.on_expired(sent);
    }

    /// Takes the receiver's report; symbols it has decoded leave the window.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.code.on_feedback(feedback);
        self.peer_undecoded =
            self.peer_undecoded.max(feedback.oldest_undecoded.min(self.encoder.next_index()));
        self.encoder.release_before(self.peer_undecoded);
    }

    /// One past the last symbol that exists: a report beyond it is a lie.
    pub(crate) fn next_index(&self) -> SymbolIndex {
        self.encoder.next_index()
    }

    fn write_new(
        &mut self,
        size: usize,
        streams: &mut Streams,
        builder: &mut DatagramBuilder,
    ) -> Option<SymbolIndex> {
        let index = self.encoder.next_index();
        if size < SYMBOL_ROOM_MIN || !streams.fill_symbol(index, size, &mut self.scratch) {
            return None;
        }
        let pushed = self.encoder.push(&self.scratch);
        debug_assert_eq!(pushed, Ok(index), "the caller asked has_room");
        builder.write(&Frame::Source { index, floor: self.encoder.first(), symbol: &self.scratch });
        Some(index)
    }

    fn write_again(
        &mut self,
        index: SymbolIndex,
        room: usize,
        builder: &mut DatagramBuilder,
    ) -> Option<SymbolIndex> {
        let floor = self.encoder.first();
        let symbol = self.encoder.symbol(index).filter(|symbol| symbol.len() <= room)?;
        builder.write(&Frame::Source { index, floor, symbol });
        Some(index)
    }

    fn write_combination(
        &mut self,
        first: SymbolIndex,
        length: u16,
        key: u16,
        room: usize,
        builder: &mut DatagramBuilder,
    ) -> Option<SymbolIndex> {
        let range = SymbolRange::new(first, length)?;
        self.coefficients.resize(usize::from(length), 0);
        coefficients::generate(key, DENSITY, &mut self.coefficients);
        self.encoder.combine(range, &self.coefficients, &mut self.scratch).ok()?;
        if self.scratch.len() > room {
            return None;
        }
        let (floor, payload) = (self.encoder.first(), &self.scratch);
        builder.write(&Frame::Coded { first, length, density: DENSITY, key, floor, payload });
        Some(first)
    }
}
