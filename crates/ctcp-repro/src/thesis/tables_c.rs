//! Tables C.1 to C.5: the share of zeros in the inverse of a random banded matrix.
//!
//! The thesis draws `n x n` matrices with entries on `bandwidth` adjacent diagonals, inverts them and counts zeros, to
//! show that coding over a small window can be decoded in about `n^2` steps. Over GF(256), the field of the code, the
//! printed figures do not come out: the inverse is dense. They do come out for real matrices with entries in (0, 1), if
//! entries of the inverse below a half count as zero.
//!
//! Requirement: U3

use ctcp_base::Prng;

use super::PAPER;
use super::band::{Band, Entry, sparsity};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "thesis-tablesC", paper: PAPER, title: "zeros in the inverse of banded matrices", run };

/// A table: `n`, and rows of bandwidth, mean and standard deviation. Table C.2 prints the bandwidth 0 for 1, and Table
/// C.4 a mean of 0.097 for 0.97; both are corrected here.
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

/// The size that gets the fewest seeds; half of it gets twice as many.
const LARGEST: usize = 1024;

/// How near the reading that explains the tables has to come.
const MARGIN: f64 = 0.03;

fn run(settings: &Settings) -> Outcome {
    let least = settings.seeds_or(60, 4);
    let plot = Plot {
        title: "Zeros in the inverse of an n x n banded matrix (thesis, Appendix C)",
        x: Axis { label: "bandwidth (diagonals)", scale: Scale::Linear },
        y: Axis { label: "share of zeros", scale: Scale::Linear },
        hidden: &["deviation", "triangular"],
    };
    let mut outcome = Outcome::new(plot, least);
    for (size, rows) in TABLES {
        // Small matrices differ most from each other, and cost least.
        let seeds = least * (LARGEST / size) as u32;
        for &(bandwidth, mean, deviation) in rows {
            let half = bandwidth / 2;
            let real = format!("n = {size}, real");
            let found = zeros::<f64>(size, half, half, seeds, "real");
            add(&mut outcome, &real, bandwidth, &found);
            outcome.published(&real, bandwidth as f64, mean);
            outcome.published(&format!("{real}, deviation"), bandwidth as f64, deviation);
            outcome.check(
                format!("n = {size}, bandwidth {bandwidth}, real, below a half counts as zero"),
                Want::Within { of: mean, margin: MARGIN },
                found.mean,
            );
            let symmetric = zeros::<u8>(size, half, half, seeds, "symmetric");
            add(&mut outcome, &format!("n = {size}, GF(256)"), bandwidth, &symmetric);
            let triangular = zeros::<u8>(size, 0, bandwidth - 1, seeds, "triangular");
            add(&mut outcome, &format!("n = {size}, GF(256), triangular"), bandwidth, &triangular);
            outcome.events += 3 * u64::from(seeds);
        }
    }
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
    let deviation = Summary { mean: found.deviation, deviation: 0.0, margin: 0.0 };
    outcome.point(&format!("{series}, deviation"), bandwidth as f64, &deviation);
}

/// The share of zeros in inverses of random matrices; those without an inverse are drawn again.
fn zeros<E: Entry>(size: usize, below: usize, above: usize, seeds: u32, name: &str) -> Summary {
    let shares: Vec<f64> = (0..seeds)
        .map(|seed| {
            let mut prng = Prng::new(u64::from(seed)).fork(name).fork(&format!("{size} {below} {above}"));
            loop {
                if let Some(inverse) = Band::<E>::random(size, below, above, &mut prng).inverse() {
                    return sparsity(&inverse);
                }
            }
        })
        .collect();
    summary(&shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_come_out_over_the_reals_and_not_over_the_codes_field() {
        for &(bandwidth, mean, _) in TABLES[0].1 {
            let half = bandwidth / 2;
            let real = zeros::<f64>(64, half, half, 60, "real");
            assert!((real.mean - mean).abs() < 0.04, "{bandwidth}: {real:?}");
        }
        assert!(zeros::<u8>(64, 2, 2, 20, "symmetric").mean < 0.02);
        let triangular = zeros::<u8>(64, 0, 4, 20, "triangular").mean;
        assert!((0.45..0.55).contains(&triangular), "{triangular}");
    }
}
