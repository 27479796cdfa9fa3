//! The row-reduced basis of what is known about unknown symbols. It holds coefficients only.
//!
//! A row expresses its leading symbol, the pivot, as a sum of *free* symbols (unknown and leading no row) and of stored equations,
//! which are the combinations as they arrived. In a row-reduced basis the pivot columns carry no information: each is one in its own
//! row and zero in all others. There are as many equations as pivots, so each equation is stored in the column of a pivot, and a row
//! is no longer than its component:
//!
//! ```text
//!   symbol                    4   5   6   7   8   9
//!   column holds             e0   f  e1  e2   f   k      f free symbol, k known (zeros), e stored equation
//!   row of pivot 4            .   .   .   .   .   0
//!   row of pivot 6            .   0   .   .   .   0      zero at the free symbols below the pivot
//!   row of pivot 7            .   0   .   .   .   0
//! ```
//!
//! It does not matter which pivot's column holds which equation. Adding a pivot exchanges a free symbol for an equation in one
//! column, which is a step of in-place Gauss-Jordan elimination.

mod rank;

use super::components::{Component, Components};
use super::tableau::Tableau;
use super::window::{State, Window};
use crate::gf256::{Engine, element};
use crate::slots::Slot;
use alloc::vec::Vec;
use core::ops::Range;

/// The maximum number of rows in one kernel call.
const BATCH: usize = 64;
/// All rows take part in one kernel call if at least one in `SPREAD_SHARE` of them changes.
const SPREAD_SHARE: usize = 4;

/// A combination as it arrived.
#[derive(Debug, Default)]
pub(super) struct Equation {
    pub(super) first: u64,
    /// Empty if there is no equation.
    pub(super) coefficients: Vec<u8>,
    pub(super) payload: Slot,
}

/// All rows and equations. Buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tableau: Tableau,
    /// The leading symbol of each row.
    pivots: Vec<u64>,
    /// For each row, one past its last free symbol. It is exact between arrivals and an upper bound during one.
    ends: Vec<u64>,
    components: Components,
    /// All ones for free symbols and zero for all others, in a ring over the window.
    free: Vec<u8>,
    /// The equations in the columns of pivots, in the same ring.
    equations: Vec<Equation>,
    /// One past the last symbol in the ring. Up to date while there are rows.
    end: u64,
    oldest_reference: Option<u64>,
    /// Scratch: the factor with which a row is added to each row.
    factors: Vec<u8>,
    /// Scratch: the rows of the component being worked on.
    members: Vec<u32>,
    /// Bytes of coefficients read so far in whole-row operations.
    work: u64,
    /// Coefficient buffers of removed equations, kept for reuse.
    spare: Vec<Vec<u8>>,
    /// Bytes allocated for coefficients, including spare buffers.
    coefficients: usize,
}

impl Equation {
    /// Returns one past the last symbol to which it refers.
    pub(super) fn end(&self) -> u64 {
        self.first + self.coefficients.len() as u64
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.pivots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pivots.is_empty()
    }

    pub(super) fn pivot(&self, id: u32) -> u64 {
        self.pivots[id as usize]
    }

    /// Returns the component of a symbol, without the symbols that are already known.
    pub(super) fn component_of(&self, index: u64, window: &Window) -> Option<Component> {
        self.components.of(index, window.oldest_undecoded())
    }

    /// Returns the component that a combination of the symbols `[first, end)` would form.
    pub(super) fn linked(&self, first: u64, end: u64, window: &Window) -> Component {
        self.components.linked(first, end, window.oldest_undecoded())
    }

    /// Returns the bytes of coefficients read so far, as the cost of elimination.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Returns the row's elements for the symbols `[first, end)` of its component, as one or two runs.
    pub(super) fn elements(&self, id: u32, first: u64, end: u64) -> [&[u8]; 2] {
        let row = self.tableau.row(id as usize);
        self.tableau.columns(first, end).map(|columns| &row[columns])
    }

    /// Returns the factor of the equation in the column of symbol `index` in the row.
    pub(super) fn element(&self, id: u32, index: u64) -> u8 {
        self.tableau.row(id as usize)[self.tableau.column(index)]
    }

    /// Returns the equation in the column of a pivot.
    pub(super) fn equation(&self, index: u64) -> &Equation {
        &self.equations[self.place(index)]
    }

    /// Returns the position of a symbol in the ring over the window.
    fn place(&self, index: u64) -> usize {
        index as usize & self.free.len().wrapping_sub(1)
    }

    /// Returns the columns of the symbols `[first, end)` of a component as one or two runs, each with its positions in the ring.
    fn runs(&self, first: u64, end: u64) -> [(Range<usize>, Range<usize>); 2] {
        let [near, far] = self.tableau.columns(first, end);
        // A run ends where a row ends, and the length of the ring is a multiple of a row.
        let (start, next) = (self.place(first), self.place(first + near.len() as u64));
        let places = [start..start + near.len(), next..next + far.len()];
        let [near_places, far_places] = places;
        [(near, near_places), (far, far_places)]
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.tableau.memory() + self.coefficients + self.equations.capacity() * size_of::<Equation>()
    }

    /// Returns one past the last unknown symbol of a row.
    pub(super) fn end_of(&self, id: u32) -> u64 {
        self.ends[id as usize]
    }

    /// Returns the coefficients from the pivot, whose coefficient is 1, to the last symbol involved.
    pub(super) fn witness(&self, id: u32) -> Vec<u8> {
        let mut coefficients = self.free_elements(id, self.pivot(id));
        coefficients[0] = 1;
        coefficients.truncate((self.end_of(id) - self.pivot(id)) as usize);
        coefficients
    }

    /// Returns the last free symbol of a row, searching below the known bound.
    fn last_free(&self, row: usize) -> Option<u64> {
        let (first, end) = (self.pivots[row], self.ends[row]);
        let row = self.tableau.row(row);
        let [(near, near_places), (far, far_places)] = self.runs(first, end);
        let far_first = first + near.len() as u64;
        let last = last_common(&row[far], &self.free[far_places]).map(|position| far_first + position as u64);
        last.or_else(|| {
            last_common(&row[near], &self.free[near_places]).map(|position| first + position as u64)
        })
    }

    /// Replaces `solved` by the numbers of the rows of `component` that have no free symbols.
    pub(super) fn collect_solved(&mut self, component: Component, solved: &mut Vec<u32>) {
        solved.clear();
        self.collect_members(component);
        for position in 0..self.members.len() {
            let id = self.members[position];
            let (pivot, end) = (self.pivots[id as usize], self.ends[id as usize]);
            let last = self.element(id, end - 1);
            if last & self.free[self.place(end - 1)] != 0 {
                continue;
            }
            self.work += end - pivot;
            match self.last_free(id as usize) {
                Some(last) => self.ends[id as usize] = last + 1,
                None => solved.push(id),
            }
        }
    }

    /// Returns the numbers of the rows of `component`.
    pub(super) fn members(&self, component: Component) -> Vec<u32> {
        led_in(&self.pivots, component).collect()
    }

    fn collect_members(&mut self, component: Component) {
        self.members.clear();
        self.members.extend(led_in(&self.pivots, component));
    }

    /// Reduces a combination of `component` by the basis. `first` is the oldest undecoded symbol or a later one.
    ///
    /// Returns the first symbol of the remainder, or `None` if it is zero. A following [`Rows::insert`] adds the remainder.
    pub(super) fn reduce(
        &mut self,
        first: u64,
        coefficients: &[u8],
        component: Component,
        window: &Window,
    ) -> Option<u64> {
        let end = first + coefficients.len() as u64;
        self.reach(end, component, window);
        let (runs, lines) = (self.runs(first, end), self.tableau.lines(component.first, component.end));
        let (rows, _, row) = self.tableau.split(self.pivots.len());
        row.fill(0);
        let mut rest = coefficients;
        for (columns, places) in runs {
            let (head, tail) = rest.split_at(columns.len());
            let elements = row[columns].iter_mut().zip(&self.free[places]);
            elements.zip(head).for_each(|((element, free), coefficient)| *element = coefficient & free);
            rest = tail;
        }
        let mut batch = Batch::new();
        for (source, &pivot) in rows.chunks_exact(row.len()).zip(&self.pivots) {
            let position = pivot.wrapping_sub(first);
            let factor = usize::try_from(position).ok().and_then(|position| coefficients.get(position));
            if let Some(&factor) = factor
                && factor != 0
            {
                self.work += component.length();
                batch.push(source, factor, row, &lines);
            }
        }
        batch.flush(row, &lines);
        self.first_free(self.pivots.len() + 1, first..component.end)
    }

    /// Returns the first free symbol in `symbols` that a row of the tableau contains.
    fn first_free(&self, row: usize, symbols: Range<u64>) -> Option<u64> {
        let row = self.tableau.row(row);
        let mut start = symbols.start;
        for (columns, places) in self.runs(symbols.start, symbols.end) {
            let length = columns.len() as u64;
            if let Some(position) = first_common(&row[columns], &self.free[places]) {
                return Some(start + position as u64);
            }
            start += length;
        }
        None
    }

    /// Extends the ring to all symbols below `end`, and makes room for one more row in `component`.
    fn reach(&mut self, end: u64, component: Component, window: &Window) {
        let first = window.oldest_undecoded();
        let span = component.length() as usize;
        if self.is_empty() {
            self.end = first;
            self.tableau.set_width(span);
            self.free.clear();
        }
        let (components, pivots) = (&self.components, &self.pivots);
        self.tableau.reserve(pivots.len(), span, |row| {
            components.of(pivots[row], first).map_or(0..0, |component| component.first..component.end)
        });
        let old_end = self.end.max(first);
        self.end = old_end.max(end);
        let old_length = self.free.len();
        let length = (self.end - first).next_power_of_two() as usize;
        if old_length >= length.max(self.tableau.width()) {
            self.mark_free(old_end, window);
            return;
        }
        self.free.clear();
        self.free.resize(length.max(self.tableau.width()), 0);
        self.mark_free(first, window);
        if !self.is_empty() {
            self.spread_equations(old_length);
        }
        self.equations.resize_with(self.free.len(), Equation::default);
    }

    /// Marks the free symbols from `first` to the end.
    fn mark_free(&mut self, first: u64, window: &Window) {
        for (index, state) in window.states(first, self.end) {
            if matches!(state, State::Unknown) {
                let place = self.place(index);
                self.free[place] = 0xFF;
            }
        }
    }

    /// Moves the equations from a ring of `old_length` to the present one.
    fn spread_equations(&mut self, old_length: usize) {
        self.equations.resize_with(self.free.len(), Equation::default);
        // The new length is a multiple of the old one, so an equation stays or moves up to an empty position.
        for &pivot in &self.pivots {
            let old = pivot as usize & (old_length - 1);
            let new = pivot as usize & (self.free.len() - 1);
            self.equations.swap(old, new);
        }
    }

    /// Adds the remainder of the last [`Rows::reduce`], which begins with the symbol `lead`.
    pub(super) fn insert(
        &mut self,
        lead: u64,
        (first, coefficients, payload): (u64, &[u8], Slot),
        component: Component,
        window: &mut Window,
    ) {
        let column = self.tableau.column(lead);
        let count = self.pivots.len();
        let (_, row, reduced) = self.tableau.split(count);
        let inverse = element::inverse(reduced[column]).expect("the lead is not zero");
        // Insert the equation, with factor one, in exchange for the symbol. When the row is added to the other rows, the extra
        // one in the symbol's column cancels the symbol there.
        reduced[column] ^= 1;
        Engine::current().combine(row, &[inverse], &[reduced]);
        self.pivots.push(lead);
        self.ends.push(component.end);
        let end = self.last_free(count).map_or(lead + 1, |last| last + 1);
        self.pivots.pop();
        self.collect_members(component);
        self.collect_factors(column);
        self.add_to_rows(component, end);
        self.tableau.split(count).1[column] = inverse;
        self.components.add_row(component);
        self.pivots.push(lead);
        self.ends[count] = end;
        let place = self.place(lead);
        self.free[place] = 0;
        let equation = &mut self.equations[place];
        equation.first = first;
        equation.coefficients = self.spare.pop().unwrap_or_default();
        self.coefficients -= equation.coefficients.capacity();
        equation.coefficients.extend_from_slice(coefficients);
        self.coefficients += equation.coefficients.capacity();
        equation.payload = payload;
        self.oldest_reference = Some(self.oldest_reference.map_or(first, |oldest| oldest.min(first)));
        window.set_seen(lead, count as u32);
    }

    /// Collects the elements of the member rows in a column. All other rows are zero there.
    fn collect_factors(&mut self, column: usize) {
        self.factors.clear();
        self.factors.resize(self.pivots.len(), 0);
        for &id in &self.members {
            self.factors[id as usize] = self.tableau.row(id as usize)[column];
        }
    }

    /// Adds the first scratch row to all rows, multiplied by `factors`. It belongs to `component` and has no free symbols from `end` on.
    fn add_to_rows(&mut self, component: Component, end: u64) {
        let count = self.pivots.len();
        let lines = self.tableau.lines(component.first, component.end);
        let (rows, row, _) = self.tableau.split(count);
        let engine = Engine::current();
        let width = row.len();
        let members = || self.members.iter().map(|&id| id as usize).filter(|&id| self.factors[id] != 0);
        let changing = members().count();
        self.work += changing as u64 * component.length();
        members().for_each(|id| self.ends[id] = self.ends[id].max(end));
        if changing * SPREAD_SHARE >= count && lines[0].len() == width {
            engine.spread(rows, &self.factors, row);
            return;
        }
        for id in members() {
            let target = &mut rows[id * width..][..width];
            for line in lines.iter().filter(|line| !line.is_empty()) {
                engine.combine_add(&mut target[line.clone()], &[self.factors[id]], &[&row[line.clone()]]);
            }
        }
    }

    /// Removes a row from the basis, after its equation. Its pivot is an unknown symbol again.
    pub(super) fn free_pivot(&mut self, id: u32, window: &mut Window) {
        let pivot = self.pivot(id);
        let place = self.place(pivot);
        self.free[place] = 0xFF;
        window.set_unseen(pivot);
        self.remove(id, window);
    }

    /// Removes a row from the basis. The last row takes its number.
    pub(super) fn remove(&mut self, id: u32, window: &mut Window) {
        let (row, last) = (id as usize, self.pivots.len() - 1);
        self.components.remove_row(self.pivots[row]);
        self.pivots.swap_remove(row);
        self.ends.swap_remove(row);
        if row < last {
            let (rows, moved, _) = self.tableau.split(last);
            let width = moved.len();
            rows[row * width..][..width].copy_from_slice(moved);
            window.set_seen(self.pivots[row], id);
        }
    }

    /// Updates the basis after the symbol leading row `id` has become known: the rest of the row gets another pivot.
    pub(super) fn release_pivot(&mut self, id: u32, component: Component, window: &mut Window) {
        let count = self.pivots.len();
        let pivot = self.pivots[id as usize];
        let old = self.tableau.column(pivot);
        // A row with a single symbol would have been solved before, so the rest is not empty.
        let end = self.end_of(id);
        let lead = self.first_free(id as usize, pivot..end).expect("an unsolved row contains a free symbol");
        let column = self.tableau.column(lead);
        let (rows, scaled, _) = self.tableau.split(count);
        let width = scaled.len();
        let row = &rows[id as usize * width..][..width];
        let inverse = element::inverse(row[column]).expect("the lead is not zero");
        Engine::current().combine(scaled, &[inverse], &[row]);
        self.collect_members(component);
        self.collect_factors(column);
        self.factors[id as usize] = 0;
        self.add_to_rows(component, end);
        let (rows, scaled, _) = self.tableau.split(count);
        rows[id as usize * width..][..width].copy_from_slice(scaled);
        // The equation in the old pivot's column moves along with the pivot.
        self.tableau.move_column(old, column, &self.members);
        let places = (self.place(pivot), self.place(lead));
        self.equations.swap(places.0, places.1);
        self.free[places.1] = 0;
        self.pivots[id as usize] = lead;
        window.set_seen(lead, id);
    }

    /// Updates the basis after a symbol of `component` that leads no row has become known.
    pub(super) fn clear_column(&mut self, index: u64, component: Component) {
        self.collect_members(component);
        self.forget_column(index);
        self.tableau.clear_column(self.tableau.column(index), &self.members);
    }

    /// Updates the basis after a symbol that no row contains has become known.
    pub(super) fn forget_column(&mut self, index: u64) {
        if index < self.end && !self.is_empty() {
            let place = self.place(index);
            self.free[place] = 0;
        }
    }

    /// Returns whether the rows `ids`, all in `component`, contain exactly the equations in the columns of their own pivots, and
    /// no other row contains these. Then the equations can be removed along with the rows. It holds for all rows of a component.
    pub(super) fn are_apart(&mut self, ids: &[u32], component: Component) -> bool {
        self.collect_members(component);
        if ids.len() == self.members.len() {
            return true;
        }
        let columns = || ids.iter().map(|&id| self.tableau.column(self.pivot(id)));
        let mut others = self.members.iter().filter(|id| !ids.contains(id));
        others.all(|&id| {
            let (row, own) = (self.tableau.row(id as usize), self.tableau.column(self.pivot(id)));
            columns().all(|column| row[column] == 0)
                && ids.iter().all(|&solved| self.tableau.row(solved as usize)[own] == 0)
        })
    }

    /// Removes one of the equations in row `id` from all other rows, drops it and returns its payload.
    /// The row's only symbol is now known, so the row can be added to any other. The row is invalid afterwards and must be removed.
    pub(super) fn drop_one_equation(&mut self, id: u32, component: Component) -> Slot {
        let count = self.pivots.len();
        let own = self.tableau.column(self.pivot(id));
        let lines = self.tableau.lines(component.first, component.end);
        let (rows, scaled, _) = self.tableau.split(count);
        let width = scaled.len();
        let row = &mut rows[id as usize * width..][..width];
        let mut columns = lines.into_iter().flatten();
        let column = if row[own] == 0 { columns.find(|&column| row[column] != 0) } else { Some(own) };
        let column = column.expect("rows are independent");
        let inverse = element::inverse(row[column]).expect("the row contains the equation");
        Engine::current().combine(scaled, &[inverse], &[row]);
        row.fill(0);
        self.collect_members(component);
        self.collect_factors(column);
        self.add_to_rows(component, component.first);
        let behind = column.wrapping_sub(self.tableau.column(component.first)) & (width - 1);
        let index = component.first + behind as u64;
        let payload = self.drop_equation_at(index);
        if column != own {
            self.tableau.move_column(own, column, &self.members);
            let places = (self.place(self.pivot(id)), self.place(index));
            self.equations.swap(places.0, places.1);
        }
        payload
    }

    /// Drops the equation in the column of a pivot whose row is about to be removed. No other row may need it.
    pub(super) fn drop_equation_at(&mut self, pivot: u64) -> Slot {
        let place = self.place(pivot);
        let equation = &mut self.equations[place];
        let mut coefficients = core::mem::take(&mut equation.coefficients);
        coefficients.clear();
        self.spare.push(coefficients);
        core::mem::take(&mut equation.payload)
    }

    /// Must be called after equations were dropped and their rows removed.
    pub(super) fn update_oldest_reference(&mut self) {
        self.oldest_reference = self.pivots.iter().map(|&pivot| self.equation(pivot).first).min();
    }

    /// Returns the smallest symbol index in a stored equation.
    pub(super) fn oldest_reference(&self) -> Option<u64> {
        self.oldest_reference
    }

    /// Returns the row's elements from `first` to its end, with zeros for symbols that are not free.
    fn free_elements(&self, id: u32, first: u64) -> Vec<u8> {
        let row = self.tableau.row(id as usize);
        let runs = self.runs(first, self.end_of(id)).into_iter();
        let pairs = runs.flat_map(|(columns, places)| row[columns].iter().zip(&self.free[places]));
        pairs.map(|(element, free)| element & free).collect()
    }

    pub(super) fn shrink(&mut self) {
        self.coefficients -= self.spare.iter().map(Vec::capacity).sum::<usize>();
        self.spare = Vec::new();
        self.components.shrink();
        if self.is_empty() {
            *self = Self::default();
        }
    }
}

/// Returns the numbers of the rows whose pivots lie in `component`.
fn led_in(pivots: &[u64], component: Component) -> impl Iterator<Item = u32> {
    (0..).zip(pivots).filter(move |&(_, &pivot)| component.contains(pivot)).map(|(id, _)| id)
}

/// Returns the first position at which both have a bit in common.
fn first_common(row: &[u8], mask: &[u8]) -> Option<usize> {
    const CHUNK: usize = 64;
    for (number, (row, mask)) in row.chunks(CHUNK).zip(mask.chunks(CHUNK)).enumerate() {
        // Without an early exit inside the chunk, the compiler vectorizes this.
        if row.iter().zip(mask).fold(0, |bits, (a, b)| bits | (a & b)) != 0 {
            let position = row.iter().zip(mask).position(|(a, b)| a & b != 0);
            return position.map(|position| number * CHUNK + position);
        }
    }
    None
}

/// Returns the last position at which both, of equal length, have a bit in common.
fn last_common(row: &[u8], mask: &[u8]) -> Option<usize> {
    const CHUNK: usize = 64;
    let mut end = row.len();
    for (row, mask) in row.rchunks(CHUNK).zip(mask.rchunks(CHUNK)) {
        end -= row.len();
        if row.iter().zip(mask).fold(0, |bits, (a, b)| bits | (a & b)) != 0 {
            let position = row.iter().zip(mask).rposition(|(a, b)| a & b != 0);
            return position.map(|position| end + position);
        }
    }
    None
}

/// Rows collected for one kernel call per run of columns.
struct Batch<'a> {
    sources: [&'a [u8]; BATCH],
    factors: [u8; BATCH],
    count: usize,
}

impl<'a> Batch<'a> {
    fn new() -> Self {
        Self { sources: [&[]; BATCH], factors: [0; BATCH], count: 0 }
    }

    /// Adds `factor * source` to the columns `lines` of `row`, possibly deferred until the batch is full or flushed.
    fn push(&mut self, source: &'a [u8], factor: u8, row: &mut [u8], lines: &[Range<usize>]) {
        (self.sources[self.count], self.factors[self.count]) = (source, factor);
        self.count += 1;
        if self.count == BATCH {
            self.flush(row, lines);
        }
    }

    fn flush(&mut self, row: &mut [u8], lines: &[Range<usize>]) {
        let count = core::mem::take(&mut self.count);
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let mut sources = [&[][..]; BATCH];
            for (part, source) in sources.iter_mut().zip(&self.sources[..count]) {
                *part = &source[line.clone()];
            }
            Engine::current().combine_add(&mut row[line.clone()], &self.factors[..count], &sources[..count]);
        }
    }
}
