//! The receiving half of the symbol space: one decoder for combinations of any kind, and what the acknowledgement
//! tells of it.
//!
//! Requirement: C6, U4

use ctcp_coding::{Arrival, DecodeError, DecoderConfig, MissingInterval, SymbolRange};

use super::Code;
use super::plug::{RealDecoder, SymbolDecoder};
use super::segments::{Contradiction, Identity, Incomplete};
use crate::error::{TransportError, TransportErrorCode};
use crate::id::SymbolIndex;
use crate::memory::SYMBOLS_MIN;
use crate::stream::Streams;
use crate::wire::Frame;

/// Combinations that wait for others at most. On a path of 1000 packets (200 Mbit/s, 60 ms) that loses a quarter in bursts, 512 were not
/// enough: most repairs were refused (0.37 of the link, 1.5 repairs a symbol; with 1024, 0.56 and 0.42). A peer that means
/// harm makes us hold 1 MB of coefficients and rows with blocks of 256 symbols and a window of 8192.
const EQUATIONS_MAX: usize = 1024;

/// Degrees of freedom received, and the symbols that follow from them.
#[derive(Debug)]
pub(crate) struct CodedReceiver {
    decoder: Box<dyn SymbolDecoder>,
    symbol_size_max: usize,
    length_max: u16,
    incomplete: Incomplete,
    counts: ReceiverCounts,
    /// What the last acknowledgement said, while nothing has arrived since that could change it.
    report: Option<DecoderReport>,
}

/// What arrived, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverCounts {
    /// Symbols handed to the streams.
    pub(crate) decoded: u64,
    /// Combinations of more than one symbol.
    pub(crate) repairs: u64,
    /// Combinations and symbols that told nothing new.
    pub(crate) redundant: u64,
}

/// What an acknowledgement says of the decoder.
#[derive(Clone, Debug)]
pub(crate) struct DecoderReport {
    pub(crate) oldest_undecoded: SymbolIndex,
    pub(crate) oldest_unseen: SymbolIndex,
    pub(crate) known_end: SymbolIndex,
    pub(crate) intervals: Vec<MissingInterval>,
    pub(crate) reported_end: SymbolIndex,
}

impl CodedReceiver {
    /// `symbol_size_max` in bytes, `window` in symbols: together they bound the memory. No combination may be of more than
    /// `length_max` symbols. Where combinations may span the window, any may have to wait for all others; with every other code, blocks are
    /// apart, and no block is longer than that.
    pub(crate) fn new(code: Code, symbol_size_max: usize, window: usize, length_max: u16) -> Self {
        let (equations_max, component_max) = if code.spans_window() {
            (window, window)
        } else {
            (EQUATIONS_MAX.min(window), usize::from(length_max))
        };
        let config = DecoderConfig { symbol_size_max, window, equations_max, component_max };
        Self::with_decoder(Box::new(RealDecoder::new(config)), symbol_size_max, length_max)
    }

    /// The same over a decoder from outside.
    pub(crate) fn with_decoder(
        decoder: Box<dyn SymbolDecoder>,
        symbol_size_max: usize,
        length_max: u16,
    ) -> Self {
        Self {
            decoder,
            symbol_size_max,
            length_max,
            incomplete: Incomplete::default(),
            counts: ReceiverCounts::default(),
            report: None,
        }
    }

    /// There is no memory, of which `room` bytes are left, for what reaches to the symbol before `end`. It is not kept: the peer reads in the
    /// report what is missing, and repairs it later.
    fn is_too_far(&self, end: SymbolIndex, room: u64) -> bool {
        room < self.symbol_size_max as u64
            && end > self.decoder.oldest_undecoded().saturating_add(SYMBOLS_MIN)
    }

    /// Bytes of memory that symbols and equations take.
    pub(crate) fn memory(&self) -> u64 {
        self.decoder.memory() as u64
    }

    pub(crate) fn counts(&self) -> ReceiverCounts {
        self.counts
    }

    /// Takes a SOURCE, CODED, RECODED or SEGMENT frame and hands every symbol that became known to the streams. True
    /// when some did.
    pub(crate) fn handle(
        &mut self,
        frame: &Frame<'_>,
        streams: &mut Streams,
    ) -> Result<bool, TransportError> {
        let end = match *frame {
            Frame::Source { index, .. } => index.saturating_add(1),
            Frame::Coded { first, length, .. } => first.saturating_add(u64::from(length)),
            Frame::Recoded { first, coefficients, .. } => first.saturating_add(coefficients.len() as u64),
            _ => 0,
        };
        if self.is_too_far(end, streams.room()) {
            return Ok(false);
        }
        let known_end = self.decoder.known_end();
        let (arrival, floor) = match *frame {
            Frame::Source { index, floor, symbol } => (self.decoder.handle_source(index, symbol), floor),
            Frame::Coded { first, length, density, key, floor, payload } => {
                self.counts.repairs += 1;
                self.check_length(length)?;
                (self.decoder.handle_keyed(range(first, length)?, density, key, payload), floor)
            }
            Frame::Recoded { first, coefficients, floor, payload } => {
                self.counts.repairs += 1;
                let length = u16::try_from(coefficients.len()).unwrap_or(u16::MAX);
                self.check_length(length)?;
                (self.decoder.handle_combination(range(first, length)?, coefficients, payload), floor)
            }
            Frame::Segment { .. } => return self.handle_segment(frame, streams),
            _ => return Ok(false),
        };
        let is_innovative = arrival.map_err(fault)? == Arrival::Innovative;
        self.counts.redundant += u64::from(!is_innovative);
        if is_innovative || self.decoder.known_end() > known_end {
            self.report = None;
        }
        let is_news = self.deliver(streams)?;
        // Only after the delivery: what the sender will not combine again need not be kept.
        self.decoder.release_before(floor);
        self.incomplete.release_before(self.decoder.oldest_undecoded());
        Ok(is_news)
    }

    /// Hands every symbol that became known to the streams. True when some did.
    fn deliver(&mut self, streams: &mut Streams) -> Result<bool, TransportError> {
        let before = self.counts.decoded;
        while let Some((_, content)) = self.decoder.poll_decoded() {
            self.counts.decoded += 1;
            streams.on_symbol_decoded(content)?;
        }
        Ok(self.counts.decoded > before)
    }

    /// Takes combinations that came to the decoder by other means than a packet.
    pub(crate) fn handle_news(&mut self, streams: &mut Streams) -> Result<(), TransportError> {
        self.report = None;
        while let Some(arrival) = self.decoder.take_news() {
            self.counts.repairs += 1;
            self.counts.redundant += u64::from(arrival != Arrival::Innovative);
        }
        self.deliver(streams).map(|_| ())
    }

    /// Takes a piece of a combination, and the combination when it is the last that was missing.
    fn handle_segment(&mut self, frame: &Frame<'_>, streams: &mut Streams) -> Result<bool, TransportError> {
        let Frame::Segment { first, length, density, key, floor, offset, total, piece } = *frame else {
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
        self.handle(&Frame::Coded { first, length, density, key, floor, payload: &payload }, streams)
    }

    /// Long combinations cost work and memory, so both sides agree on the longest.
    fn check_length(&self, length: u16) -> Result<(), TransportError> {
        if length > self.length_max {
            return Err(TransportError::new(
                TransportErrorCode::ProtocolViolation,
                "a combination of more symbols than a block has",
            ));
        }
        Ok(())
    }

    /// What to acknowledge, with at most `limit` intervals, the same number each time. Only the first question after an
    /// arrival costs anything: a peer that keeps asking for acknowledgements hears the same again.
    pub(crate) fn report(&mut self, limit: usize) -> DecoderReport {
        let report = self.report.take().unwrap_or_else(|| self.new_report(limit));
        self.report.insert(report).clone()
    }

    fn new_report(&self, limit: usize) -> DecoderReport {
        let mut intervals = Vec::new();
        let reported_end = self.decoder.undecodable_intervals(limit, &mut intervals);
        DecoderReport {
            oldest_undecoded: self.decoder.oldest_undecoded(),
            oldest_unseen: self.decoder.oldest_unseen(),
            known_end: self.decoder.known_end(),
            intervals,
            reported_end,
        }
    }
}

fn range(first: SymbolIndex, length: u16) -> Result<SymbolRange, TransportError> {
    let malformed = TransportError::new(TransportErrorCode::FrameEncoding, "a combination of no symbols");
    SymbolRange::new(first, length).ok_or(malformed)
}

fn fault(error: DecodeError) -> TransportError {
    match error {
        DecodeError::OutsideWindow => {
            TransportError::new(TransportErrorCode::SymbolWindow, "a symbol beyond the window")
        }
        _ => {
            TransportError::new(TransportErrorCode::ProtocolViolation, "a combination that cannot be decoded")
        }
    }
}
