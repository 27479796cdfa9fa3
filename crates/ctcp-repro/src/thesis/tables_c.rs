//! Tables C.1 to C.5: the share of zeros in the inverse of a random banded matrix.
//!
//! The thesis draws `n x n` matrices with entries on `bandwidth` adjacent diagonals, inverts them and counts zeros.
//! This is to show that coding over a small window can be decoded in about `n^2` steps. Over GF(256), the field of the
//! code, the printed figures do not come out: the inverse is dense. They do come out for real matrices with entries in
//! (0, 1), if entries of the inverse below one half count as zero.
//!
//! Requirement: U3

use ctcp_base::Prng;

use super::PAPER;
use super::band::{Band, Entry, sparsity};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-tablesC",
    paper: PAPER,
    title: "zeros in the inverse of banded matrices",
    plan,
    takes: &[],
};

/// A table: `n`, and rows of bandwidth, mean and standard deviation. Two misprints are corrected here: the bandwidth 0
/// for 1 in Table C.2, and the mean 0.097 for 0.97 in Table C.4.
type Table = (usize, &'static [(usize, f64, f64)]);

const TABLES: [Table; 5] = [
    (64, &[(1, 0.98, 0.0), (3, 0.81, 0.069), (5, 0.61, 0.15), (7, 0.5, 0.17)]),
    (128, &[(1, 0.992, 0.0), (3, 0.89, 0.03), (5, 0.74, 0.11), (7, 0.61, 0.15)]),
    (256, &[(1, 0.996, 0.0), (3, 0.94, 0.013), (5, 0.84, 0.06), (7, 0.74, 0.11)]),
    (512, &[(1, 0.998, 0.0), (3, 0.97, 0.005), (5, 0.91, 0.02), (7, 0.85, 0.063), (9, 0.77, 0.1)]),
    (
        1024,
        &[
            (1, 0.999, 0.0),
            (3, 0.985, 0.0019),
            (5, 0.95, 0.01),
            (7, 0.91, 0.029),
            (9, 0.87, 0.05),
            (11, 0.833, 0.072),
        ],
    ),
];

/// The size with the fewest seeds. Half the size has twice as many.
const LARGEST: usize = 1024;

/// The maximum error of the reading that explains the tables.
const MARGIN: f64 = 0.03;

/// The largest size in a quick run. With fewer seeds, no size would come near its table.
const LARGEST_QUICK: usize = 256;

/// The kind of matrices, which is part of the names of the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matrices {
    /// Over the reals, with diagonals on both sides of the main one.
    Real,
    /// Over GF(256), with diagonals on both sides.
    Symmetric,
    /// Over GF(256), with diagonals on one side.
    Triangular,
}

/// A matrix.
#[derive(Clone, Debug)]
struct Cell {
    size: usize,
    bandwidth: usize,
    matrices: Matrices,
    seed: u32,
}

fn plan(settings: &Settings) -> Plan {
    let least = settings.seeds_or(60, 60);
    let largest = if settings.quick { LARGEST_QUICK } else { LARGEST };
    let mut cells = Vec::new();
    for (size, rows) in TABLES.into_iter().filter(|&(size, _)| size <= largest) {
        // Small matrices vary the most and cost the least.
        let seeds = least * (LARGEST / size) as u32;
        for &(bandwidth, ..) in rows {
            for matrices in [Matrices::Real, Matrices::Symmetric, Matrices::Triangular] {
                cells.extend((0..seeds).map(|seed| Cell { size, bandwidth, matrices, seed }));
            }
        }
    }
    Plan::new(cells, measure, move |found| outcome(least, largest, found))
}

/// Returns the share of zeros in the inverse.
fn measure(cell: &Cell) -> f64 {
    let half = cell.bandwidth / 2;
    match cell.matrices {
        Matrices::Real => zeros::<f64>(cell, half, half, "real"),
        Matrices::Symmetric => zeros::<u8>(cell, half, half, "symmetric"),
        Matrices::Triangular => zeros::<u8>(cell, 0, cell.bandwidth - 1, "triangular"),
    }
}

/// Returns the share of zeros in the inverse of a random matrix. Matrices without an inverse are drawn again.
fn zeros<E: Entry>(cell: &Cell, below: usize, above: usize, name: &str) -> f64 {
    let size = cell.size;
    let mut prng = Prng::new(u64::from(cell.seed)).fork(name).fork(&format!("{size} {below} {above}"));
    loop {
        if let Some(inverse) = Band::<E>::random(size, below, above, &mut prng).inverse() {
            return sparsity(&inverse);
        }
    }
}

fn outcome(seeds: u32, largest: usize, found: &[(Cell, f64)]) -> Outcome {
    let plot = Plot {
        title: "Zeros in the inverse of an n x n banded matrix (thesis, Appendix C)",
        x: Axis { label: "bandwidth (diagonals)", scale: Scale::Linear },
        y: Axis { label: "share of zeros", scale: Scale::Percent },
        hidden: &["deviation", "triangular"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for (size, rows) in TABLES {
        for &(bandwidth, mean, deviation) in rows {
            let claim = format!("n = {size}, bandwidth {bandwidth}, real, below a half counts as zero");
            if size > largest {
                outcome.skip(claim);
                continue;
            }
            let shares = |matrices| {
                let is_it =
                    |cell: &Cell| (cell.size, cell.bandwidth, cell.matrices) == (size, bandwidth, matrices);
                let cells = found.iter().filter(|(cell, _)| is_it(cell));
                summary(&cells.map(|&(_, share)| share).collect::<Vec<f64>>())
            };
            let name = format!("n = {size}, real");
            let real = shares(Matrices::Real);
            add(&mut outcome, &name, bandwidth, &real);
            outcome.published(&name, bandwidth as f64, mean);
            outcome.published(&format!("{name}, deviation"), bandwidth as f64, deviation);
            outcome.check(claim, Want::Within { of: mean, margin: MARGIN }, real.mean);
            add(&mut outcome, &format!("n = {size}, GF(256)"), bandwidth, &shares(Matrices::Symmetric));
            let triangular = format!("n = {size}, GF(256), triangular");
            add(&mut outcome, &triangular, bandwidth, &shares(Matrices::Triangular));
        }
    }
    outcome.events = found.len() as u64;
    outcome.notes = vec![
        "printed: Tables C.1 to C.5, with bandwidth 0 in C.2 read as 1 and 0.097 in C.4 read as 0.97",
        "real: uniform (0, 1) on `bandwidth` diagonals around the main one; entries of the inverse below 0.5 count as zero",
        "GF(256): the same diagonals over the code's field; triangular: all of them on one side of the main one",
        "so the inverse of the code's matrices is not sparse; what the window saves is saved by banded elimination",
    ];
    outcome
}

fn add(outcome: &mut Outcome, series: &str, bandwidth: usize, found: &Summary) {
    outcome.point(series, bandwidth as f64, found);
    outcome.exact(&format!("{series}, deviation"), bandwidth as f64, found.deviation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_come_out_over_the_reals_and_not_over_the_codes_field() {
        let mean = |bandwidth, matrices, seeds| {
            let shares = (0..seeds).map(|seed| measure(&Cell { size: 64, bandwidth, matrices, seed }));
            shares.sum::<f64>() / f64::from(seeds)
        };
        for &(bandwidth, printed, _) in TABLES[0].1 {
            let real = mean(bandwidth, Matrices::Real, 60);
            assert!((real - printed).abs() < 0.04, "{bandwidth}: {real}");
        }
        assert!(mean(5, Matrices::Symmetric, 20) < 0.02);
        let triangular = mean(5, Matrices::Triangular, 20);
        assert!((0.45..0.55).contains(&triangular), "{triangular}");
    }
}
