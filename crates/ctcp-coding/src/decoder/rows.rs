//! The row-reduced basis of what is known about unknown symbols, coefficients only.
//!
//! A row says what its leading symbol, the pivot, is: a sum of *free* symbols (unknown, leading no row) and of stored equations,
//! those combinations as they arrived. In a row-reduced basis the columns of pivots hold nothing of interest: one in the own
//! row, zero in all others. There are as many equations as pivots, so each equation takes the column of a pivot, and a row is
//! not longer than its component:
//!
//! ```text
//!   symbol                    4   5   6   7   8   9
//!   stands for               e0   f  e1  e2   f   k      f free symbol, k known (zeros), e stored equation
//!   row of pivot 4            .   .   .   .   .   0
//!   row of pivot 6            .   0   .   .   .   0      nothing but zeros at free symbols below the pivot
//!   row of pivot 7            .   0   .   .   .   0
//! ```
//!
//! Which pivot's column an equation has, means nothing else. A new pivot is an exchange of a free symbol for an equation in
//! one column, which is a step of Gauss-Jordan elimination in place.

use super::components::{Component, Components};
use super::tableau::Tableau;
use super::window::{State, Window};
use crate::gf256::{self, Engine, element};
use crate::slots::Slot;
use crate::symbol_range::SymbolRange;
use alloc::vec::Vec;
use core::ops::Range;

/// Rows that enter one kernel call.
const BATCH: usize = 64;
/// All rows take part in one kernel call if at least one in so many changes.
const SPREAD_SHARE: usize = 4;

/// A combination as it arrived.
#[derive(Debug, Default)]
pub(super) struct Equation {
    pub(super) first: u64,
    /// Empty where there is no equation.
    pub(super) coefficients: Vec<u8>,
    pub(super) payload: Slot,
}

/// All rows and equations. Buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tableau: Tableau,
    /// Leading symbol of each row.
    pivots: Vec<u64>,
    /// For each row the index after its last free symbol: exact between arrivals, during one an upper bound.
    ends: Vec<u64>,
    components: Components,
    /// All ones for free symbols, zero for the others, in a ring over the window.
    free: Vec<u8>,
    /// Those in the columns of pivots, in the same ring.
    equations: Vec<Equation>,
    /// Index after the last symbol in the ring, which is up to date while there are rows.
    end: u64,
    oldest_reference: Option<u64>,
    /// Scratch: how often a row is added to each.
    factors: Vec<u8>,
    /// Scratch: the rows of the component at hand.
    members: Vec<u32>,
    /// Bytes of coefficients read so far in whole-row operations.
    work: u64,
    /// Coefficients' memory of equations that have gone.
    spare: Vec<Vec<u8>>,
    /// Bytes of memory for coefficients, in use or not.
    coefficients: usize,
}

impl Equation {
    /// Index after the last symbol it refers to.
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

    /// The component of a symbol, without what is known already.
    pub(super) fn component_of(&self, index: u64, window: &Window) -> Option<Component> {
        self.components.of(index, window.oldest_undecoded())
    }

    /// The component that a combination of the symbols `[first, end)` would make.
    pub(super) fn linked(&self, first: u64, end: u64, window: &Window) -> Component {
        self.components.linked(first, end, window.oldest_undecoded())
    }

    /// Bytes of coefficients read so far: what elimination costs.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// The row's elements at the columns of the symbols `[first, end)`, all of which have one: one or two runs.
    pub(super) fn elements(&self, id: u32, first: u64, end: u64) -> [&[u8]; 2] {
        let row = self.tableau.row(id as usize);
        self.tableau.columns(first, end).map(|columns| &row[columns])
    }

    /// How often the equation in the column of symbol `index` enters the row.
    pub(super) fn element(&self, id: u32, index: u64) -> u8 {
        self.tableau.row(id as usize)[self.tableau.column(index)]
    }

    /// The equation in the column of a pivot.
    pub(super) fn equation(&self, index: u64) -> &Equation {
        &self.equations[self.place(index)]
    }

    /// The place of a symbol in the ring over the window.
    fn place(&self, index: u64) -> usize {
        index as usize & self.free.len().wrapping_sub(1)
    }

    /// The columns of the symbols `[first, end)` of a component, in one or two runs, each with its places in the ring.
    fn runs(&self, first: u64, end: u64) -> [(Range<usize>, Range<usize>); 2] {
        let [near, far] = self.tableau.columns(first, end);
        // A run ends where a row does, and the ring is as long as a number of rows.
        let (start, next) = (self.place(first), self.place(first + near.len() as u64));
        let places = [start..start + near.len(), next..next + far.len()];
        let [near_places, far_places] = places;
        [(near, near_places), (far, far_places)]
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.tableau.memory() + self.coefficients + self.equations.capacity() * size_of::<Equation>()
    }

    /// Index after the last unknown symbol of a row.
    pub(super) fn end_of(&self, id: u32) -> u64 {
        self.ends[id as usize]
    }

    /// From the pivot, with coefficient 1, to the last symbol involved.
    pub(super) fn witness(&self, id: u32) -> Vec<u8> {
        let mut coefficients = self.free_elements(id, self.pivot(id));
        coefficients[0] = 1;
        coefficients.truncate((self.end_of(id) - self.pivot(id)) as usize);
        coefficients
    }

    /// The last free symbol of a row, below the bound that is known.
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

    /// Replaces `solved` by the numbers of the rows of `component` without free symbols.
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

    fn collect_members(&mut self, component: Component) {
        self.members.clear();
        let led = (0..).zip(&self.pivots).filter(|&(_, &pivot)| component.contains(pivot));
        self.members.extend(led.map(|(id, _)| id));
    }

    /// Reduces a combination of unknown and known symbols from `first` on, the oldest undecoded one or later, by the basis.
    /// Returns the first symbol of what is left of it, if anything is; then [`Rows::insert`] may follow. It belongs to `component`.
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

    /// The first free symbol of those that a row of the tableau contains.
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

    /// Gives all symbols up to `end` places, and makes room for one more row, which `component` is to hold.
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

    /// Marks the free ones of the symbols from `first` to the end.
    fn mark_free(&mut self, first: u64, window: &Window) {
        for (index, state) in window.states(first, self.end) {
            if matches!(state, State::Unknown) {
                let place = self.place(index);
                self.free[place] = 0xFF;
            }
        }
    }

    /// Brings the equations from the places of a ring of `old_length` to those of the present one.
    fn spread_equations(&mut self, old_length: usize) {
        self.equations.resize_with(self.free.len(), Equation::default);
        // The new length is a multiple of the old one, so an equation stays or moves up to where none was.
        for &pivot in &self.pivots {
            let old = pivot as usize & (old_length - 1);
            let new = pivot as usize & (self.free.len() - 1);
            self.equations.swap(old, new);
        }
    }

    /// Adds what the last [`Rows::reduce`] left of a combination, which begins with the symbol `lead`.
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
        // The equation itself, once, in exchange for the symbol. While the row is added to the others, a one more in the
        // symbol's column takes the symbol out of them.
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

    /// What the members have in a column; all others have nothing there.
    fn collect_factors(&mut self, column: usize) {
        self.factors.clear();
        self.factors.resize(self.pivots.len(), 0);
        for &id in &self.members {
            self.factors[id as usize] = self.tableau.row(id as usize)[column];
        }
    }

    /// Adds the first scratch row, of a component and without free symbols from `end` on, to all rows as often as `factors` say.
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

    /// Takes a row out of the basis; the last row gets its number.
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

    /// The symbol that leads row `id` has become known: what is left of the row finds another pivot.
    pub(super) fn release_pivot(&mut self, id: u32, component: Component, window: &mut Window) {
        let count = self.pivots.len();
        let pivot = self.pivots[id as usize];
        let old = self.tableau.column(pivot);
        // A row of one symbol would have made it known before, so something is left.
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
        // The equation in the old pivot's column moves with the pivot.
        self.tableau.move_column(old, column, &self.members);
        let places = (self.place(pivot), self.place(lead));
        self.equations.swap(places.0, places.1);
        self.free[places.1] = 0;
        self.pivots[id as usize] = lead;
        window.set_seen(lead, id);
    }

    /// A symbol of `component` that leads no row has become known.
    pub(super) fn clear_column(&mut self, index: u64, component: Component) {
        self.collect_members(component);
        self.forget_column(index);
        self.tableau.clear_column(self.tableau.column(index), &self.members);
    }

    /// A symbol that no row contains has become known.
    pub(super) fn forget_column(&mut self, index: u64) {
        if index < self.end && !self.is_empty() {
            let place = self.place(index);
            self.free[place] = 0;
        }
    }

    /// Whether the equations in the rows `ids`, all of `component`, are those in the columns of their pivots, and in no other row.
    ///
    /// Then they can go together with the rows. If they are all rows of the component, they are, because rows are independent.
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

    /// Takes one of the equations in row `id`, whose one symbol is now known and therefore free to be added anywhere, out of all
    /// other rows, and drops it. Returns its payload. The row is of no use any more and must be removed.
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

    /// Drops the equation in the column of a pivot whose row is about to go. No row needs it any more.
    pub(super) fn drop_equation_at(&mut self, pivot: u64) -> Slot {
        let place = self.place(pivot);
        let equation = &mut self.equations[place];
        let mut coefficients = core::mem::take(&mut equation.coefficients);
        coefficients.clear();
        self.spare.push(coefficients);
        core::mem::take(&mut equation.payload)
    }

    /// To be called after equations were dropped and their rows removed.
    pub(super) fn update_oldest_reference(&mut self) {
        self.oldest_reference = self.pivots.iter().map(|&pivot| self.equation(pivot).first).min();
    }

    /// Smallest symbol index in a stored equation.
    pub(super) fn oldest_reference(&self) -> Option<u64> {
        self.oldest_reference
    }

    /// Dimension of the span of all rows, within the sums that involve symbols of `range` alone.
    ///
    /// Only rows led inside the range can be part of such a sum. They contribute one each, less the
    /// rank of what they have beyond the range's end, which must cancel.
    pub(super) fn rank_within(&self, range: SymbolRange) -> usize {
        let mut rank = 0;
        let mut beyond: Vec<(u64, Vec<u8>)> = Vec::new();
        for (id, &pivot) in (0..).zip(&self.pivots) {
            if !range.contains(pivot) {
                continue;
            }
            rank += 1;
            if range.end() < self.end && self.end_of(id) > range.end() {
                let mut elements = self.free_elements(id, range.end());
                elements.resize((self.end - range.end()) as usize, 0);
                reduce_into(&mut beyond, elements);
            }
        }
        rank - beyond.len()
    }

    /// How often the symbols from `first` to the row's end enter it, zero for those that are not free.
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

/// The first position where both have a bit in common.
fn first_common(row: &[u8], mask: &[u8]) -> Option<usize> {
    const CHUNK: usize = 64;
    for (number, (row, mask)) in row.chunks(CHUNK).zip(mask.chunks(CHUNK)).enumerate() {
        // Without a way out in between, the compiler makes it vector instructions.
        if row.iter().zip(mask).fold(0, |bits, (a, b)| bits | (a & b)) != 0 {
            let position = row.iter().zip(mask).position(|(a, b)| a & b != 0);
            return position.map(|position| number * CHUNK + position);
        }
    }
    None
}

/// The last position where both, of equal length, have a bit in common.
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

/// Rows on their way into one kernel call a run of columns.
struct Batch<'a> {
    sources: [&'a [u8]; BATCH],
    factors: [u8; BATCH],
    count: usize,
}

impl<'a> Batch<'a> {
    fn new() -> Self {
        Self { sources: [&[]; BATCH], factors: [0; BATCH], count: 0 }
    }

    /// Adds `factor * source` to the columns `lines` of `row`, now or later.
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

/// Adds `vector` to an echelon form of (lead position, vector) unless it depends on it.
fn reduce_into(echelon: &mut Vec<(u64, Vec<u8>)>, mut vector: Vec<u8>) {
    for (lead, other) in echelon.iter() {
        let factor = vector[*lead as usize];
        if factor != 0 {
            gf256::mul_add(&mut vector, factor, other);
        }
    }
    if let Some(lead) = vector.iter().position(|&coefficient| coefficient != 0) {
        let inverse = element::inverse(vector[lead]).expect("the lead is not zero");
        gf256::scale(&mut vector, inverse);
        echelon.push((lead as u64, vector));
    }
}
