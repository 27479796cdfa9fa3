//! Banded matrices over the reals and over GF(256), and their inverses by elimination within the band.

use ctcp_base::Prng;
use ctcp_coding::gf256::{self, element};

/// An element of a field, with the row operations of elimination.
pub(super) trait Entry: Copy + PartialEq {
    /// The zero element.
    const ZERO: Self;
    /// The one element.
    const ONE: Self;

    /// Draws a random element.
    fn draw(prng: &mut Prng) -> Self;
    /// Returns how good it is as a pivot; zero means unusable.
    fn weight(self) -> f64;
    /// Returns whether it counts as zero in an inverse.
    fn is_negligible(self) -> bool;
    /// Returns `self / divisor`. `divisor` must not be zero.
    fn over(self, divisor: Self) -> Self;
    /// Computes `target -= factor * source`.
    fn subtract(target: &mut [Self], factor: Self, source: &[Self]);
    /// Computes `row *= factor`.
    fn scale(row: &mut [Self], factor: Self);
}

impl Entry for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    /// Uniform in (0, 1).
    fn draw(prng: &mut Prng) -> Self {
        prng.unit()
    }

    fn weight(self) -> f64 {
        self.abs()
    }

    /// Below one half, as if rounded to an integer. Under this reading the printed tables come out.
    fn is_negligible(self) -> bool {
        self.abs() < 0.5
    }

    fn over(self, divisor: Self) -> Self {
        self / divisor
    }

    fn subtract(target: &mut [Self], factor: Self, source: &[Self]) {
        for (target, source) in target.iter_mut().zip(source) {
            *target -= factor * source;
        }
    }

    fn scale(row: &mut [Self], factor: Self) {
        row.iter_mut().for_each(|entry| *entry *= factor);
    }
}

impl Entry for u8 {
    const ZERO: Self = 0;
    const ONE: Self = 1;

    /// Uniform over the field.
    fn draw(prng: &mut Prng) -> Self {
        prng.below(256) as u8
    }

    fn weight(self) -> f64 {
        f64::from(u8::from(self != 0))
    }

    fn is_negligible(self) -> bool {
        self == 0
    }

    fn over(self, divisor: Self) -> Self {
        element::mul(self, element::inverse(divisor).expect("a pivot is not zero"))
    }

    fn subtract(target: &mut [Self], factor: Self, source: &[Self]) {
        gf256::mul_add(target, factor, source);
    }

    fn scale(row: &mut [Self], factor: Self) {
        gf256::scale(row, factor);
    }
}

/// A square matrix whose non-zero entries lie on adjacent diagonals.
#[derive(Clone, Debug)]
pub(super) struct Band<E> {
    rows: Vec<Vec<E>>,
    below: usize,
    above: usize,
}

impl<E: Entry> Band<E> {
    /// Creates a matrix with `below` random diagonals under the main one and `above` over it.
    pub(super) fn random(size: usize, below: usize, above: usize, prng: &mut Prng) -> Self {
        let in_band = |row: usize, column: usize| column + below >= row && column <= row + above;
        let entry = |row, column, prng: &mut Prng| if in_band(row, column) { E::draw(prng) } else { E::ZERO };
        let rows = (0..size).map(|row| (0..size).map(|column| entry(row, column, prng)).collect()).collect();
        Self { rows, below, above }
    }

    /// Returns the inverse, or `None` if there is none.
    pub(super) fn inverse(mut self) -> Option<Vec<Vec<E>>> {
        let size = self.rows.len();
        let unit =
            |row: usize| (0..size).map(|column| if row == column { E::ONE } else { E::ZERO }).collect();
        let mut inverse: Vec<Vec<E>> = (0..size).map(unit).collect();
        // Exchanging rows extends the band above by the width of the band below.
        let reach = self.above + self.below;
        for pivot in 0..size {
            let candidates = pivot..(pivot + self.below + 1).min(size);
            let best = candidates
                .clone()
                .max_by(|&a, &b| self.rows[a][pivot].weight().total_cmp(&self.rows[b][pivot].weight()))?;
            let lead = self.rows[best][pivot];
            if lead.weight() == 0.0 {
                return None;
            }
            self.rows.swap(pivot, best);
            inverse.swap(pivot, best);
            let end = (pivot + reach + 1).min(size);
            for row in candidates.skip(1) {
                let factor = self.rows[row][pivot].over(lead);
                if factor != E::ZERO {
                    let (upper, lower) = self.rows.split_at_mut(row);
                    E::subtract(&mut lower[0][pivot..end], factor, &upper[pivot][pivot..end]);
                    let (upper, lower) = inverse.split_at_mut(row);
                    E::subtract(&mut lower[0], factor, &upper[pivot]);
                }
            }
        }
        for row in (0..size).rev() {
            let (upper, lower) = inverse.split_at_mut(row + 1);
            let target = &mut upper[row];
            for column in row + 1..(row + reach + 1).min(size) {
                let factor = self.rows[row][column];
                if factor != E::ZERO {
                    E::subtract(target, factor, &lower[column - row - 1]);
                }
            }
            E::scale(target, E::ONE.over(self.rows[row][row]));
        }
        Some(inverse)
    }
}

/// Returns the share of entries that count as zero.
pub(super) fn sparsity<E: Entry>(matrix: &[Vec<E>]) -> f64 {
    let zeros: usize =
        matrix.iter().map(|row| row.iter().filter(|entry| entry.is_negligible()).count()).sum();
    zeros as f64 / (matrix.len() * matrix.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity_error<E: Entry>(matrix: &Band<E>, inverse: &[Vec<E>], distance: impl Fn(E, E) -> f64) -> f64 {
        let size = inverse.len();
        let mut worst = 0.0_f64;
        for (index, row) in matrix.rows.iter().enumerate() {
            let mut product = vec![E::ZERO; size];
            for (&entry, other) in row.iter().zip(inverse) {
                // Subtract twice, because the trait has no addition.
                let mut term = vec![E::ZERO; size];
                E::subtract(&mut term, entry, other);
                E::subtract(&mut product, E::ONE, &term);
            }
            for (column, &entry) in product.iter().enumerate() {
                worst = worst.max(distance(entry, if index == column { E::ONE } else { E::ZERO }));
            }
        }
        worst
    }

    #[test]
    fn an_inverse_times_its_matrix_is_one_in_both_fields() {
        let mut prng = Prng::new(3);
        for (below, above) in [(0, 0), (1, 1), (3, 3), (0, 4), (4, 0)] {
            let real = Band::<f64>::random(40, below, above, &mut prng);
            let inverse = real.clone().inverse().expect("almost surely");
            let scale = inverse.iter().flatten().fold(1.0_f64, |most, entry| most.max(entry.abs()));
            assert!(identity_error(&real, &inverse, |a, b| (a - b).abs()) < 1e-9 * scale);
            let found = (0..99).find_map(|_| {
                let matrix = Band::<u8>::random(40, below, above, &mut prng);
                matrix.clone().inverse().map(|inverse| (matrix, inverse))
            });
            let (matrix, inverse) = found.expect("one of many");
            assert_eq!(identity_error(&matrix, &inverse, |a, b| f64::from(a ^ b)), 0.0);
        }
    }

    #[test]
    fn a_matrix_without_an_inverse_is_detected() {
        let zero = Band::<u8> { rows: vec![vec![0; 3]; 3], below: 1, above: 1 };
        assert!(zero.inverse().is_none());
    }
}
