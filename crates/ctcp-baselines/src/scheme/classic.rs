//! Classical TCP over symbols, and TCP/NC, its coding layer, exactly as in the papers.
//!
//! ```text
//!   TCP          a window of symbols, cumulative acknowledgements, one timer        (source.rs)
//!    |  each symbol sent or retransmitted             ^ oldest unseen symbol
//!    v                                                |
//!   coding       NUM += R; floor(NUM) combinations of all unseen symbols
//!    |                                                |
//!    v                                                |
//!   packets      neither paced nor counted: the window above is of symbols
//! ```
//!
//! Without the coding layer each symbol is sent uncoded, as in the plain TCP that the papers compare with. Congestion
//! control sees only symbols: their *effective* round trip, from the first transmission until the symbol is seen, and
//! time-outs. The loss of packets is masked, which RFC 9265 advises against. Only the profiles `tcp-nc*` do so.
//!
//! In addition to R there are combinations for the packets that the receiver is known to lack (EOT/PB section II). This
//! number, N_lp, is the newest symbol the receiver has heard of less the one it acknowledges. Alternatively the source
//! estimates it as the symbols that were not acknowledged within a round trip (section V).
//!
//! Requirement: N2, K1, K2

mod codes;
mod source;
mod timer;

use crate::coding::{CombinationCredit, KeyedRange, WindowCode};
use ctcp_base::Instant;
use ctcp_proto::scheme::{Choice, Feedback, RepairRule, Scheme, Sent, Setup, Signal, Situation};
use ctcp_proto::{Redundancy, SymbolIndex};

use crate::rule::{END_OF_TRANSMISSION, PSEUDO_BLOCK as PSEUDO_BLOCK_RULE};
pub(super) use codes::PARTS;
pub(crate) use codes::UNPACED;
pub use codes::{CLASSIC, VEGAS_SOURCE, WINDOW, WINDOW_EOT, WINDOW_EOT_ESTIMATED};
use source::{Reading, Sequence, Wanted};

/// New symbols between two additions of N_lp combinations (EOT/PB section II).
const PSEUDO_BLOCK: u64 = 100;

/// The kind of source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    reading: Reading,
    is_coded: bool,
    is_unpaced: bool,
    estimates_lost: bool,
}

impl Source {
    /// Creates TCP without coding.
    pub(super) fn plain(reading: Reading) -> Self {
        Self { reading, is_coded: false, is_unpaced: false, estimates_lost: false }
    }

    /// Creates TCP with TCP/NC's coding layer.
    pub(super) fn coded(reading: Reading) -> Self {
        Self { is_coded: true, ..Self::plain(reading) }
    }

    /// Makes the window of symbols the only limit for its packets.
    pub(super) fn unpaced(self) -> Self {
        Self { is_unpaced: true, ..self }
    }

    /// Makes the source estimate N_lp instead of reading it from acknowledgements.
    pub(super) fn estimating(self) -> Self {
        Self { estimates_lost: true, ..self }
    }
}

/// TCP with or without its coding layer.
#[derive(Debug)]
pub(super) struct Classic {
    sequence: Sequence,
    coding: Option<Coding>,
    source: Source,
}

/// The coding layer of a source.
#[derive(Debug)]
struct Coding {
    code: WindowCode,
    redundancy: Redundancy,
    /// The maximum number of symbols in a combination.
    length_max: u16,
    /// N_lp: packets that the receiver is known to lack.
    lacking: u64,
    /// Number of new symbols so far.
    symbols: u64,
}

impl Classic {
    pub(super) fn new(setup: &Setup, source: Source) -> Self {
        let length_max = setup.limits.block_size;
        let coding = source.is_coded.then(|| Coding {
            code: WindowCode::new(1.0),
            redundancy: setup.redundancy,
            length_max,
            lacking: 0,
            symbols: 0,
        });
        // All symbols in flight are combined, so there must not be more than a combination may span.
        let window_max =
            if source.is_coded { setup.window_max.min(u32::from(length_max)) } else { setup.window_max };
        Self { sequence: Sequence::new(window_max, source.reading), coding, source }
    }

    fn estimate_lost(&mut self, now: Instant) {
        if let Some(coding) = self.coding.as_mut().filter(|_| self.source.estimates_lost) {
            coding.lacking = self.sequence.overdue(now);
        }
    }
}

impl Scheme for Classic {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        loop {
            let (unseen, next) = (self.sequence.unacked(), self.sequence.next());
            if let Some(choice) = self.coding.as_mut().and_then(|coding| coding.choose(unseen, next)) {
                return Some(choice);
            }
            match (self.sequence.wants(situation.window)?, &mut self.coding) {
                (Wanted::New, _) if situation.has_data && situation.has_room => {
                    return Some(Choice::NewSymbol);
                }
                (Wanted::New, _) => {
                    self.sequence.on_app_limited();
                    return None;
                }
                (Wanted::Again(index), None) => return Some(Choice::Again(index)),
                (Wanted::Again(index), Some(coding)) => {
                    self.sequence.on_sent(situation.now, Wanted::Again(index));
                    coding.earn(situation.loss);
                }
            }
        }
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        match choice {
            Choice::NewSymbol => {
                self.sequence.on_sent(situation.now, Wanted::New);
                self.estimate_lost(situation.now);
                if let Some(coding) = &mut self.coding {
                    coding.on_new_symbol(situation.loss);
                }
                situation.sent(index, 1)
            }
            Choice::Again(first) => {
                self.sequence.on_sent(situation.now, Wanted::Again(first));
                situation.sent(first, 1)
            }
            Choice::Combination { first, length, .. } => {
                if let Some(coding) = &mut self.coding {
                    coding.code.on_sent();
                }
                situation.sent(first, length)
            }
        }
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        None
    }

    fn on_acked(&mut self, _sent: &Sent) {}

    fn on_lost(&mut self, _sent: &Sent, _was_expired: bool) {}

    fn on_expired(&mut self, _sent: &Sent) {}

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        if let Some(coding) = self.coding.as_mut().filter(|_| !self.source.estimates_lost) {
            coding.lacking = feedback.known_end.saturating_sub(feedback.oldest_unseen);
        }
        self.sequence.on_ack(now, feedback.oldest_unseen);
    }

    fn on_end(&mut self) {
        if let Some(coding) = &mut self.coding
            && (coding.follows(&END_OF_TRANSMISSION) || coding.follows(&PSEUDO_BLOCK_RULE))
        {
            coding.code.add(coding.lacking);
        }
    }

    fn sends_symbols(&self) -> bool {
        self.coding.is_none()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.sequence.deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sequence.on_timeout(now);
    }

    fn poll_signal(&mut self) -> Option<Signal> {
        self.sequence.poll_signal()
    }

    fn is_unpaced(&self) -> bool {
        self.source.is_unpaced
    }
}

impl Coding {
    fn follows(&self, rule: &RepairRule) -> bool {
        self.redundancy.as_str() == rule.name
    }

    /// Returns the next combination of all unseen symbols, if one is due.
    fn choose(&mut self, unseen: SymbolIndex, next: SymbolIndex) -> Option<Choice> {
        let KeyedRange { range, key } = self.code.due(unseen, next, self.length_max)?;
        Some(Choice::Combination { first: range.first(), length: range.length(), key })
    }

    fn earn(&mut self, loss: f64) {
        self.code.set_redundancy(self.redundancy.ratio_or(CombinationCredit::ratio_for(loss)));
        self.code.on_symbol();
    }

    fn on_new_symbol(&mut self, loss: f64) {
        self.earn(loss);
        self.symbols += 1;
        if self.follows(&PSEUDO_BLOCK_RULE) && self.symbols.is_multiple_of(PSEUDO_BLOCK) {
            self.code.add(self.lacking);
        }
    }
}

#[cfg(test)]
mod tests;
