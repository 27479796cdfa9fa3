//! What the receiver lacks, and which repairs in flight span it.
//!
//! ```text
//!   symbols      [ a  a  ?  ?  a  a  x  a  i  i  i )        a arrived, x lost, i in flight, ? unknown
//!   reported           gap 1       gap 2  |known end
//!   repairs      [-----------)                              spans gap 1
//!   in flight          [--------------------)               spans both
//! ```
//!
//! A repair counts for a gap only if it spans it. Gaps are checked from the newest to the oldest: what the repairs that reach a gap supply
//! must cover it and all newer ones, since no older repair helps them. The oldest gap is also checked alone.

use std::collections::VecDeque;

use super::super::{Feedback, Sent};
use super::protection::Margin;
use crate::id::SymbolIndex;
use crate::wire::MissingInterval;

/// For how many symbols after a packet was merely late a gap counts only once its packets are declared lost. A path that reorders does so
/// again; one that did it once should not wait for ever.
const PATIENCE_SYMBOLS: u32 = 1024;

/// The fate of the packet with a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Arrived,
    Lost,
}

/// Symbols that the receiver may lack, and the repairs in flight.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// The receiver has decoded all symbols below this one.
    oldest: SymbolIndex,
    /// The fates of the symbols from `oldest` on.
    fates: VecDeque<Fate>,
    /// Repairs that are neither acknowledged nor lost, in the order in which they were sent.
    repairs: VecDeque<Sent>,
    /// The receiver's last report: what it lacks below `known_end`.
    gaps: Vec<MissingInterval>,
    /// The report is complete below this.
    known_end: SymbolIndex,
    /// Symbols to go until gaps count at once again.
    patience: u32,
}

impl Coverage {
    /// The oldest symbol that the receiver may lack.
    pub(super) fn oldest(&self) -> SymbolIndex {
        self.oldest
    }

    /// One past the newest symbol.
    pub(super) fn next(&self) -> SymbolIndex {
        self.oldest + self.fates.len() as u64
    }

    /// Whether the newest symbol may still be missing at the receiver.
    pub(super) fn is_newest_uncertain(&self) -> bool {
        self.fates.back().is_some_and(|&fate| fate != Fate::Arrived)
    }

    /// A new symbol was sent.
    pub(super) fn on_symbol(&mut self, index: SymbolIndex) {
        debug_assert_eq!(index, self.next(), "symbols are numbered consecutively");
        self.fates.push_back(Fate::InFlight);
        self.patience = self.patience.saturating_sub(1);
    }

    /// A repair was sent.
    pub(super) fn on_repair(&mut self, sent: &Sent) {
        self.repairs.push_back(*sent);
    }

    /// A packet arrived.
    pub(super) fn on_acked(&mut self, sent: &Sent) {
        if self.on_symbol_gone(sent, Fate::Arrived) {
            // This is the symbol itself, later than its successors, or a repair of it alone, which its acknowledgement cannot be told from.
            let was_reported = self.gaps.iter().any(|gap| gap.first <= sent.first && sent.first < gap.end);
            if was_reported {
                self.patience = PATIENCE_SYMBOLS;
            }
            return;
        }
        self.remove_repair(sent);
    }

    /// A packet was lost, or is so old that it does not count as in flight.
    pub(super) fn on_gone(&mut self, sent: &Sent) {
        if !self.on_symbol_gone(sent, Fate::Lost) {
            self.remove_repair(sent);
        }
    }

    /// The receiver reported what it lacks.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.give_up_before(feedback.oldest_undecoded);
        let oldest = self.oldest;
        self.known_end = feedback.known_end.min(feedback.reported_end).max(oldest);
        let next = self.next();
        // What a peer claims is cut to the symbols that exist.
        let existing = feedback.intervals.iter().map(|gap| {
            let (first, end) = (gap.first.max(oldest), gap.end.min(next));
            MissingInterval { first, end, missing: gap.missing.min(end.saturating_sub(first)) }
        });
        self.gaps.clear();
        self.gaps.extend(existing.filter(|gap| gap.missing > 0));
    }

    /// The receiver does not need the symbols below `index` any more.
    pub(super) fn give_up_before(&mut self, index: SymbolIndex) {
        let oldest = index.clamp(self.oldest, self.next());
        self.fates.drain(..(oldest - self.oldest) as usize);
        self.oldest = oldest;
        self.gaps.retain_mut(|gap| {
            gap.first = gap.first.max(oldest);
            gap.missing = gap.missing.min(gap.end.saturating_sub(gap.first));
            gap.missing > 0
        });
    }

    /// A gap for which the repairs in flight that span it and all newer ones are too few.
    pub(super) fn short(&self, margin: Margin) -> Option<MissingInterval> {
        let unreported = self.lost_after_report();
        if self.gaps.is_empty() && unreported.is_none() {
            return None;
        }
        let reported =
            self.gaps.iter().rev().map(|gap| MissingInterval { missing: self.missing_of(gap), ..*gap });
        let (mut missing, mut oldest) = (0, None);
        for gap in unreported.into_iter().chain(reported).filter(|gap| gap.missing > 0) {
            missing += gap.missing;
            let reaching = self.repairs.iter().filter(|repair| end_of(repair) > gap.first).count();
            if margin.is_short(reaching as u64, missing) {
                return Some(gap);
            }
            oldest = Some(gap);
        }
        oldest.filter(|gap| {
            let spans = |repair: &&Sent| repair.first < gap.end && end_of(repair) > gap.first;
            let spanning = self.repairs.iter().filter(spans).count();
            margin.is_short(spanning as u64, gap.missing)
        })
    }

    /// Degrees of freedom that a reported gap lacks. On a path that reorders, symbols that may only be late do not count.
    fn missing_of(&self, gap: &MissingInterval) -> u64 {
        if self.patience == 0 {
            return gap.missing;
        }
        let late = (gap.first..gap.end).filter(|&index| self.fate(index) == Some(Fate::InFlight)).count();
        gap.missing.saturating_sub(late as u64)
    }

    /// The symbols declared lost of which the receiver has reported nothing.
    fn lost_after_report(&self) -> Option<MissingInterval> {
        let unknown = self.known_end.saturating_sub(self.oldest) as usize;
        let fates = self.fates.iter().enumerate().skip(unknown);
        let mut lost = fates.filter(|&(_, &fate)| fate == Fate::Lost).map(|(place, _)| place);
        let first = lost.next()?;
        let (count, last) = lost.fold((1, first), |(count, _), place| (count + 1, place));
        let index = |place: usize| self.oldest + place as u64;
        Some(MissingInterval { first: index(first), end: index(last) + 1, missing: count })
    }

    fn fate(&self, index: SymbolIndex) -> Option<Fate> {
        self.fates.get(usize::try_from(index.checked_sub(self.oldest)?).ok()?).copied()
    }

    /// Records the fate of a symbol sent uncoded. Returns false if the packet was a repair, or if the fate was known: then it was the
    /// symbol again.
    fn on_symbol_gone(&mut self, sent: &Sent, fate: Fate) -> bool {
        if sent.length != 1 {
            return false;
        }
        let place = sent.first.checked_sub(self.oldest).and_then(|place| usize::try_from(place).ok());
        let Some(known) = place.and_then(|place| self.fates.get_mut(place)) else { return false };
        let is_first = *known == Fate::InFlight;
        if is_first || fate == Fate::Arrived {
            *known = fate;
        }
        is_first
    }

    /// A repair is no longer in flight. Equal ones are interchangeable.
    fn remove_repair(&mut self, sent: &Sent) {
        if let Some(place) = self.repairs.iter().position(|repair| repair == sent) {
            self.repairs.remove(place);
        }
    }
}

fn end_of(repair: &Sent) -> SymbolIndex {
    repair.first + u64::from(repair.length)
}

#[cfg(test)]
mod tests;
