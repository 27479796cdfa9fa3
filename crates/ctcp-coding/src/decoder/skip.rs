//! Forgets symbols that the sender has given up before they were known, and keeps all that is known of the later ones.
//!
//! ```text
//!   given up      later
//!   4   5   6  |  7   8   9
//!   1   .   a  |  b   .   c      led by a symbol that was given up: dropped
//!       1   d  |  .   e   f      dropped
//!              |  1   g   .      stays: a row has zeros below its pivot, so it says nothing of the others
//! ```
//!
//! The rows that stay are sums of all equations, also of those that go along with the dropped rows. Each of them therefore becomes an
//! equation of its own. This costs a sweep over the payloads of a component for each of them, but only if rows of one component are on both
//! sides, which is rare: a symbol is given up long after the symbols around it were repaired. Large components are dropped as a whole, so
//! that a sender cannot make it costly.

use super::Decoder;
use super::window::Window;
use crate::gf256;
use crate::slots::{round_up_to_line, trimmed_length};
use crate::sweep::sum_into;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of rows that stay, times the equations of their component. 32 packets lost in a row and their repairs stay below it.
const SURVIVAL_MAX: usize = 32 * 32;

/// An equation over symbols that were not given up.
struct Survivor {
    first: u64,
    coefficients: Vec<u8>,
    payload: Vec<u8>,
}

impl Decoder {
    /// Handles the news that the sender has given up the symbols below `index`: those that are not known never will be, and count as
    /// decoded from now on. Symbols that are known are still returned by [`Decoder::poll_decoded`].
    ///
    /// An index beyond [`Decoder::limit`] leaves nothing of the window, and the decoder starts anew from there. Then symbols that are known
    /// but were not returned are lost.
    pub fn skip_before(&mut self, index: u64) {
        if index > self.limit() {
            let announced_floor = self.announced_floor.max(index);
            *self = Self::new(self.config);
            self.window = Window::from(index);
            (self.floor, self.given_up, self.announced_floor) = (index, index, announced_floor);
            return;
        }
        if index > self.window.oldest_undecoded() {
            self.window.extend_to(index);
            let survivors = self.drop_rows_led_below(index);
            for unknown in self.window.oldest_undecoded()..index {
                self.rows.forget_column(unknown);
            }
            self.window.give_up_before(index);
            self.given_up = index;
            for Survivor { first, coefficients, payload } in survivors {
                self.eliminate(first, &coefficients, &payload, usize::MAX);
            }
        }
        self.release_before(index);
    }

    /// Removes the rows that are led by symbols below `index` with their components. Returns the other rows of these components.
    fn drop_rows_led_below(&mut self, index: u64) -> Vec<Survivor> {
        let mut survivors = Vec::new();
        let mut next = self.window.oldest_undecoded();
        while next < index {
            let Some(component) = self.rows.component_of(next, &self.window) else {
                next += 1;
                continue;
            };
            next = component.end;
            let mut members = self.rows.members(component);
            if members.iter().any(|&id| self.rows.pivot(id) < index) {
                let later: Vec<u32> =
                    members.iter().copied().filter(|&id| self.rows.pivot(id) >= index).collect();
                if later.len() * members.len() <= SURVIVAL_MAX {
                    for id in later {
                        let (survivor, work) = self.survivor(id, &members);
                        self.work_of_skips += work;
                        survivors.push(survivor);
                    }
                }
                for &id in &members {
                    let slot = self.rows.drop_equation_at(self.rows.pivot(id));
                    self.pool.give_back(slot);
                }
                // In descending order, so that removals do not change the remaining numbers.
                members.sort_unstable_by(|a, b| b.cmp(a));
                for &id in &members {
                    self.rows.free_pivot(id, &mut self.window);
                }
            }
        }
        self.rows.update_oldest_reference();
        survivors
    }

    /// Returns the sum of equations that the row `id` is, and the bytes read for it. The equations are in the columns of the pivots of
    /// `members`.
    fn survivor(&self, id: u32, members: &[u32]) -> (Survivor, u64) {
        let rows = &self.rows;
        let terms: Vec<_> = members
            .iter()
            .map(|&member| rows.pivot(member))
            .map(|pivot| (rows.equation(pivot), rows.element(id, pivot)))
            .filter(|term| term.1 != 0)
            .collect();
        let first = terms.iter().map(|(equation, _)| equation.first).min().unwrap_or(0);
        let end = terms.iter().map(|(equation, _)| equation.end()).max().unwrap_or(first);
        let mut coefficients = vec![0; (end - first) as usize];
        for (equation, factor) in &terms {
            let offset = (equation.first - first) as usize;
            gf256::mul_add(
                &mut coefficients[offset..][..equation.coefficients.len()],
                *factor,
                &equation.coefficients,
            );
        }
        let length = terms.iter().map(|(equation, _)| equation.payload.used()).max().unwrap_or(0);
        let mut payload = vec![0; round_up_to_line(length)];
        sum_into(&mut payload, terms.iter().map(|(equation, factor)| (&equation.payload, *factor)));
        payload.truncate(trimmed_length(&payload));
        coefficients.truncate(trimmed_length(&coefficients));
        let zeros = coefficients.iter().take_while(|&&coefficient| coefficient == 0).count();
        coefficients.drain(..zeros);
        let work = terms.len() * (length + (end - first) as usize);
        (Survivor { first: first + zeros as u64, coefficients, payload }, work as u64)
    }
}
