//! Rows in echelon form whose payloads are eliminated along with their coefficients.
//!
//! ```text
//!   pivot   coefficients               payload
//!     4     [ a  b  .  c ]             a slot
//!     5        [ d  e ]                a slot      an arrival touches only the rows whose pivot is the
//!     7              [ f  g  h ]       a slot      lead of the arriving row, one after another
//! ```
//!
//! A row begins at its pivot and ends with its last non-zero coefficient, so that short rows stay cheap. This is the
//! banded elimination of the thesis (section 3.1.3, Algorithm 1). Coefficients are eliminated first. The payload of an
//! innovative row follows in one fused sweep over the payloads of the subtracted rows; a redundant row costs no payload
//! work.
//!
//! Rows are not reduced by later ones, which is sufficient for both uses of this form. For a relay, the rows with
//! pivots at or above an index span exactly what is known of the symbols from there on, so the rows below it can be
//! dropped ([`Echelon::drop_below`]). For a block, back-substitution is done once, at the end
//! ([`Echelon::reduce`]).
//!
//! Invariant: rows ascend by pivot, and pivots are unique. The first and last coefficients of a row are not zero.

use crate::gf256::{self, element};
use crate::recoder::RecodeError;
use crate::slots::{Slot, SlotPool, round_up_to_line, trimmed_length};
use crate::sweep::sum_into;
use crate::symbol_range::SymbolRange;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The cost of elimination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Products of two coefficients, each added to a third coefficient.
    pub coefficient_products: u64,
    /// Symbol-sized payloads that were multiplied by a coefficient and added.
    pub payload_terms: u64,
}

impl Work {
    /// Returns the total number of byte products, for symbols of `symbol_size` bytes.
    #[must_use]
    pub const fn products(self, symbol_size: u64) -> u64 {
        self.coefficient_products + self.payload_terms * symbol_size
    }
}

/// A sum of symbols and its value.
#[derive(Debug)]
pub struct Row {
    pivot: u64,
    coefficients: Vec<u8>,
    payload: Slot,
}

/// Independent rows. Buffers are reused.
#[derive(Debug)]
pub struct Echelon {
    rows: VecDeque<Row>,
    spare: Vec<Vec<u8>>,
    /// Capacity of the coefficients of all rows.
    coefficients: usize,
    pool: SlotPool,
    /// Scratch: the payload as it arrived, and the rows subtracted from it with their factors.
    incoming: Slot,
    reductions: Vec<(usize, u8)>,
    work: Work,
}

impl Row {
    /// Returns the leading symbol.
    #[must_use]
    pub fn pivot(&self) -> u64 {
        self.pivot
    }

    /// Returns one past the index of the last symbol involved.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.pivot + self.coefficients.len() as u64
    }

    /// Returns the coefficients, starting at the pivot.
    #[must_use]
    pub fn coefficients(&self) -> &[u8] {
        &self.coefficients
    }

    /// Returns whether it is a single symbol as it was sent.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.coefficients == [1]
    }

    /// Returns the value without trailing zeros.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        let value = &self.payload.padded()[..self.payload.used()];
        &value[..trimmed_length(value)]
    }

    /// Returns the value, zero padded to `size` bytes, which must not exceed the maximum symbol size.
    #[must_use]
    pub fn contents(&self, size: usize) -> &[u8] {
        &self.payload.padded()[..size]
    }
}

impl Echelon {
    /// Creates an empty set of rows for symbols of at most `symbol_size_max` bytes.
    #[must_use]
    pub fn new(symbol_size_max: usize) -> Self {
        Self {
            rows: VecDeque::new(),
            spare: Vec::new(),
            coefficients: 0,
            pool: SlotPool::new(symbol_size_max),
            incoming: Slot::default(),
            reductions: Vec::new(),
            work: Work::default(),
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Returns the cost of elimination so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns the row at a position, in the order of pivots.
    #[must_use]
    pub fn row(&self, position: usize) -> Option<&Row> {
        self.rows.get(position)
    }

    /// Returns the rows with pivots in `[first, end)`, ascending.
    pub fn rows_in(&self, first: u64, end: u64) -> impl Iterator<Item = &Row> + Clone {
        self.rows.range(self.position(first)..).take_while(move |row| row.pivot < end)
    }

    /// Returns whether the symbol `index` leads a row.
    #[must_use]
    pub fn has_pivot(&self, index: u64) -> bool {
        self.row_of(index).is_some()
    }

    /// Returns the position of the first row with a pivot of at least `index`.
    fn position(&self, index: u64) -> usize {
        // Most often a row leads each symbol.
        let first = self.rows.front().map_or(index, |row| row.pivot);
        let guess = index.checked_sub(first).and_then(|distance| usize::try_from(distance).ok());
        match guess.filter(|&guess| self.rows.get(guess).is_some_and(|row| row.pivot == index)) {
            Some(position) => position,
            None => self.rows.partition_point(|row| row.pivot < index),
        }
    }

    /// Adds the sum of the symbols starting at `first` with these coefficients, unless it depends on the present rows.
    /// Returns whether it was added. The payload must not be longer than a symbol.
    pub fn insert(&mut self, first: u64, coefficients: &[u8], payload: &[u8]) -> bool {
        self.insert_led(first, coefficients, payload).is_some()
    }

    /// The same. Returns the pivot of the new row, if there is one.
    pub fn insert_led(&mut self, first: u64, coefficients: &[u8], payload: &[u8]) -> Option<u64> {
        let mut row = self.spare.pop().unwrap_or_default();
        row.clear();
        row.extend_from_slice(coefficients);
        let Some(lead) = self.eliminate(first, &mut row) else {
            self.spare.push(row);
            return None;
        };
        row.truncate(trimmed_length(&row));
        row.drain(..lead);
        let payload = self.eliminate_payload(payload);
        let pivot = first + lead as u64;
        let position = self.position(pivot);
        self.coefficients += row.capacity();
        self.rows.insert(position, Row { pivot, coefficients: row, payload });
        Some(pivot)
    }

    /// Adds the symbol `index` itself. A sum that it led gets another pivot, so that the symbol stays a row of its own. Returns the pivot
    /// of the row by which the rank grew, if it did.
    pub fn insert_source(&mut self, index: u64, contents: &[u8]) -> Option<u64> {
        let position = self.position(index);
        let Some(row) = self.rows.get_mut(position).filter(|row| row.pivot == index) else {
            return self.insert_led(index, &[1], contents);
        };
        if row.coefficients.len() == 1 {
            return None;
        }
        let mut coefficients = self.spare.pop().unwrap_or_default();
        coefficients.clear();
        coefficients.push(1);
        let mut payload = self.pool.take();
        payload.write(contents);
        self.coefficients += coefficients.capacity();
        let sum = core::mem::replace(row, Row { pivot: index, coefficients, payload });
        self.coefficients -= sum.coefficients.capacity();
        let pivot = self.insert_led(index, &sum.coefficients, &sum.payload.padded()[..sum.payload.used()]);
        self.spare.push(sum.coefficients);
        self.pool.give_back(sum.payload);
        pivot
    }

    /// Subtracts rows from `row`, which begins at the symbol `first`, until its lead is the pivot of no other row.
    /// Records the subtracted rows and returns the position of the lead, or `None` if nothing is left.
    ///
    /// Pivots after the lead stay: subtracting those rows too would lengthen this row and all that depend on it.
    fn eliminate(&mut self, first: u64, row: &mut Vec<u8>) -> Option<usize> {
        self.reductions.clear();
        let mut position = self.position(first);
        let mut lead = 0;
        loop {
            lead += row[lead..].iter().position(|&coefficient| coefficient != 0)?;
            let pivot = first + lead as u64;
            while self.rows.get(position).is_some_and(|other| other.pivot < pivot) {
                position += 1;
            }
            let Some(other) = self.rows.get(position).filter(|other| other.pivot == pivot) else {
                return Some(lead);
            };
            let inverse = element::inverse(other.coefficients[0]).expect("a row's lead is not zero");
            let factor = element::mul(row[lead], inverse);
            let end = lead + other.coefficients.len();
            if row.len() < end {
                row.resize(end, 0);
            }
            gf256::mul_add(&mut row[lead..end], factor, &other.coefficients);
            self.work.coefficient_products += other.coefficients.len() as u64;
            self.reductions.push((position, factor));
        }
    }

    /// Returns the payload less those of the subtracted rows.
    fn eliminate_payload(&mut self, payload: &[u8]) -> Slot {
        let mut slot = self.pool.take();
        if self.reductions.is_empty() {
            slot.write(payload);
            return slot;
        }
        if self.incoming.is_empty() {
            self.incoming = self.pool.take();
        }
        self.incoming.write(payload);
        let terms =
            || self.reductions.iter().map(|&(position, factor)| (&self.rows[position].payload, factor));
        let terms = || terms().chain([(&self.incoming, 1)]);
        let length = terms().map(|(term, _)| term.used()).max().unwrap_or(0);
        sum_into(slot.buffer(round_up_to_line(length)), terms());
        self.work.payload_terms += self.reductions.len() as u64;
        slot
    }

    /// Returns the rows that involve only symbols of `range`, ascending by pivot.
    pub fn rows_within(&self, range: SymbolRange) -> impl Iterator<Item = &Row> + Clone {
        self.rows_in(range.first(), range.end()).filter(move |row| row.end() <= range.end())
    }

    /// Writes a combination of the rows within `range`: see [`Recoder::combine`](crate::Recoder::combine).
    ///
    /// # Errors
    /// See [`RecodeError`].
    pub fn combine(
        &self,
        range: SymbolRange,
        weights: &[u8],
        coefficients: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<SymbolRange, RecodeError> {
        if self.rows_within(range).count() != weights.len() {
            return Err(RecodeError::WeightCount);
        }
        let terms = self.rows_within(range).zip(weights.iter().copied());
        let terms = terms.filter(|&(_, weight)| weight != 0);
        let bounds = terms.clone().fold(None, |bounds, (row, _)| match bounds {
            None => Some((row.pivot(), row.end())),
            Some((first, end)) => Some((first, row.end().max(end))),
        });
        let (first, end) = bounds.ok_or(RecodeError::Nothing)?;
        coefficients.clear();
        coefficients.resize((end - first) as usize, 0);
        for (row, weight) in terms.clone() {
            let start = (row.pivot() - first) as usize;
            let target = &mut coefficients[start..start + row.coefficients().len()];
            gf256::mul_add(target, weight, row.coefficients());
        }
        coefficients.truncate(trimmed_length(coefficients));
        Self::combine_payloads(terms, payload);
        // No other row contains the first row's leading symbol, so the combination is not empty.
        SymbolRange::from_bounds(first, first + coefficients.len() as u64).ok_or(RecodeError::Nothing)
    }

    /// Writes `sum_i factor[i] * payload(row[i])` into `out`, without trailing zeros.
    fn combine_payloads<'a>(rows: impl Iterator<Item = (&'a Row, u8)> + Clone, out: &mut Vec<u8>) {
        let terms = rows.map(|(row, factor)| (&row.payload, factor));
        let length = terms.clone().map(|(term, _)| term.used()).max().unwrap_or(0);
        out.resize(round_up_to_line(length), 0);
        sum_into(out, terms);
        out.truncate(trimmed_length(out));
    }

    /// Drops the rows with pivots below `index`.
    pub fn drop_below(&mut self, index: u64) {
        while self.rows.front().is_some_and(|row| row.pivot < index) {
            let Some(row) = self.rows.pop_front() else { break };
            self.coefficients -= row.coefficients.capacity();
            self.spare.push(row.coefficients);
            self.pool.give_back(row.payload);
        }
    }

    /// Reduces the row at `position` to its pivot's symbol, if all other symbols that it involves are rows of their own. Returns whether it
    /// is a single symbol now. From the last row to the first, this solves as many rows as there are symbols.
    pub fn reduce(&mut self, position: usize) -> bool {
        let Some(row) = self.rows.get(position) else { return false };
        if row.coefficients == [1] {
            return true;
        }
        let inverse = element::inverse(row.coefficients[0]).expect("a row's lead is not zero");
        let is_source = |index| self.row_of(index).is_some_and(Row::is_source);
        let involved =
            (row.pivot..).zip(&row.coefficients).skip(1).filter(|&(_, &coefficient)| coefficient != 0);
        if !involved.clone().all(|(index, _)| is_source(index)) {
            return false;
        }
        let mut slot = self.pool.take();
        let others = involved.filter_map(|(index, &coefficient)| {
            Some((&self.row_of(index)?.payload, element::mul(coefficient, inverse)))
        });
        let terms = others.chain([(&row.payload, inverse)]);
        let length = terms.clone().map(|(term, _)| term.used()).max().unwrap_or(0);
        sum_into(slot.buffer(round_up_to_line(length)), terms.clone());
        self.work.payload_terms += terms.count() as u64;
        let row = &mut self.rows[position];
        row.coefficients.truncate(1);
        row.coefficients[0] = 1;
        self.pool.give_back(core::mem::replace(&mut row.payload, slot));
        true
    }

    /// Returns the row that the symbol `index` leads.
    #[must_use]
    pub fn row_of(&self, index: u64) -> Option<&Row> {
        self.rows.get(self.position(index)).filter(|row| row.pivot == index)
    }

    /// Returns the bytes of memory for payloads and coefficients, in use or not.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pool.memory() + self.coefficients
    }

    /// Frees memory that is not in use, but for `keep` rows.
    pub fn trim(&mut self, keep: usize) {
        self.spare.truncate(keep);
        self.pool.trim(keep);
    }

    /// Frees memory that is not in use.
    pub fn shrink(&mut self) {
        self.spare = Vec::new();
        self.pool.shrink();
        self.incoming = Slot::default();
        self.rows.shrink_to_fit();
        self.reductions = Vec::new();
    }
}
