//! Classical TCP over symbols, and TCP/NC, its coding layer, to the letter.
//!
//! ```text
//!   TCP          a window of symbols, cumulative acknowledgements, one timer        (source.rs)
//!    |  each symbol it sends, or sends again          ^ oldest symbol not seen
//!    v                                                |
//!   coding       NUM += R; floor(NUM) combinations of all symbols that are not seen
//!    |                                                |
//!    v                                                |
//!   packets      neither paced nor counted: the window above is of symbols
//! ```
//!
//! Without the coding layer each symbol travels as it is: the plain TCP that the papers compare with. Congestion control hears of
//! symbols only: of the *effective* round trip from the first sending of a symbol until it is seen, and of time-outs. The loss of
//! packets is masked, which RFC 9265 advises against: nothing but the profiles `tcp-nc*` does so.
//!
//! On top of R come combinations for the packets that the receiver is known to lack (EOT/PB section II): N_lp, the newest
//! symbol it has heard of less the one it acknowledges; or, as the source's own estimate, the symbols that were not acknowledged within a
//! round trip (section V).
//!
//! Requirement: N2, K1, K2

mod source;

use ctcp_base::Instant;
use ctcp_coding::{CombinationCredit, KeyedRange, WindowCode};

use super::{Choice, Feedback, Sent, Situation, SourceConfig};
use crate::id::SymbolIndex;
use crate::profile::{Code, Profile, ProfileName, Redundancy};
use source::{Reading, Signal, Source, Wanted};

/// New symbols from one addition of N_lp combinations to the next (EOT/PB section II).
const PSEUDO_BLOCK: u64 = 100;

/// TCP with or without its coding layer.
#[derive(Debug)]
pub(crate) struct Classic {
    source: Source,
    coding: Option<Coding>,
    /// N_lp is the source's own estimate and not the acknowledgements'.
    estimates_lost: bool,
}

/// The coding layer of the source.
#[derive(Debug)]
struct Coding {
    code: WindowCode,
    redundancy: Redundancy,
    /// Most symbols in a combination.
    length_max: u16,
    /// N_lp: packets the receiver is known to lack.
    lacking: u64,
    /// New symbols so far.
    symbols: u64,
}

impl Classic {
    pub(super) fn new(profile: Profile, length_max: u16, config: SourceConfig) -> Self {
        let SourceConfig { window_max, estimates_lost } = config;
        let coding = (profile.code == Code::Window).then(|| Coding {
            code: WindowCode::new(1.0),
            redundancy: profile.redundancy,
            length_max,
            lacking: 0,
            symbols: 0,
        });
        // What is under way is combined: no more of it than a combination may span.
        let window_max = if coding.is_some() { window_max.min(u32::from(length_max)) } else { window_max };
        let source = Source::new(window_max);
        let is_later = matches!(profile.name, ProfileName::TcpNcEot | ProfileName::TcpNcPb);
        let reading = match profile.code {
            Code::Classic => Reading::NewReno,
            _ if is_later => Reading::EotPb,
            _ => Reading::TcpNc,
        };
        Self { source: source.read_as(reading), coding, estimates_lost }
    }

    /// Whether a new symbol travels uncoded first.
    pub(super) fn sends_symbols(&self) -> bool {
        self.coding.is_none()
    }

    pub(super) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        loop {
            let (unseen, next) = (self.source.unacked(), self.source.next());
            if let Some(choice) = self.coding.as_mut().and_then(|coding| coding.choose(unseen, next)) {
                return Some(choice);
            }
            match (self.source.wants(situation.window)?, &mut self.coding) {
                (Wanted::New, _) if situation.has_data && situation.has_room => {
                    return Some(Choice::NewSymbol);
                }
                (Wanted::New, _) => {
                    self.source.on_app_limited();
                    return None;
                }
                (Wanted::Again(index), None) => return Some(Choice::Again(index)),
                (Wanted::Again(index), Some(coding)) => {
                    self.source.on_sent(situation.now, Wanted::Again(index));
                    coding.earn(situation.loss);
                }
            }
        }
    }

    pub(super) fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        match choice {
            Choice::NewSymbol => {
                self.source.on_sent(situation.now, Wanted::New);
                self.estimate_lost(situation.now);
                if let Some(coding) = &mut self.coding {
                    coding.on_new_symbol(situation.loss);
                }
                Sent { first: index, length: 1 }
            }
            Choice::Again(first) => {
                self.source.on_sent(situation.now, Wanted::Again(first));
                Sent { first, length: 1 }
            }
            Choice::Combination { first, length, .. } => {
                if let Some(coding) = &mut self.coding {
                    coding.code.on_sent();
                }
                Sent { first, length }
            }
        }
    }

    fn estimate_lost(&mut self, now: Instant) {
        if let Some(coding) = self.coding.as_mut().filter(|_| self.estimates_lost) {
            coding.lacking = self.source.overdue(now);
        }
    }

    /// The symbol just sent was the last one, for now: the application has written no more.
    pub(super) fn on_end(&mut self) {
        if let Some(coding) = &mut self.coding
            && matches!(coding.redundancy, Redundancy::EndOfTransmission(_) | Redundancy::PseudoBlock(_))
        {
            coding.code.add(coding.lacking);
        }
    }

    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        if let Some(coding) = self.coding.as_mut().filter(|_| !self.estimates_lost) {
            coding.lacking = feedback.known_end.saturating_sub(feedback.oldest_unseen);
        }
        self.source.on_ack(now, feedback.oldest_unseen);
    }

    /// When the retransmission timer goes off.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.source.deadline()
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.source.on_timeout(now);
    }

    /// What congestion control has to be told next.
    pub(crate) fn poll_signal(&mut self) -> Option<Signal> {
        self.source.poll_signal()
    }

    /// Symbols that the receiver has not seen.
    pub(crate) fn in_flight(&self) -> u64 {
        self.source.next() - self.source.unacked()
    }
}

impl Coding {
    /// The next combination of all symbols not seen, if one is due.
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
        if matches!(self.redundancy, Redundancy::PseudoBlock(_)) && self.symbols.is_multiple_of(PSEUDO_BLOCK)
        {
            self.code.add(self.lacking);
        }
    }
}

#[cfg(test)]
mod tests;
