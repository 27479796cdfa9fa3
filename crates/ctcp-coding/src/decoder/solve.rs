//! Turns rows with a single symbol into that symbol's contents. This is the only module that works on payload.
//!
//! A solved row is a sum of stored equations in which all unknown symbols but one cancel. The same sum of their
//! coefficients gives the multiple of each known symbol that must be subtracted:
//!
//! ```text
//! symbol = sum_e transform[e] * payload[e]  -  sum_k (sum_e transform[e] * coefficient[e][k]) * known[k]
//! ```
//!
//! The inner sum works on coefficients and is cheap; the outer sum is a fused sweep. Both handle all symbols that
//! become known together. An equation is stored in the column of an unknown symbol, and known symbols have their own
//! columns. A row of the basis plus the inner sums is therefore the coefficient row of the outer sum.

use super::components::Component;
use super::rows::Rows;
use super::window::{State, Window};
use crate::gf256::Engine;
use crate::slots::{Slot, SlotPool, round_up_to_line};
use crate::sweep::{BATCH, OUTPUTS, combine_batch};
use alloc::vec::Vec;
use core::ops::Range;

/// Scratch memory for solving.
#[derive(Debug, Default)]
pub(super) struct Solver {
    /// Numbers of the rows solved by this arrival.
    solved: Vec<u32>,
    /// The pivots whose columns hold equations that the solved rows contain, in ascending order.
    used: Vec<u64>,
    /// For each solved row, the factor of each equation in `used`.
    transforms: Vec<u8>,
    /// For each solved row, the factor of each term.
    weights: Vec<u8>,
    /// The union of all rows: zero where no solved row has a non-zero element.
    any: Vec<u8>,
    /// The symbols whose contents contribute, or whose columns hold equations whose payloads contribute.
    terms: Vec<u64>,
    /// The computed symbols.
    slots: Vec<Slot>,
    /// Bytes read so far.
    work: u64,
}

impl Solver {
    /// Makes the symbols of all solved rows of a component known, and removes those rows from the basis.
    pub(super) fn solve(
        &mut self,
        component: Component,
        rows: &mut Rows,
        window: &mut Window,
        pool: &mut SlotPool,
    ) {
        rows.collect_solved(component, &mut self.solved);
        if self.solved.is_empty() {
            return;
        }
        self.solved.sort_unstable_by_key(|&id| rows.pivot(id));
        self.find_used(rows, component);
        let span = self.add_up(rows, window);
        self.find_terms(span, window);
        self.compute(rows, window, pool);
        for (slot, &id) in self.slots.drain(..).zip(&self.solved) {
            window.set_known(rows.pivot(id), slot);
        }
        self.drop_equations(component, rows, pool);
        // In descending order, so that removals do not change the remaining numbers.
        self.solved.sort_unstable_by(|a, b| b.cmp(a));
        for &id in &self.solved {
            rows.remove(id, window);
        }
        rows.update_oldest_reference();
    }

    /// Returns the bytes read so far to compute contents and their coefficients.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    fn find_used(&mut self, rows: &Rows, component: Component) {
        let (first, end) = (component.first, component.end);
        self.any.clear();
        self.any.resize((end - first) as usize, 0);
        for &id in &self.solved {
            let mut any = &mut self.any[..];
            for elements in rows.elements(id, first, end) {
                let (head, tail) = any.split_at_mut(elements.len());
                head.iter_mut().zip(elements).for_each(|(any, element)| *any |= element);
                any = tail;
            }
        }
        self.used.clear();
        self.used.extend((first..).zip(&self.any).filter(|(_, any)| **any != 0).map(|(index, _)| index));
    }

    /// Writes one row of coefficients per solved row into `weights`, and returns the symbols of their columns.
    fn add_up(&mut self, rows: &Rows, window: &Window) -> Range<u64> {
        let equations = || self.used.iter().map(|&pivot| rows.equation(pivot));
        let oldest = self.used.first().copied().expect("a row of the basis contains equations");
        let newest = self.used.last().copied().unwrap_or(oldest);
        let first = equations().map(|equation| equation.first).min().unwrap_or(oldest).min(oldest);
        let end = equations().map(super::rows::Equation::end).max().unwrap_or(first);
        let known_end = first + window.length_to_last_known(first, end) as u64;
        let span = if known_end == first { oldest..newest + 1 } else { first..known_end.max(newest + 1) };
        let width = (span.end - span.start) as usize;
        self.weights.clear();
        self.weights.resize(self.solved.len() * width, 0);
        self.work += (self.solved.len() * self.used.len() * width) as u64;
        for (weights, &id) in self.weights.chunks_exact_mut(width).zip(&self.solved) {
            let mut rest = &mut weights[(oldest - span.start) as usize..=(newest - span.start) as usize];
            for elements in rows.elements(id, oldest, newest + 1) {
                let (head, tail) = rest.split_at_mut(elements.len());
                head.copy_from_slice(elements);
                rest = tail;
            }
        }
        if known_end > first {
            self.add_coefficients(rows, first..known_end, width);
            for (weights, &id) in self.weights.chunks_exact_mut(width).zip(&self.solved) {
                // All other unknown symbols have cancelled.
                let own = rows.pivot(id);
                if own < known_end {
                    weights[(own - first) as usize] ^= 1;
                }
            }
        }
        span
    }

    /// Adds the equations' coefficients of the symbols `known`, with the factors that the equations have in the solved
    /// rows.
    fn add_coefficients(&mut self, rows: &Rows, known: Range<u64>, width: usize) {
        self.transforms.clear();
        for &id in &self.solved {
            self.transforms.extend(self.used.iter().map(|&pivot| rows.element(id, pivot)));
        }
        let engine = Engine::current();
        let is_alike = |a: &u64, b: &u64| {
            let (a, b) = (rows.equation(*a), rows.equation(*b));
            a.first == b.first && a.end() == b.end()
        };
        let mut start = 0;
        for alike in self.used.chunk_by(is_alike) {
            let range = rows.equation(alike[0]);
            let (from, to) = (range.first.min(known.end), range.end().min(known.end));
            let columns = (from - known.start) as usize..(to - known.start) as usize;
            for pivots in alike.chunks(BATCH) {
                let mut sources: [&[u8]; BATCH] = [&[]; BATCH];
                for (source, &pivot) in sources.iter_mut().zip(pivots) {
                    *source = &rows.equation(pivot).coefficients[..columns.len()];
                }
                let transforms = self.transforms.chunks(OUTPUTS * self.used.len());
                for (outs, transforms) in self.weights.chunks_mut(OUTPUTS * width).zip(transforms) {
                    let mut outs = outs.chunks_exact_mut(width).map(|out| &mut out[columns.clone()]);
                    let mut outs: [&mut [u8]; OUTPUTS] =
                        core::array::from_fn(|_| outs.next().unwrap_or_default());
                    let mut factors = transforms.chunks_exact(self.used.len());
                    let count = factors.len();
                    let factors: [&[u8]; OUTPUTS] = core::array::from_fn(|_| {
                        factors.next().map_or(&[][..], |row| &row[start..start + pivots.len()])
                    });
                    engine.combine_rows_add(&mut outs[..count], &factors[..count], &sources[..pivots.len()]);
                }
                start += pivots.len();
            }
        }
    }

    /// Finds the terms with non-zero coefficients and removes all others from `weights`.
    fn find_terms(&mut self, span: Range<u64>, window: &Window) {
        let width = (span.end - span.start) as usize;
        self.any.clear();
        self.any.resize(width, 0);
        for weights in self.weights.chunks_exact(width) {
            self.any.iter_mut().zip(weights).for_each(|(any, weight)| *any |= weight);
        }
        self.terms.clear();
        let states = window.states(span.start, span.end).zip(&self.any);
        let entering = states.filter(|((_, state), any)| **any != 0 && !matches!(state, State::Unknown));
        self.terms.extend(entering.map(|((index, _), _)| index));
        if self.terms.len() == width {
            return;
        }
        let mut end = 0;
        for row in 0..self.solved.len() {
            for &term in &self.terms {
                self.weights[end] = self.weights[row * width + (term - span.start) as usize];
                end += 1;
            }
        }
    }

    /// Computes the symbols of all solved rows into `slots`.
    fn compute(&mut self, rows: &Rows, window: &Window, pool: &mut SlotPool) {
        let contents = |index: u64| match window.state(index) {
            State::Known { slot, .. } => slot,
            _ => &rows.equation(index).payload,
        };
        let used = self.terms.iter().map(|&index| contents(index).used()).max();
        let length = round_up_to_line(used.unwrap_or(0));
        self.work += (self.solved.len() * self.terms.len() * length) as u64;
        self.slots.extend(self.solved.iter().map(|_| pool.take()));
        let width = self.terms.len();
        for (number, terms) in self.terms.chunks(BATCH).enumerate() {
            let mut sources: [&[u8]; BATCH] = [&[]; BATCH];
            for (source, &index) in sources.iter_mut().zip(terms) {
                *source = contents(index).padded();
            }
            let weights = self.weights.chunks(OUTPUTS * width);
            for (slots, weights) in self.slots.chunks_mut(OUTPUTS).zip(weights) {
                let count = slots.len();
                let mut slots = slots.iter_mut().map(|slot| slot.buffer(length));
                let mut outs: [&mut [u8]; OUTPUTS] =
                    core::array::from_fn(|_| slots.next().unwrap_or_default());
                let mut weights = weights.chunks_exact(width);
                let weights: [&[u8]; OUTPUTS] = core::array::from_fn(|_| weights.next().unwrap_or_default());
                let sources = &sources[..terms.len()];
                combine_batch(&mut outs[..count], &weights[..count], number * BATCH, sources);
            }
        }
    }

    /// Frees as many equations as rows were solved.
    ///
    /// If no other row contains an equation of the solved rows, there are exactly as many of these, because the basis
    /// is independent. Otherwise each solved row frees one equation after removing it from all other rows.
    fn drop_equations(&mut self, component: Component, rows: &mut Rows, pool: &mut SlotPool) {
        let are_apart = rows.are_apart(&self.solved, component);
        for &id in &self.solved {
            pool.give_back(if are_apart {
                rows.drop_equation_at(rows.pivot(id))
            } else {
                rows.drop_one_equation(id, component)
            });
        }
    }
}
