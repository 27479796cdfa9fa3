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
    /// A relay does not have it yet, so that it has not been sent.
    Absent,
    InFlight,
    /// In flight, and sent after newer ones, so that its being missing says nothing.
    Late,
    Arrived,
    Lost,
}

/// Symbols that the receiver may lack, and the repairs in flight.
#[derive(Debug, Default)]
pub(in crate::code) struct Coverage {
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
    /// This side is a relay, which may lack symbols itself.
    has_absent: bool,
    /// The newest symbol that a relay has sent.
    newest: SymbolIndex,
}

impl Coverage {
    /// The oldest symbol that the receiver may lack.
    pub(in crate::code) fn oldest(&self) -> SymbolIndex {
        self.oldest
    }

    /// One past the newest symbol.
    pub(in crate::code) fn next(&self) -> SymbolIndex {
        self.oldest + self.fates.len() as u64
    }

    /// Whether the newest symbol may still be missing at the receiver.
    pub(in crate::code) fn is_newest_uncertain(&self) -> bool {
        self.fates.back().is_some_and(|&fate| !matches!(fate, Fate::Arrived | Fate::Absent))
    }

    /// Counts symbols before `end` that a relay does not have yet.
    pub(in crate::code) fn extend_to(&mut self, end: SymbolIndex) {
        let length = end.saturating_sub(self.oldest) as usize;
        if length > self.fates.len() {
            self.fates.resize(length, Fate::Absent);
            self.has_absent = true;
        }
    }

    /// Whether the receiver may need the symbol, and it was never sent.
    pub(in crate::code) fn is_absent(&self, index: SymbolIndex) -> bool {
        self.fate(index) == Some(Fate::Absent)
    }

    /// A symbol was sent that was absent.
    pub(in crate::code) fn on_present(&mut self, index: SymbolIndex) {
        let place = index.checked_sub(self.oldest).and_then(|place| usize::try_from(place).ok());
        let is_newest = index >= self.newest;
        if let Some(fate) = place.and_then(|place| self.fates.get_mut(place)) {
            *fate = if is_newest { Fate::InFlight } else { Fate::Late };
            self.newest = self.newest.max(index);
            self.patience = self.patience.saturating_sub(1);
        }
    }

    /// The oldest symbol that was sent and may be missing.
    pub(in crate::code) fn oldest_sent(&self) -> Option<SymbolIndex> {
        let place = self.fates.iter().position(|fate| !matches!(fate, Fate::Absent | Fate::Arrived))?;
        Some(self.oldest + place as u64)
    }

    /// A symbol of a run of gaps to be repeated, if possible one of which no repetition is in flight.
    pub(in crate::code) fn missing_in(&self, run: MissingInterval) -> Option<SymbolIndex> {
        let is_repeated = |index| self.repairs.iter().any(|repair| repair.first == index);
        let is_reported = |index| self.gaps.iter().any(|gap| (gap.first..gap.end).contains(&index));
        let is_missing = |&index: &SymbolIndex| match self.fate(index) {
            Some(Fate::Lost) => index >= self.known_end || is_reported(index),
            Some(Fate::InFlight | Fate::Arrived) => is_reported(index),
            _ => false,
        };
        let mut missing = (run.first..run.end).filter(is_missing);
        let first = missing.next()?;
        Some(core::iter::once(first).chain(missing).find(|&index| !is_repeated(index)).unwrap_or(first))
    }

    /// A new symbol was sent.
    pub(in crate::code) fn on_symbol(&mut self, index: SymbolIndex) {
        debug_assert_eq!(index, self.next(), "symbols are numbered consecutively");
        self.fates.push_back(Fate::InFlight);
        self.patience = self.patience.saturating_sub(1);
    }

    /// A repair was sent.
    pub(in crate::code) fn on_repair(&mut self, sent: &Sent) {
        self.repairs.push_back(*sent);
    }

    /// A packet arrived.
    pub(in crate::code) fn on_acked(&mut self, sent: &Sent) {
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
    pub(in crate::code) fn on_gone(&mut self, sent: &Sent) {
        if !self.on_symbol_gone(sent, Fate::Lost) {
            self.remove_repair(sent);
        }
    }

    /// The receiver reported what it lacks.
    pub(in crate::code) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
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
    pub(in crate::code) fn give_up_before(&mut self, index: SymbolIndex) {
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
    pub(in crate::code) fn short(&self, margin: Margin) -> Option<MissingInterval> {
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

    /// The oldest run of gaps for which the repairs in flight are too few. Symbols are combined in groups of `span`, so that what a group
    /// lacks can be told and repaired whatever its successors lack. Each repair counts for one run only.
    pub(in crate::code) fn short_run(&self, margin: Margin, span: u64) -> Option<MissingInterval> {
        let lost = self.lost_after_report();
        let gaps = self.gaps.iter().copied().chain(lost.into_iter().flat_map(|lost| self.lost_in(lost)));
        let pieces = gaps.flat_map(|gap| pieces(gap, span));
        let mut gaps = pieces
            .map(|gap| MissingInterval { missing: self.missing_of(&gap), ..gap })
            .filter(|gap| gap.missing > 0)
            .peekable();
        let mut is_taken = vec![false; if gaps.peek().is_some() { self.repairs.len() } else { 0 }];
        while let Some(mut run) = gaps.next() {
            while let Some(gap) = gaps.next_if(|gap| gap.first / span == run.first / span) {
                run = MissingInterval { end: gap.end, missing: run.missing + gap.missing, ..run };
            }
            let mut in_flight = 0;
            for (repair, is_taken) in self.repairs.iter().zip(&mut is_taken) {
                let helps = !*is_taken && repair.first < run.end && end_of(repair) > run.first;
                if helps && margin.is_short(in_flight, run.missing) {
                    *is_taken = true;
                    in_flight += 1;
                }
            }
            if margin.is_short(in_flight, run.missing) {
                return Some(run);
            }
        }
        None
    }

    /// The symbols, of one group of `span`, that a repair ahead of feedback spans: the newest ones if no other follows soon. Otherwise each
    /// group gets its repairs until the next one is half sent, so that its last symbols have some, too.
    pub(in crate::code) fn exposed(&self, span: u64, is_tail: bool) -> (SymbolIndex, SymbolIndex) {
        let back = if is_tail { 1 } else { 1 + span / 2 };
        let start = self.next().saturating_sub(back).max(self.oldest) / span * span;
        (start.max(self.oldest), self.next().min(start + span))
    }

    /// The lost symbols of an interval, one by one.
    fn lost_in(&self, interval: MissingInterval) -> impl Iterator<Item = MissingInterval> {
        let is_lost = |&index: &SymbolIndex| self.fate(index) == Some(Fate::Lost);
        let one = |index| MissingInterval { first: index, end: index + 1, missing: 1 };
        (interval.first..interval.end).filter(is_lost).map(one)
    }

    /// Degrees of freedom that a reported gap lacks and that this side has. On a path that reorders, symbols that may only be late do not
    /// count.
    fn missing_of(&self, gap: &MissingInterval) -> u64 {
        let does_not_count = |&index: &SymbolIndex| match self.fate(index) {
            Some(Fate::Absent | Fate::Late) => true,
            Some(Fate::InFlight) => self.patience > 0,
            _ => false,
        };
        if self.patience == 0 && !self.has_absent {
            return gap.missing;
        }
        let others = (gap.first..gap.end).filter(does_not_count).count();
        gap.missing.saturating_sub(others as u64)
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
        let is_first = matches!(*known, Fate::InFlight | Fate::Late);
        if is_first || fate == Fate::Arrived {
            *known = fate;
        }
        is_first
    }

    /// A repair is no longer in flight. Those of the same symbols are interchangeable, whichever path carries them.
    fn remove_repair(&mut self, sent: &Sent) {
        let is_equal = |repair: &Sent| (repair.first, repair.length) == (sent.first, sent.length);
        if let Some(place) = self.repairs.iter().position(is_equal) {
            self.repairs.remove(place);
        }
    }
}

/// Divides a gap where a group of `span` symbols ends.
fn pieces(gap: MissingInterval, span: u64) -> impl Iterator<Item = MissingInterval> {
    let mut next = gap.first;
    core::iter::from_fn(move || {
        let first = Some(next).filter(|&next| next < gap.end)?;
        next = gap.end.min((first / span + 1) * span);
        Some(MissingInterval { first, end: next, missing: gap.missing.min(next - first) })
    })
}

fn end_of(repair: &Sent) -> SymbolIndex {
    repair.first + u64::from(repair.length)
}

#[cfg(test)]
mod tests;
