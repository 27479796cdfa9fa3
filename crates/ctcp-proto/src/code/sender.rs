//! The sending half of the symbol space: keeps the source symbols that the receiver may still lack and writes the frames that the scheme
//! chooses.

use ctcp_base::Instant;
use ctcp_coding::SymbolRange;

use super::basis::{BasisEncoder, RelayBuffer};
use super::ends::SymbolSource;
use super::plug::{RealEncoder, SymbolEncoder};
use super::recoding::RecodingCode;
use super::segments::{Identity, Outgoing, Part};
use super::{Carried, Choice, Feedback, Scheme, Sent, Situation};
use crate::id::{ContextId, SymbolIndex};
use crate::wire::{Combination, DatagramBuilder, DecoderReport, Frame, combination_overhead};

/// Density threshold of the coefficients: 15 means that none is zero (RFC 8681 section 3.6).
const DENSITY: u8 = 15;

/// Minimum room in a datagram for a new symbol. Smaller symbols would cost too much overhead.
const SYMBOL_ROOM_MIN: usize = 256;

/// The assumed length of symbols before the first one, and the number of symbols over which it is averaged. Sizes of thin flows vary, and a
/// budget does not have to follow each of them.
const SYMBOL_SIZE_FIRST: f64 = 1200.0;
const SYMBOLS_AVERAGED: f64 = 16.0;

/// Bytes of a packet in addition to the symbol: headers of IP, UDP, packet and frame, and the tag.
const PACKET_OVERHEAD: f64 = 68.0;

/// The window of source symbols, and the scheme that combines them.
#[derive(Debug)]
pub(crate) struct CodedSender {
    context: ContextId,
    scheme: Box<dyn Scheme>,
    encoder: Box<dyn SymbolEncoder>,
    /// How many symbols beyond its oldest undecoded one the receiver stores.
    peer_window: u64,
    /// Oldest symbol the receiver needs: it cannot decode it, and the symbol was not given up.
    peer_undecoded: SymbolIndex,
    /// The number of that report; 0 before the first.
    newest_report: u64,
    /// A combination that is too long for one datagram and is being sent in segments. It goes before anything else.
    outgoing: Option<Outgoing>,
    scratch: Vec<u8>,
    /// Scratch: the coefficients of a relay's combination.
    coefficients: Vec<u8>,
    /// The average length of recent symbols in bytes.
    symbol_size: f64,
    counts: SenderCounts,
    /// Old packets count as in flight until they are acknowledged or lost.
    is_patient: bool,
}

/// Statistics of what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounts {
    /// New source symbols.
    pub(crate) symbols: u64,
    /// Combinations and repeated symbols.
    pub(crate) repairs: u64,
}

impl CodedSender {
    /// For a context with the given scheme. `symbol_size_max` is in bytes. `window` is the number of symbols that this side keeps, `peer_window` that of the receiver.
    pub(crate) fn new(
        context: ContextId,
        scheme: Box<dyn Scheme>,
        symbol_size_max: usize,
        window: usize,
        peer_window: u64,
    ) -> Self {
        Self::with_encoder(context, scheme, Box::new(RealEncoder::new(symbol_size_max, window)), peer_window)
    }

    /// Uses an external encoder.
    pub(crate) fn with_encoder(
        context: ContextId,
        scheme: Box<dyn Scheme>,
        encoder: Box<dyn SymbolEncoder>,
        peer_window: u64,
    ) -> Self {
        Self {
            context,
            scheme,
            encoder,
            peer_window,
            peer_undecoded: 0,
            newest_report: 0,
            outgoing: None,
            scratch: Vec::new(),
            coefficients: Vec::new(),
            symbol_size: SYMBOL_SIZE_FIRST,
            counts: SenderCounts::default(),
            is_patient: false,
        }
    }

    /// The sender of a relay, which passes on what arrives in `buffer`. `peer_window` is that of the next hop.
    pub(crate) fn of_relay(
        context: ContextId,
        buffer: RelayBuffer,
        peer_window: u64,
        combines: bool,
    ) -> Self {
        let scheme = RecodingCode::new(buffer.clone(), peer_window, combines);
        Self::with_encoder(context, Box::new(scheme), Box::new(BasisEncoder::new(buffer)), peer_window)
            .patient()
    }

    /// A datagram was sealed.
    pub(crate) fn on_sealed(&mut self, combination: Option<&Carried>, datagram: &[u8]) {
        if let Some(Carried { sent, .. }) = combination {
            self.encoder.on_sealed(sent, datagram);
        }
    }

    /// Whether another source symbol fits into the windows of both sides.
    pub(crate) fn has_room(&self) -> bool {
        !self.encoder.is_full()
            && self.encoder.next_index() < self.peer_undecoded.saturating_add(self.peer_window)
    }

    /// Bytes of memory used by the window.
    pub(crate) fn memory(&self) -> u64 {
        self.encoder.memory() as u64
    }

    /// Frees memory kept for reuse.
    pub(crate) fn shrink(&mut self) {
        self.encoder.shrink();
    }

    /// Symbols that the receiver may not have decoded yet.
    pub(crate) fn outstanding(&self) -> u64 {
        self.encoder.next_index() - self.peer_undecoded
    }

    /// Whether the receiver may still lack a symbol.
    pub(crate) fn is_outstanding(&self, index: SymbolIndex) -> bool {
        (self.peer_undecoded..self.encoder.next_index()).contains(&index)
    }

    /// The oldest symbols that the receiver may not have decoded yet.
    pub(crate) fn oldest(&self, most: usize) -> impl Iterator<Item = SymbolIndex> {
        (self.peer_undecoded..self.encoder.next_index()).take(most)
    }

    /// The average size of a packet with a symbol, in bytes.
    pub(crate) fn packet_size(&self) -> f64 {
        self.symbol_size + PACKET_OVERHEAD
    }

    /// Repairs that `bits_per_second` pay for, in a second.
    pub(crate) fn repairs_for(&self, bits_per_second: u32) -> f64 {
        f64::from(bits_per_second) / (8.0 * self.packet_size())
    }

    /// The coding scheme.
    pub(crate) fn scheme(&self) -> &dyn Scheme {
        &*self.scheme
    }

    /// The coding scheme.
    pub(crate) fn scheme_mut(&mut self) -> &mut dyn Scheme {
        &mut *self.scheme
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// Chooses what would be useful to send now.
    pub(crate) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        self.rest().or_else(|| self.scheme.choose(situation))
    }

    /// Chooses what to send as a probe of a silent path.
    pub(crate) fn choose_probe(&mut self) -> Option<Choice> {
        self.rest().or_else(|| self.scheme.choose_probe())
    }

    fn rest(&self) -> Option<Choice> {
        self.outgoing.as_ref().map(Outgoing::choice)
    }

    /// The longest header that the next symbol may get, in its own packet or as the first symbol of a combination.
    pub(crate) fn overhead(&self) -> usize {
        combination_overhead(self.context, self.encoder.next_index(), self.encoder.window() as u64)
    }

    /// Writes the frame of `choice` after what the datagram already holds, or a segment of it if it fits no datagram of the path. Returns
    /// `None` if there is no room for it next to the other frames, or if the source has no data after all. New symbols have at most
    /// `symbol_size` bytes.
    pub(crate) fn write(
        &mut self,
        choice: Choice,
        symbol_size: usize,
        source: &mut dyn SymbolSource,
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
        let index = self.take_new(symbol_size.min(room), source)?;
        self.counts.symbols += 1;
        let sent = self.scheme.on_sent(choice, index, situation);
        if !source.has_data() {
            self.scheme.on_end();
        }
        if !self.scheme.sends_symbols() {
            let choice = self.scheme.choose(situation)?;
            return self.write_repair(choice, builder, situation);
        }
        let combination = Combination::Source { index, floor: self.encoder.first(), symbol: &self.scratch };
        builder.write(&Frame::Combination(self.context, combination));
        Some(self.carried(sent, Part::Whole))
    }

    /// Writes a copy of a symbol that was sent on another path, or a combination of some, if the symbols are there and there is room.
    pub(crate) fn write_copy(&mut self, choice: Choice, builder: &mut DatagramBuilder) -> Option<Carried> {
        let identity = identity_of(choice)?;
        let Fit::Now = self.write_repair_now(choice, identity, builder)? else { return None };
        self.counts.repairs += 1;
        Some(self.carried(Sent::new(identity.first, identity.length), Part::Copy))
    }

    /// Whether the receiver may lack what a copy carries, and this side still has it.
    pub(crate) fn is_copy_needed(&self, choice: Choice) -> bool {
        match choice {
            Choice::NewSymbol => false,
            Choice::Again(index) => self.is_outstanding(index),
            Choice::Combination { first, length, .. } => {
                first >= self.encoder.first() && self.is_outstanding(first + u64::from(length) - 1)
            }
        }
    }

    /// Writes the frame of a repair if it fits.
    fn write_repair_now(
        &mut self,
        choice: Choice,
        identity: Identity,
        builder: &mut DatagramBuilder,
    ) -> Option<Fit> {
        let Identity { first, length, density, key } = identity;
        let floor = self.encoder.first();
        if self.encoder.recodes() {
            return self.write_recoded(identity, builder);
        }
        Some(if let Choice::Again(index) = choice {
            let symbol = self.encoder.symbol(index)?;
            let combination = Combination::Source { index, floor, symbol };
            write_if_it_fits(&Frame::Combination(self.context, combination), builder)
        } else {
            self.combine(identity)?;
            let payload = &self.scratch;
            let combination = Combination::Coded { first, length, density, key, floor, payload };
            write_if_it_fits(&Frame::Combination(self.context, combination), builder)
        })
    }

    /// Writes what a relay makes of its rows: a symbol as it arrived, or a combination with its coefficients.
    fn write_recoded(&mut self, identity: Identity, builder: &mut DatagramBuilder) -> Option<Fit> {
        let range = SymbolRange::new(identity.first, identity.length)?;
        let mut coefficients = core::mem::take(&mut self.coefficients);
        let span = self.encoder.recode(range, identity.key, &mut coefficients, &mut self.scratch);
        let floor = self.encoder.first();
        let fit = span.map(|span| {
            let combination = if coefficients == [1] {
                Combination::Source { index: span.first(), floor, symbol: &self.scratch }
            } else {
                let (first, payload) = (span.first(), &self.scratch);
                Combination::Recoded { first, coefficients: &coefficients, floor, payload }
            };
            write_if_it_fits(&Frame::Combination(self.context, combination), builder)
        });
        self.coefficients = coefficients;
        fit
    }

    /// Waits for the acknowledgement or loss of packets, however old they are.
    pub(crate) fn patient(self) -> Self {
        Self { is_patient: true, ..self }
    }

    pub(crate) fn on_acked(&mut self, carried: Carried, was_expired: bool) {
        if was_expired && !self.is_patient {
            return;
        }
        match carried.part {
            Part::Whole => self.scheme.on_acked(&carried.sent),
            Part::Piece | Part::Copy => {}
            // The packet has left the network. Whether the whole combination arrived follows from the receiver's report.
            Part::LastPiece => self.scheme.on_expired(&carried.sent),
        }
    }

    pub(crate) fn on_lost(&mut self, carried: Carried, was_expired: bool) {
        if carried.part == Part::Copy {
            return;
        }
        // Only the last segment counts as in flight, but losing any of them leaves the combination incomplete.
        let was_expired = was_expired && !self.is_patient || carried.part == Part::Piece;
        self.scheme.on_lost(&carried.sent, was_expired);
    }

    /// A packet was given up with all others in flight on its path.
    pub(crate) fn on_flight_lost(&mut self, carried: Carried, was_expired: bool) {
        match carried.part {
            Part::Whole | Part::LastPiece => {
                self.scheme.on_flight_lost(&carried.sent, was_expired && !self.is_patient);
            }
            Part::Piece | Part::Copy => self.on_lost(carried, was_expired),
        }
    }

    /// The path has moved to the address to which a copy of this symbol went ahead.
    pub(crate) fn on_sent_ahead(&mut self, symbol: SymbolIndex) {
        self.scheme.on_sent_ahead(symbol);
    }

    pub(crate) fn on_spurious_loss(&mut self, carried: Carried) {
        if carried.part == Part::Copy {
            return;
        }
        self.scheme.on_spurious_loss(&carried.sent);
    }

    pub(crate) fn on_expired(&mut self, carried: Carried) {
        if !self.is_patient && !matches!(carried.part, Part::Piece | Part::Copy) {
            self.scheme.on_expired(&carried.sent);
        }
    }

    /// Processes the receiver's report, unless a newer one has arrived. Returns whether it was processed.
    pub(crate) fn on_report(&mut self, now: Instant, report: &DecoderReport) -> bool {
        if report.number <= self.newest_report {
            return false;
        }
        self.newest_report = report.number;
        self.on_feedback(
            now,
            &Feedback {
                oldest_undecoded: report.oldest_undecoded,
                oldest_unseen: report.oldest_unseen,
                intervals: &report.intervals,
                known_end: report.known_end,
                reported_end: report.reported_end,
            },
        );
        true
    }

    /// Symbols that the receiver has decoded leave the window.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        self.scheme.on_feedback(now, feedback);
        self.release_before(feedback.oldest_undecoded);
    }

    /// The receiver does not need the symbols below `index` any more.
    fn release_before(&mut self, index: SymbolIndex) {
        self.peer_undecoded = self.peer_undecoded.max(index.min(self.encoder.next_index()));
        self.encoder.release_before(self.peer_undecoded);
        if let Some(outgoing) =
            self.outgoing.as_ref().filter(|outgoing| outgoing.first() < self.peer_undecoded)
        {
            // Its first symbol is below the floor now, so the rest is not sent and no last segment will be acknowledged.
            self.scheme.on_expired(&outgoing.sent());
            self.finish_outgoing();
        }
    }

    /// Gives up the symbols below `index`: they are never repaired again.
    pub(crate) fn give_up_before(&mut self, index: SymbolIndex) {
        self.scheme.on_given_up(index);
        self.release_before(index);
    }

    /// One past the last symbol that exists. A report beyond it is a protocol violation.
    pub(crate) fn next_index(&self) -> SymbolIndex {
        self.encoder.next_index()
    }

    /// Fills the next symbol from the source, into the window and the scratch buffer.
    fn take_new(&mut self, size: usize, source: &mut dyn SymbolSource) -> Option<SymbolIndex> {
        let index = self.encoder.next_index();
        if size < SYMBOL_ROOM_MIN || !source.fill_symbol(index, size, &mut self.scratch) {
            return None;
        }
        let pushed = self.encoder.push(&self.scratch);
        debug_assert_eq!(pushed, index, "symbols are numbered consecutively");
        self.symbol_size += (self.scratch.len() as f64 - self.symbol_size) / SYMBOLS_AVERAGED;
        Some(index)
    }

    fn write_repair(
        &mut self,
        choice: Choice,
        builder: &mut DatagramBuilder,
        situation: &Situation,
    ) -> Option<Carried> {
        let identity = identity_of(choice)?;
        let (first, floor) = (identity.first, self.encoder.first());
        match self.write_repair_now(choice, identity, builder)? {
            Fit::Now => {
                self.counts.repairs += 1;
                let sent = self.scheme.on_sent(choice, first, situation);
                Some(self.carried(sent, Part::Whole))
            }
            Fit::Later => None,
            Fit::Never => {
                if self.combine(identity).is_none() {
                    self.scheme.on_too_large(choice);
                    let other = self.scheme.choose(situation).filter(|other| *other != choice)?;
                    return self.write_repair(other, builder, situation);
                }
                self.counts.repairs += 1;
                let sent = self.scheme.on_sent(choice, first, situation);
                let bytes = core::mem::take(&mut self.scratch);
                self.outgoing = Some(Outgoing::new(choice, identity, floor, sent, bytes));
                self.write_piece(builder)
            }
        }
    }

    /// Writes the next segment of the outgoing combination.
    fn write_piece(&mut self, builder: &mut DatagramBuilder) -> Option<Carried> {
        let outgoing = self.outgoing.as_mut()?;
        let (sent, part) = (outgoing.sent(), outgoing.write_piece(self.context, builder)?);
        if part == Part::LastPiece {
            self.finish_outgoing();
        }
        Some(self.carried(sent, part))
    }

    fn carried(&self, sent: Sent, part: Part) -> Carried {
        Carried { context: self.context, sent, part }
    }

    fn finish_outgoing(&mut self) {
        if let Some(outgoing) = self.outgoing.take() {
            self.scratch = outgoing.into_bytes();
        }
    }

    /// Computes a combination into the scratch buffer.
    fn combine(&mut self, identity: Identity) -> Option<()> {
        let range = SymbolRange::new(identity.first, identity.length)?;
        self.encoder.combine(range, identity.density, identity.key, &mut self.scratch).then_some(())
    }
}

/// The identity of the combination for `choice`. A repeated symbol has the same identity each time.
fn identity_of(choice: Choice) -> Option<Identity> {
    match choice {
        Choice::NewSymbol => None,
        Choice::Again(first) => Some(Identity { first, length: 1, density: DENSITY, key: 0 }),
        Choice::Combination { first, length, key } => Some(Identity { first, length, density: DENSITY, key }),
    }
}

/// Whether a frame fits into a packet.
enum Fit {
    /// The frame was written.
    Now,
    /// The frame does not fit next to what the packet holds, but fits into an empty one.
    Later,
    /// The frame fits into no packet of this size.
    Never,
}

fn write_if_it_fits(frame: &Frame<'_>, builder: &mut DatagramBuilder) -> Fit {
    if builder.write_if_it_fits(frame) {
        Fit::Now
    } else if frame.encoded_length() <= builder.capacity() {
        Fit::Later
    } else {
        Fit::Never
    }
}

#[cfg(test)]
mod tests;
