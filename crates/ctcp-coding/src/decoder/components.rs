//! Tracks which symbols are linked by combinations, to bound the work of an arrival.
//!
//! Two combinations can interact in elimination only if their ranges overlap or other combinations link them. The
//! symbols linked in this way form a *component*. Everything the decoder does with a row happens in the columns of its
//! component and in the rows led by symbols of the component.
//!
//! ```text
//!   ranges of combinations     [====)  [=====)      [===)
//!                                [=======)
//!   components                 [=============)      [===)
//! ```
//!
//! A sender that codes block by block makes one component per block. Any other sender could link the whole window, and
//! every arrival would cost its square. Therefore a combination that would make a component of more than
//! [`DecoderConfig::component_max`](super::DecoderConfig::component_max) symbols is dropped.
//!
//! Invariant: components ascend and do not overlap. The pivot of each row, and every symbol with a non-zero coefficient
//! in it, lies in one component.

use alloc::vec::Vec;

/// Consecutive symbols `[first, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) first: u64,
    pub(super) end: u64,
    /// Number of rows led by its symbols.
    rows: usize,
}

impl Component {
    pub(super) fn contains(&self, index: u64) -> bool {
        (self.first..self.end).contains(&index)
    }

    pub(super) fn length(&self) -> u64 {
        self.end - self.first
    }
}

/// The components of all rows.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// At most as many as rows.
    components: Vec<Component>,
}

impl Components {
    /// Returns the component of a symbol, cut at `oldest`, below which every symbol is known. Returns `None` if no row
    /// involves the symbol.
    pub(super) fn of(&self, index: u64, oldest: u64) -> Option<Component> {
        let position = self.components.partition_point(|component| component.end <= index);
        let found = self.components.get(position).filter(|component| component.contains(index))?;
        Some(Component { first: found.first.max(oldest), ..*found })
    }

    /// Returns the component of a combination of the symbols `[first, end)`, merged with those it links and cut at
    /// `oldest`, below which every symbol is known.
    pub(super) fn linked(&self, first: u64, end: u64, oldest: u64) -> Component {
        let (start, stop) = self.overlapping(first, end);
        let linked = &self.components[start..stop];
        Component {
            first: linked.first().map_or(first, |component| component.first.min(first)).max(oldest),
            end: linked.last().map_or(end, |component| component.end.max(end)),
            rows: linked.iter().map(|component| component.rows).sum(),
        }
    }

    /// Records a new row in `component`, which [`Components::linked`] returned.
    pub(super) fn add_row(&mut self, component: Component) {
        let (start, stop) = self.overlapping(component.first, component.end);
        let grown = Component { rows: component.rows + 1, ..component };
        if start == stop {
            self.components.insert(start, grown);
        } else {
            self.components[start] = grown;
            self.components.drain(start + 1..stop);
        }
    }

    /// Records that the row led by `pivot` was removed.
    pub(super) fn remove_row(&mut self, pivot: u64) {
        let position = self.components.partition_point(|component| component.end <= pivot);
        let Some(component) = self.components.get_mut(position) else { return };
        component.rows -= 1;
        if component.rows == 0 {
            self.components.remove(position);
        }
    }

    pub(super) fn shrink(&mut self) {
        self.components.shrink_to_fit();
    }

    /// Returns the positions of the components that overlap `[first, end)`.
    fn overlapping(&self, first: u64, end: u64) -> (usize, usize) {
        let start = self.components.partition_point(|component| component.end <= first);
        let count = self.components[start..].partition_point(|component| component.first < end);
        (start, start + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(components: &Components) -> Vec<(u64, u64, usize)> {
        components.components.iter().map(|one| (one.first, one.end, one.rows)).collect()
    }

    #[test]
    fn overlapping_ranges_are_linked_and_adjacent_ones_are_not() {
        let mut components = Components::default();
        for (first, end) in [(10, 20), (20, 30), (40, 50)] {
            let linked = components.linked(first, end, 0);
            assert_eq!((linked.first, linked.end), (first, end));
            components.add_row(linked);
        }
        let linked = components.linked(15, 25, 12);
        assert_eq!((linked.first, linked.end), (12, 30));
        components.add_row(linked);
        assert_eq!(spans(&components), [(12, 30, 3), (40, 50, 1)]);
        assert_eq!(components.of(29, 14).map(|component| component.first), Some(14));
        assert_eq!(components.of(30, 14), None);
    }

    #[test]
    fn a_component_is_removed_with_its_last_row() {
        let mut components = Components::default();
        for _ in 0..2 {
            components.add_row(components.linked(3, 9, 0));
        }
        components.remove_row(4);
        assert_eq!(spans(&components), [(3, 9, 1)]);
        components.remove_row(5);
        assert_eq!(spans(&components), []);
    }
}
