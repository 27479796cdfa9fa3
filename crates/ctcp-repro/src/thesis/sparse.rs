//! The thesis's sender of sparse combinations (sections 3.1 and 3.2.2), for one block.

use ctcp_base::Prng;

/// How the first packets of a block are chosen: in either case they are `n` degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The symbols themselves, in order.
    Systematic,
    /// Combinations whose first symbols are a permutation of the block (section 3.1.5), less those that would reach over its
    /// end (Listing D.1).
    Permuted,
}

/// A combination: its first symbol, and coefficients that begin with a one.
pub(super) struct Combination {
    pub(super) first: usize,
    pub(super) coefficients: Vec<u8>,
}

/// Draws combinations of at most `window` consecutive symbols.
pub(super) struct SparseSender {
    size: usize,
    window: usize,
    start: Start,
    /// The first symbols of the first packets, in reverse.
    firsts: Vec<usize>,
    prng: Prng,
}

impl SparseSender {
    pub(super) fn new(size: usize, window: usize, start: Start, mut prng: Prng) -> Self {
        let mut firsts: Vec<usize> = (0..size).rev().collect();
        if start == Start::Permuted {
            for last in (1..size).rev() {
                firsts.swap(last, prng.below(last as u64 + 1) as usize);
            }
        }
        Self { size, window, start, firsts, prng }
    }

    /// The next packet. `is_nearly_done`: the receiver lacks so little that the window doubles with each packet.
    pub(super) fn next(&mut self, is_nearly_done: bool) -> Combination {
        if let Some(first) = self.firsts.pop() {
            let length = if self.start == Start::Systematic { 1 } else { self.window };
            return self.combination(first.min(self.size - length), length);
        }
        if is_nearly_done {
            self.window = (2 * self.window).min(self.size);
        }
        // Windows that reach over the end would favour the last symbols.
        let first = self.prng.below((self.size - self.window) as u64 + 1) as usize;
        self.combination(first, self.window)
    }

    /// The lead is one, so that the receiver need not normalise; the others are uniform.
    fn combination(&mut self, first: usize, length: usize) -> Combination {
        let mut coefficients = vec![0; length];
        self.prng.fill(&mut coefficients);
        coefficients[0] = 1;
        Combination { first, coefficients }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packets_begin_everywhere_and_the_window_doubles_at_the_end() {
        for (start, last) in [(Start::Systematic, 49), (Start::Permuted, 42)] {
            let mut sender = SparseSender::new(50, 8, start, Prng::new(1));
            let mut firsts: Vec<usize> = (0..50).map(|_| sender.next(true).first).collect();
            assert_eq!(firsts.is_sorted(), start == Start::Systematic);
            firsts.sort_unstable();
            assert!(firsts.into_iter().eq((0..50).map(|first: usize| first.min(last))));
            let lengths: Vec<usize> =
                [false, true, true, true].map(|near| sender.next(near).coefficients.len()).to_vec();
            assert_eq!(lengths, [8, 16, 32, 50]);
        }
    }
}
