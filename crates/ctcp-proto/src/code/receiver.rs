//! The receiving half of a context: one decoder for combinations of any kind, and its report to the sender.
//!
//! Requirement: C6, U4

use ctcp_coding::{Arrival, DecodeError, DecoderConfig, SymbolRange};

use super::Code;
use super::basis::{BasisDecoder, RELAYED_SPAN_MAX, RelayBuffer};
use super::ends::{Arrived, SymbolSink};
use super::plug::{RealDecoder, SymbolDecoder};
use super::segments::{Contradiction, Identity, Incomplete};
use crate::error::{TransportError, TransportErrorCode};
use crate::id::{ContextId, SymbolIndex};
use crate::memory::SYMBOLS_MIN;
use crate::wire::{Combination, DatagramBuilder, DecoderReport, REPORT_INTERVALS_MAX};

/// Maximum number of combinations that wait for others. On a path of 1000 packets (200 Mbit/s, 60 ms) with a quarter lost in bursts, 512
/// were not enough and most repairs were refused. The goodput was 0.37 of the link with 1.5 repairs per symbol; with 1024 it is 0.56 with
/// 0.42. A hostile peer can cause 1 MB of coefficients and rows, with blocks of 256 symbols and a window of 8192.
const EQUATIONS_MAX: usize = 1024;

/// Maximum length of a report in a packet: enough for the longest list on most paths, and room for an ACK and a useful symbol.
const REPORT_SIZE_MAX: usize = 200;

/// Decodes the received combinations and passes the symbols to their sink.
#[derive(Debug)]
pub(crate) struct CodedReceiver {
    context: ContextId,
    decoder: Box<dyn SymbolDecoder>,
    symbol_size_max: usize,
    length_max: u16,
    incomplete: Incomplete,
    counts: ReceiverCounts,
    /// The last report, until something arrives that could change it.
    report: Option<DecoderReport>,
    /// Number of frames with combinations that have arrived, the number of the next report.
    arrived: u64,
    /// The newest report that the sender has acknowledged.
    acked_report: u64,
}

/// Statistics of what arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverCounts {
    /// Symbols passed to the sink.
    pub(crate) decoded: u64,
    /// Combinations of more than one symbol.
    pub(crate) repairs: u64,
    /// Combinations and symbols that carried no new information.
    pub(crate) redundant: u64,
}

impl CodedReceiver {
    /// Memory is bounded by `symbol_size_max` in bytes and `window` in symbols. A combination spans at most `length_max` symbols. If the
    /// code's combinations may span the window, one may have to wait for `linked_max` others, which bounds the work for a packet. With every
    /// other code blocks do not overlap, and none is longer than `length_max`.
    pub(crate) fn new(
        context: ContextId,
        code: Code,
        symbol_size_max: usize,
        window: usize,
        length_max: u16,
        linked_max: usize,
    ) -> Self {
        let (equations_max, component_max) = if code.spans_window() {
            (window.min(linked_max), window.min(linked_max))
        } else {
            (EQUATIONS_MAX.min(window), usize::from(length_max))
        };
        let config = DecoderConfig { symbol_size_max, window, equations_max, component_max };
        let mut decoder = RealDecoder::new(config);
        if context == ContextId::Relayed {
            decoder = decoder.listing_unseen();
        }
        Self::with_decoder(context, Box::new(decoder), symbol_size_max, length_max)
    }

    /// Uses an external decoder.
    pub(crate) fn with_decoder(
        context: ContextId,
        decoder: Box<dyn SymbolDecoder>,
        symbol_size_max: usize,
        length_max: u16,
    ) -> Self {
        Self {
            context,
            decoder,
            symbol_size_max,
            length_max,
            incomplete: Incomplete::default(),
            counts: ReceiverCounts::default(),
            report: None,
            arrived: 0,
            acked_report: 0,
        }
    }

    /// The receiver of a relay, which keeps in `buffer` what the next hop needs.
    pub(crate) fn of_relay(context: ContextId, buffer: RelayBuffer, symbol_size_max: usize) -> Self {
        let decoder = Box::new(BasisDecoder::new(buffer));
        Self::with_decoder(context, decoder, symbol_size_max, RELAYED_SPAN_MAX)
    }

    /// Something changed that a report tells, though nothing arrived: the next one is new again.
    pub(crate) fn on_progress(&mut self) {
        self.report = None;
        self.arrived += 1;
    }

    /// Whether memory is too short (`room` bytes left) to store symbols up to `end`. They are dropped then. The peer learns from the report
    /// that they are missing and repairs them later.
    fn is_too_far(&self, end: SymbolIndex, room: u64) -> bool {
        room < self.symbol_size_max as u64
            && end > self.decoder.oldest_undecoded().saturating_add(SYMBOLS_MIN)
    }

    /// Bytes of memory used by symbols and equations.
    pub(crate) fn memory(&self) -> u64 {
        (self.decoder.memory() + self.incomplete.memory()) as u64
    }

    /// Frees memory kept for reuse.
    pub(crate) fn shrink(&mut self) {
        self.decoder.shrink();
    }

    pub(crate) fn counts(&self) -> ReceiverCounts {
        self.counts
    }

    /// Processes a combination and passes all newly decoded symbols to `sink`. Returns whether there were any.
    pub(crate) fn handle(
        &mut self,
        combination: &Combination<'_>,
        sink: &mut dyn SymbolSink,
    ) -> Result<bool, TransportError> {
        self.arrived += 1;
        self.decode(combination, sink)
    }

    fn decode(
        &mut self,
        combination: &Combination<'_>,
        sink: &mut dyn SymbolSink,
    ) -> Result<bool, TransportError> {
        if self.context == ContextId::Messages && combination.floor() > self.decoder.oldest_undecoded() {
            self.decoder.skip_before(combination.floor());
            self.report = None;
        }
        if self.is_too_far(combination.end(), sink.room()) {
            return Ok(false);
        }
        let known_end = self.decoder.known_end();
        let direct = if let Combination::Source { index, .. } = *combination { Some(index) } else { None };
        let (arrival, floor) = match *combination {
            Combination::Source { index, floor, symbol } => {
                (self.decoder.handle_source(index, symbol), floor)
            }
            Combination::Coded { first, length, density, key, floor, payload } => {
                self.counts.repairs += 1;
                self.check_length(length)?;
                (self.decoder.handle_keyed(range(first, length)?, density, key, payload), floor)
            }
            Combination::Recoded { first, coefficients, floor, payload } => {
                self.counts.repairs += 1;
                let length = u16::try_from(coefficients.len()).unwrap_or(u16::MAX);
                self.check_length(length)?;
                (self.decoder.handle_combination(range(first, length)?, coefficients, payload), floor)
            }
            Combination::Segment { .. } => return self.handle_segment(combination, sink),
        };
        let is_innovative = arrival.map_err(fault)? == Arrival::Innovative;
        self.counts.redundant += u64::from(!is_innovative);
        if is_innovative || self.decoder.known_end() > known_end {
            self.report = None;
        }
        let is_news = self.deliver(sink, direct)?;
        // Only after the delivery: symbols below the floor are never combined again and need not be kept.
        self.decoder.release_before(floor);
        self.incomplete.release_before(self.decoder.oldest_undecoded());
        Ok(is_news)
    }

    /// Passes all newly decoded symbols to `sink`. `direct` is the one that arrived itself. Returns whether there were any.
    fn deliver(
        &mut self,
        sink: &mut dyn SymbolSink,
        direct: Option<SymbolIndex>,
    ) -> Result<bool, TransportError> {
        let before = self.counts.decoded;
        while let Some((index, content)) = self.decoder.poll_decoded() {
            self.counts.decoded += 1;
            sink.on_symbol_decoded(content, Arrived { index, is_repaired: direct != Some(index) })?;
        }
        Ok(self.counts.decoded > before)
    }

    /// Processes combinations that did not arrive in a packet.
    pub(crate) fn handle_news(&mut self, sink: &mut dyn SymbolSink) -> Result<(), TransportError> {
        self.report = None;
        self.arrived += 1;
        while let Some(arrival) = self.decoder.take_news() {
            self.counts.repairs += 1;
            self.counts.redundant += u64::from(arrival != Arrival::Innovative);
        }
        self.deliver(sink, None).map(|_| ())
    }

    /// Processes a segment, and the combination once it is complete.
    fn handle_segment(
        &mut self,
        segment: &Combination<'_>,
        sink: &mut dyn SymbolSink,
    ) -> Result<bool, TransportError> {
        let Combination::Segment { first, length, density, key, floor, offset, total, piece } = *segment
        else {
            return Ok(false);
        };
        if usize::from(total) > self.symbol_size_max {
            return Err(fault(DecodeError::TooLong));
        }
        self.check_length(length)?;
        let identity = Identity { first, length, density, key };
        if identity.end() <= self.decoder.oldest_undecoded() {
            self.counts.redundant += 1;
            return Ok(false);
        }
        let whole = self.incomplete.insert(identity, usize::from(offset), usize::from(total), piece);
        let Some(payload) = whole.map_err(|Contradiction| fault(DecodeError::TooLong))? else {
            return Ok(false);
        };
        self.decode(&Combination::Coded { first, length, density, key, floor, payload: &payload }, sink)
    }

    /// Long combinations cost work and memory, so the handshake limits their length.
    fn check_length(&self, length: u16) -> Result<(), TransportError> {
        if length > self.length_max {
            return Err(TransportError::violation("combination of more symbols than a block has"));
        }
        Ok(())
    }

    /// Writes a report, unless the sender has acknowledged one after which nothing arrived. Returns its number, if it fits.
    pub(crate) fn write_report(&mut self, builder: &mut DatagramBuilder) -> Option<u64> {
        if self.arrived <= self.acked_report {
            return None;
        }
        let context = self.context;
        builder.write_report(context, self.report(), REPORT_SIZE_MAX).then_some(self.arrived)
    }

    /// The state of the decoder. It is cached until something arrives that changes it, so a peer that keeps requesting acknowledgements
    /// causes no further work.
    fn report(&mut self) -> &DecoderReport {
        let mut report = self.report.take().unwrap_or_else(|| self.new_report());
        report.number = self.arrived;
        self.report.insert(report)
    }

    /// Whether this is the number of the newest report, which the sender has not acknowledged.
    pub(crate) fn is_newest_report(&self, number: u64) -> bool {
        number == self.arrived && number > self.acked_report
    }

    /// The sender acknowledged a packet with the report `number`.
    pub(crate) fn on_report_acked(&mut self, number: u64) {
        self.acked_report = self.acked_report.max(number);
    }

    fn new_report(&self) -> DecoderReport {
        let mut intervals = Vec::new();
        let reported_end = self.decoder.undecodable_intervals(REPORT_INTERVALS_MAX, &mut intervals);
        DecoderReport {
            number: self.arrived,
            oldest_undecoded: self.decoder.oldest_undecoded(),
            oldest_unseen: self.decoder.oldest_unseen(),
            known_end: self.decoder.known_end(),
            intervals,
            reported_end,
        }
    }
}

fn range(first: SymbolIndex, length: u16) -> Result<SymbolRange, TransportError> {
    let malformed = TransportError::new(TransportErrorCode::FrameEncoding, "combination of no symbols");
    SymbolRange::new(first, length).ok_or(malformed)
}

fn fault(error: DecodeError) -> TransportError {
    match error {
        DecodeError::OutsideWindow => {
            TransportError::new(TransportErrorCode::SymbolWindow, "symbol beyond the window")
        }
        _ => TransportError::violation("combination that cannot be decoded"),
    }
}
