//! Means and their confidence intervals.

use core::iter::Sum;

use serde::{Deserialize, Serialize};

/// Mean and spread of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a run; zero for a single run.
    pub deviation: f64,
    /// Half the width of a 95 % confidence interval of the mean.
    pub margin: f64,
}

/// Student's t for 95 %, by degrees of freedom from 1. Beyond the list, the normal distribution is close enough.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL: f64 = 1.96;

/// Half the width of a 99 % interval for very many samples, in standard deviations of the mean.
pub const NORMAL_99: f64 = 2.576;

impl Summary {
    /// Returns the summary of `function` of this value. The function must be monotonic over the interval. The deviation
    /// is approximated by that of a linear function.
    #[must_use]
    pub fn map(&self, function: impl Fn(f64) -> f64) -> Self {
        let mean = function(self.mean);
        let ends = [self.mean - self.margin, self.mean + self.margin].map(|end| (function(end) - mean).abs());
        let margin = ends[0].max(ends[1]);
        let slope = if self.margin > 0.0 { margin / self.margin } else { 0.0 };
        Self { mean, deviation: self.deviation * slope, margin }
    }
}

/// Count, sum and sum of squares of numbers that are too many to keep. Sums of integers up to 2^53 are exact in any
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// Returns how many numbers there were.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Returns mean, deviation and interval, assuming very many numbers; all zero if there were none.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = self.count.max(1.0);
        let mean = self.sum / count;
        let variance = (self.squares / count - mean * mean).max(0.0) * count / (count - 1.0).max(1.0);
        Summary { mean, deviation: variance.sqrt(), margin: NORMAL * (variance / count).sqrt() }
    }
}

impl Sum for Moments {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            count: all.count + part.count,
            sum: all.sum + part.sum,
            squares: all.squares + part.squares,
        })
    }
}

/// Returns the share of `hits` among very many `trials`.
#[must_use]
pub fn proportion(hits: u64, trials: u64) -> Summary {
    Moments { count: trials as f64, sum: hits as f64, squares: hits as f64 }.summary()
}

/// Summarizes runs. The mean of no runs is NaN.
#[must_use]
pub fn summary(values: &[f64]) -> Summary {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return Summary { mean, deviation: 0.0, margin: 0.0 };
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let student = STUDENT.get(values.len() - 2).copied().unwrap_or(NORMAL);
    Summary { mean, deviation, margin: student * deviation / count.sqrt() }
}

/// Returns the slope of the least-squares line through `(ln x, ln y)`, which is the exponent of a power law.
#[must_use]
pub fn exponent(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.ln()));
    let mean_x = logs().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs().map(|(_, y)| y).sum::<f64>() / count;
    let above: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = logs().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_sample_deviation_and_students_interval() {
        let found = summary(&[1.0, 2.0, 3.0, 4.0]);
        assert!((found.mean - 2.5).abs() < 1e-12 && (found.deviation - 1.290_994).abs() < 1e-6);
        assert!((found.margin - 3.182 * 1.290_994 / 2.0).abs() < 1e-5);
        assert_eq!(summary(&[7.0]), Summary { mean: 7.0, deviation: 0.0, margin: 0.0 });
        assert!(summary(&[]).mean.is_nan());
    }

    #[test]
    fn moments_give_the_same_summary_as_the_numbers() {
        let numbers = [1.0, 2.0, 2.0, 5.0, 9.0, 4.0];
        let of = |numbers: &[f64]| {
            let mut moments = Moments::default();
            numbers.iter().for_each(|&number| moments.add(number));
            moments
        };
        let (found, wanted) = (of(&numbers).summary(), summary(&numbers));
        assert!(
            (found.mean - wanted.mean).abs() < 1e-12 && (found.deviation - wanted.deviation).abs() < 1e-12
        );
        assert_eq!([of(&numbers[..2]), of(&numbers[2..])].into_iter().sum::<Moments>(), of(&numbers));
        assert_eq!(Moments::default().summary().mean, 0.0);
        // 1.96 sqrt(0.2 * 0.8 / 10000)
        let share = proportion(2_000, 10_000);
        assert!((share.mean - 0.2).abs() < 1e-12 && (share.margin - 0.00784).abs() < 1e-6, "{share:?}");
    }

    #[test]
    fn a_summary_of_a_function_has_its_interval() {
        let found = Summary { mean: 1.0, deviation: 0.2, margin: 0.1 }.map(|x| 1.0 / (1.0 + x));
        assert!((found.mean - 0.5).abs() < 1e-12 && (found.margin - (1.0 / 1.9 - 0.5)).abs() < 1e-12);
    }

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 9.0].map(|x: f64| (x, 3.0 * x * x * x)).to_vec();
        assert!((exponent(&points) - 3.0).abs() < 1e-12);
    }
}
