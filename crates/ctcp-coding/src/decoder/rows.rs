//! The row-reduced basis of what is known about unknown symbols, coefficients only.

use super::window::Window;
use crate::gf256::{self, element};
use crate::slots::{Slot, trimmed_length};
use crate::symbol_range::SymbolRange;
use alloc::vec::Vec;

/// One basis vector: a sum of unknown symbols, and how it comes out of the stored equations.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Leading symbol, with coefficient 1.
    pivot: u64,
    /// Symbol of `coefficients[0]`; nothing but zeros up to the pivot.
    first: u64,
    /// Ends with a non-zero.
    coefficients: Vec<u8>,
    /// `row = sum_e transform[e] * equations[e]` on the unknown symbols; missing ones are zero.
    transform: Vec<u8>,
}

/// A combination as it arrived.
#[derive(Debug, Default)]
pub(super) struct Equation {
    pub(super) first: u64,
    /// Empty while the equation's number is free.
    pub(super) coefficients: Vec<u8>,
    pub(super) payload: Slot,
}

/// All rows and equations. Buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    spare: Vec<Row>,
    equations: Vec<Equation>,
    free_equations: Vec<u32>,
}

impl Row {
    pub(super) fn pivot(&self) -> u64 {
        self.pivot
    }

    /// Index after the last symbol involved.
    pub(super) fn end(&self) -> u64 {
        self.first + self.coefficients.len() as u64
    }

    /// From the pivot, with coefficient 1, to the last symbol involved.
    pub(super) fn witness(&self) -> &[u8] {
        &self.coefficients[(self.pivot - self.first) as usize..]
    }

    pub(super) fn transform(&self) -> &[u8] {
        &self.transform
    }

    /// Whether it is a single symbol.
    pub(super) fn is_solved(&self) -> bool {
        self.end() == self.pivot + 1
    }

    pub(super) fn coefficient(&self, index: u64) -> u8 {
        let position = index.checked_sub(self.first).and_then(|position| usize::try_from(position).ok());
        position.and_then(|position| self.coefficients.get(position)).copied().unwrap_or(0)
    }

    /// Sets a coefficient inside the row to zero, without restoring the invariant at the end.
    pub(super) fn clear(&mut self, index: u64) {
        self.coefficients[(index - self.first) as usize] = 0;
    }

    pub(super) fn is_zero(&self) -> bool {
        self.coefficients.iter().all(|&coefficient| coefficient == 0)
    }

    /// How often equation `equation` enters it.
    pub(super) fn transform_of(&self, equation: u32) -> u8 {
        self.transform.get(equation as usize).copied().unwrap_or(0)
    }

    pub(super) fn add_transform(&mut self, addend: &[u8], factor: u8) {
        if self.transform.len() < addend.len() {
            self.transform.resize(addend.len(), 0);
        }
        gf256::mul_add(&mut self.transform[..addend.len()], factor, addend);
    }

    /// Adds `factor * other`, whose pivot lies inside this row, on the coefficients.
    fn add_coefficients(&mut self, other: &Self, factor: u8) {
        let addend = &other.coefficients[(other.pivot - other.first) as usize..];
        let start = (other.pivot - self.first) as usize;
        if self.coefficients.len() < start + addend.len() {
            self.coefficients.resize(start + addend.len(), 0);
        }
        gf256::mul_add(&mut self.coefficients[start..start + addend.len()], factor, addend);
    }

    fn trim(&mut self) {
        self.coefficients.truncate(trimmed_length(&self.coefficients));
    }

    /// Finds the pivot of a row that is not zero, and makes its coefficient 1.
    fn normalise(&mut self) {
        self.trim();
        let lead = self.coefficients.iter().position(|&coefficient| coefficient != 0);
        let lead = lead.expect("a row in the basis is not zero");
        self.pivot = self.first + lead as u64;
        let factor = element::inverse(self.coefficients[lead]).expect("the lead is not zero");
        gf256::scale(&mut self.coefficients[lead..], factor);
        gf256::scale(&mut self.transform, factor);
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, id: u32) -> &Row {
        &self.rows[id as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(super) fn equation(&self, equation: usize) -> &Equation {
        &self.equations[equation]
    }

    /// An unattached row with these coefficients and no transform.
    pub(super) fn new_row(&mut self, first: u64, coefficients: &[u8]) -> Row {
        let mut row = self.spare.pop().unwrap_or_default();
        row.first = first;
        row.coefficients.clear();
        row.coefficients.extend_from_slice(coefficients);
        row.transform.clear();
        row
    }

    pub(super) fn give_back(&mut self, row: Row) {
        self.spare.push(row);
    }

    /// Subtracts `factor` times a row of the basis, on the coefficients.
    pub(super) fn subtract(&self, row: &mut Row, id: u32, factor: u8) {
        row.add_coefficients(&self.rows[id as usize], factor);
    }

    /// Stores a combination and returns its number.
    pub(super) fn add_equation(&mut self, first: u64, coefficients: &[u8], payload: Slot) -> u32 {
        let id = self.free_equations.pop().unwrap_or_else(|| {
            self.equations.push(Equation::default());
            self.equations.len() as u32 - 1
        });
        let equation = &mut self.equations[id as usize];
        equation.first = first;
        equation.coefficients.extend_from_slice(coefficients);
        equation.payload = payload;
        id
    }

    /// Frees an equation that no row's transform contains any more, and returns its payload.
    pub(super) fn drop_equation(&mut self, id: u32) -> Slot {
        debug_assert!(
            self.rows.iter().all(|row| row.transform_of(id) == 0),
            "no row needs a dropped equation"
        );
        let equation = &mut self.equations[id as usize];
        equation.coefficients.clear();
        self.free_equations.push(id);
        core::mem::take(&mut equation.payload)
    }

    /// The transform of `equation` reduced by `reductions`.
    pub(super) fn set_transform(&self, row: &mut Row, equation: u32, reductions: &[(u32, u8)]) {
        row.transform.resize(equation as usize + 1, 0);
        row.transform[equation as usize] = 1;
        for &(id, factor) in reductions {
            row.add_transform(&self.rows[id as usize].transform, factor);
        }
    }

    /// Adds a reduced row to the basis.
    pub(super) fn insert(&mut self, mut row: Row, window: &mut Window) {
        row.normalise();
        for other in &mut self.rows {
            let factor = other.coefficient(row.pivot);
            if factor != 0 {
                other.add_coefficients(&row, factor);
                other.trim();
                other.add_transform(&row.transform, factor);
            }
        }
        window.set_seen(row.pivot, self.rows.len() as u32);
        self.rows.push(row);
    }

    /// Takes a row out of the basis; the last row gets its number.
    pub(super) fn remove(&mut self, id: u32, window: &mut Window) -> Row {
        let row = self.rows.swap_remove(id as usize);
        if let Some(moved) = self.rows.get(id as usize) {
            window.set_seen(moved.pivot, id);
        }
        row
    }

    /// The symbol that leads row `id` has become known: what is left of the row finds another pivot.
    pub(super) fn release_pivot(&mut self, id: u32, window: &mut Window) {
        let mut row = self.remove(id, window);
        row.clear(row.pivot);
        // A row of one symbol would have made it known before, so something is left.
        self.insert(row, window);
    }

    /// A symbol that leads no row has become known.
    pub(super) fn clear_column(&mut self, index: u64) {
        for row in &mut self.rows {
            if row.coefficient(index) != 0 {
                row.clear(index);
                row.trim();
            }
        }
    }

    /// Removes equation `equation` from the transforms of all rows but `id`, by means of row `id`,
    /// whose one symbol is now known and therefore free to be added anywhere.
    pub(super) fn eliminate_equation(&mut self, equation: u32, id: u32) {
        let transform = core::mem::take(&mut self.rows[id as usize].transform);
        let lead = transform[equation as usize];
        let inverse = element::inverse(lead).expect("the row contains the equation");
        for row in &mut self.rows {
            let factor = element::mul(row.transform_of(equation), inverse);
            if factor != 0 {
                row.add_transform(&transform, factor);
            }
        }
        self.rows[id as usize].transform = transform;
        self.rows[id as usize].transform.fill(0);
    }

    /// Forgets how row `id`, which is about to go, came about.
    pub(super) fn clear_transform(&mut self, id: u32) {
        self.rows[id as usize].transform.clear();
    }

    /// Smallest symbol index in a stored equation.
    pub(super) fn oldest_reference(&self) -> Option<u64> {
        if self.rows.is_empty() {
            return None;
        }
        let live = self.equations.iter().filter(|equation| !equation.coefficients.is_empty());
        live.map(|equation| equation.first).min()
    }

    /// Dimension of the span of all rows, within the sums that involve symbols of `range` alone.
    ///
    /// Only rows led inside the range can be part of such a sum. They contribute one each, less the
    /// rank of what they have beyond the range's end, which must cancel.
    pub(super) fn rank_within(&self, range: SymbolRange) -> usize {
        let mut rank = 0;
        let mut beyond: Vec<(u64, Vec<u8>)> = Vec::new();
        for row in self.rows.iter().filter(|row| range.contains(row.pivot)) {
            rank += 1;
            if row.end() > range.end() {
                let skip = (range.end() - row.first) as usize;
                reduce_into(&mut beyond, row.coefficients[skip..].to_vec());
            }
        }
        rank - beyond.len()
    }

    pub(super) fn shrink(&mut self) {
        self.spare = Vec::new();
        if self.rows.is_empty() {
            *self = Self::default();
        }
    }
}

/// Adds `vector` to an echelon form of (lead position, vector) unless it depends on it.
fn reduce_into(echelon: &mut Vec<(u64, Vec<u8>)>, mut vector: Vec<u8>) {
    for (lead, other) in echelon.iter() {
        let Some(&factor) = vector.get(*lead as usize) else { continue };
        if factor != 0 {
            if vector.len() < other.len() {
                vector.resize(other.len(), 0);
            }
            gf256::mul_add(&mut vector[..other.len()], factor, other);
        }
    }
    if let Some(lead) = vector.iter().position(|&coefficient| coefficient != 0) {
        let inverse = element::inverse(vector[lead]).expect("the lead is not zero");
        gf256::scale(&mut vector, inverse);
        echelon.push((lead as u64, vector));
    }
}
