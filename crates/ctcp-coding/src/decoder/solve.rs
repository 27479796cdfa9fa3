//! Turns rows of a single symbol into that symbol's contents: the only place that works on payload.
//!
//! A solved row is a sum of stored equations in which all unknown symbols but one cancel. Adding up
//! their coefficients the same way gives what must be subtracted of each known symbol:
//!
//! ```text
//! symbol = sum_e transform[e] * payload[e]  -  sum_k (sum_e transform[e] * coefficient[e][k]) * known[k]
//! ```
//!
//! The inner sum is cheap (coefficients), the outer one a fused sweep that writes its result once.

use super::rows::{Row, Rows};
use super::window::{State, Window};
use crate::gf256;
use crate::slots::{Slot, SlotPool, round_up_to_line};
use crate::sweep::{OUTPUTS, Sweep};
use alloc::vec::Vec;

/// Scratch memory of the solution.
#[derive(Debug, Default)]
pub(super) struct Solver {
    /// Numbers of the rows solved by this arrival.
    solved: Vec<u32>,
    /// Coefficients of the symbols from `first` on, for each output.
    merged: [Vec<u8>; OUTPUTS],
    /// Equations that the solved rows contain.
    used: Vec<u32>,
}

impl Solver {
    /// Makes the symbols of all solved rows known and takes those rows out of the basis.
    pub(super) fn solve(&mut self, rows: &mut Rows, window: &mut Window, pool: &mut SlotPool) {
        self.solved.clear();
        self.solved.extend((0u32..).zip(rows.iter()).filter(|(_, row)| row.is_solved()).map(|(id, _)| id));
        if self.solved.is_empty() {
            return;
        }
        self.solved.sort_unstable_by_key(|&id| rows.row(id).pivot());
        for start in (0..self.solved.len()).step_by(OUTPUTS) {
            let end = self.solved.len().min(start + OUTPUTS);
            self.solve_group(start..end, rows, window, pool);
        }
        self.drop_equations(rows, pool);
        // Descending, so that no number still to come changes.
        self.solved.sort_unstable_by(|a, b| b.cmp(a));
        for &id in &self.solved {
            let row = rows.remove(id, window);
            rows.give_back(row);
        }
    }

    /// Computes up to [`OUTPUTS`] symbols in one sweep.
    fn solve_group(
        &mut self,
        group: core::ops::Range<usize>,
        rows: &Rows,
        window: &mut Window,
        pool: &mut SlotPool,
    ) {
        let ids = &self.solved[group];
        collect_equations(&mut self.used, rows, ids);
        let first = self.used.iter().map(|&e| rows.equation(e as usize).first).min().unwrap_or(0);
        merge_coefficients(&mut self.merged, &self.used, first, rows, ids, window);
        let mut slots: [Slot; OUTPUTS] = Default::default();
        for slot in &mut slots[..ids.len()] {
            *slot = pool.take();
        }
        let length = self.output_length(first, rows, window);
        let mut outs =
            slots.each_mut().map(|slot| if slot.is_empty() { &mut [][..] } else { slot.buffer(length) });
        let mut sweep = Sweep::new(&mut outs[..ids.len()]);
        for &equation in &self.used {
            let mut column = [0; OUTPUTS];
            for (coefficient, &id) in column.iter_mut().zip(ids) {
                *coefficient = rows.row(id).transform_of(equation);
            }
            sweep.add(&rows.equation(equation as usize).payload, column);
        }
        for (slot, column) in known_terms(&self.merged, first, window) {
            sweep.add(slot, column);
        }
        sweep.finish();
        for (slot, &id) in slots.into_iter().zip(ids) {
            window.set_known(rows.row(id).pivot(), slot);
        }
    }

    /// Bytes of output to compute: what the longest term has, in whole cache lines.
    fn output_length(&self, first: u64, rows: &Rows, window: &Window) -> usize {
        let payloads = self.used.iter().map(|&equation| rows.equation(equation as usize).payload.used());
        let known = known_terms(&self.merged, first, window).map(|(slot, _)| slot.used());
        round_up_to_line(payloads.chain(known).max().unwrap_or(0))
    }

    /// Frees as many equations as rows were solved.
    ///
    /// If no other row contains an equation of theirs, those are as many as the solved rows, because
    /// the transforms are nonsingular. Otherwise each solved row frees one, after taking it out of
    /// all other rows.
    fn drop_equations(&mut self, rows: &mut Rows, pool: &mut SlotPool) {
        collect_equations(&mut self.used, rows, &self.solved);
        let is_used = |row: &Row| self.used.iter().any(|&equation| row.transform_of(equation) != 0);
        if !rows.iter().any(|row| !row.is_solved() && is_used(row)) {
            for &id in &self.solved {
                rows.clear_transform(id);
            }
            for &equation in &self.used {
                pool.give_back(rows.drop_equation(equation));
            }
            return;
        }
        for &id in &self.solved {
            let position = rows.row(id).transform().iter().position(|&factor| factor != 0);
            let equation = position.expect("rows are independent") as u32;
            rows.eliminate_equation(equation, id);
            pool.give_back(rows.drop_equation(equation));
        }
    }
}

/// The equations that the rows `ids` contain, ascending.
fn collect_equations(equations: &mut Vec<u32>, rows: &Rows, ids: &[u32]) {
    equations.clear();
    let width = ids.iter().map(|&id| rows.row(id).transform().len()).max().unwrap_or(0) as u32;
    equations.extend((0..width).filter(|&e| ids.iter().any(|&id| rows.row(id).transform_of(e) != 0)));
}

/// Adds up the coefficients of the equations as the rows `ids` add up the equations, from symbol `first` on to
/// the last known one: unknown ones cancel, but for the rows' own.
fn merge_coefficients(
    merged: &mut [Vec<u8>; OUTPUTS],
    used: &[u32],
    first: u64,
    rows: &Rows,
    ids: &[u32],
    window: &Window,
) {
    let equations = || used.iter().map(|&e| (e, rows.equation(e as usize)));
    let end = equations().map(|(_, e)| e.first + e.coefficients.len() as u64).max().unwrap_or(first);
    let width = window.length_to_last_known(first, end);
    for output in merged.iter_mut() {
        output.clear();
        output.resize(width, 0);
    }
    for (output, &id) in merged.iter_mut().zip(ids) {
        for (number, equation) in equations() {
            let start = ((equation.first - first) as usize).min(width);
            let end = (start + equation.coefficients.len()).min(width);
            let factor = rows.row(id).transform_of(number);
            gf256::mul_add(&mut output[start..end], factor, &equation.coefficients);
        }
    }
}

/// The known symbols from `first` on that enter the outputs, and how often.
fn known_terms<'a>(
    merged: &'a [Vec<u8>; OUTPUTS],
    first: u64,
    window: &'a Window,
) -> impl Iterator<Item = (&'a Slot, [u8; OUTPUTS])> {
    let end = first + merged[0].len() as u64;
    window.states(first, end).enumerate().filter_map(move |(position, (_, state))| {
        let column = merged.each_ref().map(|output| output[position]);
        match state {
            State::Known { slot, .. } if column != [0; OUTPUTS] => Some((slot, column)),
            _ => None,
        }
    })
}
