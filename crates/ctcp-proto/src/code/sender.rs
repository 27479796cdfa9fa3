//! The sending half of the symbol space: it keeps the source symbols that the receiver may still lack and turns the
//! code's choices into frames.

use ctcp_base::Instant;
use ctcp_coding::SymbolRange;

use super::plug::{RealEncoder, SymbolEncoder};
use super::segments::{Identity, Outgoing, Part};
use super::{Carried, Choice, Feedback, Scheme, Situation};
use crate::id::SymbolIndex;
use crate::stream::Streams;
use crate::wire::{DatagramBuilder, Frame, combination_overhead};

/// Density threshold of our coefficients: 15, never zero (RFC 8681 section 3.6).
const DENSITY: u8 = 15;

/// Room below which no new symbol is begun in a datagram: a few bytes would cost a whole symbol's overhead.
const SYMBOL_ROOM_MIN: usize = 256;

/// Source symbols in the window, and which of them to combine next.
#[derive(Debug)]
pub(crate) struct CodedSender {
    scheme: Box<dyn Scheme>,
    encoder: Box<dyn SymbolEncoder>,
    /// How many symbols behind its oldest undecoded one the receiver stores.
    peer_window: u64,
    /// Oldest symbol the receiver cannot decode, by its newest acknowledgement.
    peer_undecoded: SymbolIndex,
    /// What is too long for a datagram of the path and leaves in several; it goes before anything else.
    outgoing: Option<Outgoing>,
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
    pub(crate) fn new(
        scheme: Box<dyn Scheme>,
        symbol_size_max: usize,
        window: usize,
        peer_window: u64,
    ) -> Self {
        Self::with_encoder(scheme, Box::new(RealEncoder::new(symbol_size_max, window)), peer_window)
    }

    /// The same over an encoder from outside.
    pub(crate) fn with_encoder(
        scheme: Box<dyn Scheme>,
        encoder: Box<dyn SymbolEncoder>,
        peer_window: u64,
    ) -> Self {
        Self {
            scheme,
            encoder,
            peer_window,
            peer_undecoded: 0,
            outgoing: None,
            scratch: Vec::new(),
            counts: SenderCounts::default(),
        }
    }

    /// A datagram was sealed.
    pub(crate) fn on_sealed(&mut self, combination: Option<&Carried>, datagram: &[u8]) {
        if let Some(Carried { sent, .. }) = combination {
            self.encoder.on_sealed(sent, datagram);
        }
    }

    /// True when another source symbol fits into the windows of both sides.
    pub(crate) fn has_room(&self) -> bool {
        !self.encoder.is_full()
            && self.encoder.next_index() < self.peer_undecoded.saturating_add(self.peer_window)
    }

    /// Bytes of memory that the window takes.
    pub(crate) fn memory(&self) -> u64 {
        self.encoder.memory() as u64
    }

    /// Symbols the receiver may still lack.
    pub(crate) fn outstanding(&self) -> u64 {
        self.encoder.next_index() - self.peer_undecoded
    }

    /// Which packets go, and when.
    pub(crate) fn scheme(&self) -> &dyn Scheme {
        &*self.scheme
    }

    /// Which packets go, and when.
    pub(crate) fn scheme_mut(&mut self) -> &mut dyn Scheme {
        &mut *self.scheme
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// Which combination would be useful now.
    pub(crate) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        self.rest().or_else(|| self.scheme.choose(situation))
    }

    /// Which combination to probe a silent path with.
    pub(crate) fn choose_probe(&mut self) -> Option<Choice> {
        self.rest().or_else(|| self.scheme.choose_probe())
    }

    fn rest(&self) -> Option<Choice> {
        self.outgoing.as_ref().map(Outgoing::choice)
    }

    /// The longest header that the next symbol may meet, in its own packet or as the first of a combination.
    pub(crate) fn overhead(&self) -> usize {
        combination_overhead(self.encoder.next_index(), self.encoder.window() as u64)
    }

    /// Writes the frame of `choice` behind what the datagram holds already, or a piece of it if no datagram of the path
    /// holds the whole. `None` if there is no room for it beside the other frames, or the streams have nothing
    /// after all. New symbols have at most `symbol_size` bytes.
    pub(crate) fn write(
        &mut self,
        choice: Choice,
        symbol_size: usize,
        streams: &mut Streams,
        builder: &mut DatagramBuilder,
        situation: &Situation,
    ) -> Option<Carried> {
        if self.outgoing.is_some() {
            return self.write_piece(builder);
        }
        if choice != Choice::NewSymbol {
            return self.write_repair(choice, builder, situation);
        }
        let room = builder.remaining().saturating_sub(self.overhead());
        let index = self.take_new(symbol_size.min(room), streams)?;
        self.counts.symbols += 1;
        let sent = self.scheme.on_sent(choice, index, situation);
        if !streams.has_data_to_send() {
            self.scheme.on_end();
        }
        if !self.scheme.sends_symbols() {
            let choice = self.scheme.choose(situation)?;
            return self.write_repair(choice, builder, situation);
        }
        builder.write(&Frame::Source { index, floor: self.encoder.first(), symbol: &self.scratch });
        Some(Carried { sent, part: Part::Whole })
    }

    pub(crate) fn on_acked(&mut self, carried: Carried) {
        match carried.part {
            Part::Whole => self.scheme.on_acked(&carried.sent),
            Part::Piece => {}
            // It is on its way no more; whether all of it arrived is for the receiver's report to say.
            Part::LastPiece => self.scheme.on_expired(&carried.sent),
        }
    }

    pub(crate) fn on_lost(&mut self, carried: Carried, was_expired: bool) {
        // Only the last piece counts as in flight, but each may be what the receiver misses.
        self.scheme.on_lost(&carried.sent, was_expired || carried.part == Part::Piece);
    }

    pub(crate) fn on_expired(&mut self, carried: Carried) {
        if carried.part != Part::Piece {
            self.scheme.on_expired(&carried.sent);
        }
    }

    /// Takes the receiver's report; symbols it has decoded leave the window.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        self.scheme.on_feedback(now, feedback);
        self.peer_undecoded =
            self.peer_undecoded.max(feedback.oldest_undecoded.min(self.encoder.next_index()));
        self.encoder.release_before(self.peer_undecoded);
        if let Some(outgoing) =
            self.outgoing.as_ref().filter(|outgoing| outgoing.first() < self.peer_undecoded)
        {
            // It begins below the floor now, and no last piece will tell its fate.
            self.scheme.on_expired(&outgoing.sent());
            self.finish_outgoing();
        }
    }

    /// One past the last symbol that exists: a report beyond it is a lie.
    pub(crate) fn next_index(&self) -> SymbolIndex {
        self.encoder.next_index()
    }

    /// The next symbol, filled from the streams: it is in the window and in the scratch.
    fn take_new(&mut self, size: usize, streams: &mut Streams) -> Option<SymbolIndex> {
        let index = self.encoder.next_index();
        if size < SYMBOL_ROOM_MIN || !streams.fill_symbol(index, size, &mut self.scratch) {
            return None;
        }
        let pushed = self.encoder.push(&self.scratch);
        debug_assert_eq!(pushed, index, "one after the other");
        Some(index)
    }

    fn write_repair(
        &mut self,
        choice: Choice,
        builder: &mut DatagramBuilder,
        situation: &Situation,
    ) -> Option<Carried> {
        let identity = identity_of(choice)?;
        let Identity { first, length, density, key } = identity;
        let floor = self.encoder.first();
        let fit = if let Choice::Again(index) = choice {
            let symbol = self.encoder.symbol(index)?;
            write_if_it_fits(&Frame::Source { index, floor, symbol }, builder)
        } else {
            self.combine(identity)?;
            let payload = &self.scratch;
            write_if_it_fits(&Frame::Coded { first, length, density, key, floor, payload }, builder)
        };
        match fit {
            Fit::Now => {
                self.counts.repairs += 1;
                let sent = self.scheme.on_sent(choice, first, situation);
                Some(Carried { sent, part: Part::Whole })
            }
            Fit::Later => None,
            Fit::Never => {
                self.combine(identity)?;
                self.counts.repairs += 1;
                let sent = self.scheme.on_sent(choice, first, situation);
                let bytes = core::mem::take(&mut self.scratch);
                self.outgoing = Some(Outgoing::new(choice, identity, floor, sent, bytes));
                self.write_piece(builder)
            }
        }
    }

    /// The next piece of what leaves in pieces.
    fn write_piece(&mut self, builder: &mut DatagramBuilder) -> Option<Carried> {
        let outgoing = self.outgoing.as_mut()?;
        let (sent, part) = (outgoing.sent(), outgoing.write_piece(builder)?);
        if part == Part::LastPiece {
            self.finish_outgoing();
        }
        Some(Carried { sent, part })
    }

    fn finish_outgoing(&mut self) {
        if let Some(outgoing) = self.outgoing.take() {
            self.scratch = outgoing.into_bytes();
        }
    }

    /// Computes a combination into the scratch.
    fn combine(&mut self, identity: Identity) -> Option<()> {
        let range = SymbolRange::new(identity.first, identity.length)?;
        self.encoder.combine(range, identity.density, identity.key, &mut self.scratch).then_some(())
    }
}

/// The combination that says what `choice` says. A repeated symbol has the same each time.
fn identity_of(choice: Choice) -> Option<Identity> {
    match choice {
        Choice::NewSymbol => None,
        Choice::Again(first) => Some(Identity { first, length: 1, density: DENSITY, key: 0 }),
        Choice::Combination { first, length, key } => Some(Identity { first, length, density: DENSITY, key }),
    }
}

/// Whether a packet takes a frame.
enum Fit {
    /// It was written.
    Now,
    /// Not beside what the packet holds already, but the next one will.
    Later,
    /// No packet of this size does.
    Never,
}

fn write_if_it_fits(frame: &Frame<'_>, builder: &mut DatagramBuilder) -> Fit {
    let length = frame.encoded_length();
    if length <= builder.remaining() {
        builder.write(frame);
        Fit::Now
    } else if length <= builder.capacity() {
        Fit::Later
    } else {
        Fit::Never
    }
}

#[cfg(test)]
mod tests;
