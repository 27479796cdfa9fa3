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
//! ([`Echelon::solve_last`]).
//!
//! Invariant: rows ascend by pivot, and pivots are unique. The first and last coefficients of a row are not zero.

use crate::gf256::{self, element};
use crate::slots::{Slot, SlotPool, round_up_to_line, trimmed_length};
use crate::sweep::sum_into;
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
        self.rows.get(self.position(index)).is_some_and(|row| row.pivot == index)
    }

    /// Returns the position of the first row with a pivot of at least `index`.
    fn position(&self, index: u64) -> usize {
        self.rows.partition_point(|row| row.pivot < index)
    }

    /// Adds the sum of the symbols starting at `first` with these coefficients, unless it depends on the present rows.
    /// Returns whether it was added. The payload must not be longer than a symbol.
    pub fn insert(&mut self, first: u64, coefficients: &[u8], payload: &[u8]) -> bool {
        let mut row = self.spare.pop().unwrap_or_default();
        row.clear();
        row.extend_from_slice(coefficients);
        let Some(lead) = self.eliminate(first, &mut row) else {
            self.spare.push(row);
            return false;
        };
        row.truncate(trimmed_length(&row));
        row.drain(..lead);
        let payload = self.eliminate_payload(payload);
        let pivot = first + lead as u64;
        let position = self.position(pivot);
        self.rows.insert(position, Row { pivot, coefficients: row, payload });
        true
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

    /// Writes `sum_i factor[i] * payload(row[i])` into `out`, without trailing zeros.
    pub(crate) fn combine_payloads<'a>(rows: impl Iterator<Item = (&'a Row, u8)> + Clone, out: &mut Vec<u8>) {
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
            self.spare.push(row.coefficients);
            self.pool.give_back(row.payload);
        }
    }

    /// Reduces the row at `position` to its pivot's symbol. All later symbols it involves must be led by rows that are
    /// already solved. That holds when going from the last row to the first, if there are as many rows as symbols.
    pub fn solve_last(&mut self, position: usize) {
        let row = &self.rows[position];
        if row.coefficients == [1] {
            return;
        }
        let inverse = element::inverse(row.coefficients[0]).expect("a row's lead is not zero");
        let mut slot = self.pool.take();
        let later = self.rows.range(position + 1..).zip(&row.coefficients[1..]);
        let later = later.filter(|&(_, &coefficient)| coefficient != 0);
        let later = later.map(|(other, &coefficient)| (&other.payload, element::mul(coefficient, inverse)));
        let terms = later.chain([(&row.payload, inverse)]);
        let length = terms.clone().map(|(term, _)| term.used()).max().unwrap_or(0);
        sum_into(slot.buffer(round_up_to_line(length)), terms.clone());
        self.work.payload_terms += terms.count() as u64;
        let row = &mut self.rows[position];
        row.coefficients.truncate(1);
        row.coefficients[0] = 1;
        self.pool.give_back(core::mem::replace(&mut row.payload, slot));
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
