//! Means and how sure they are.

/// Mean and spread of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a run; zero for a single one.
    pub deviation: f64,
    /// Half the width of a 95 % confidence interval of the mean.
    pub margin: f64,
}

/// Student's t for 95 %, by degrees of freedom from 1; beyond the list the normal distribution's is near enough.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL: f64 = 1.96;

/// Summarises runs, at least one.
#[must_use]
pub fn summary(values: &[f64]) -> Summary {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return Summary { mean, deviation: 0.0, margin: 0.0 };
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let student = STUDENT.get(values.len() - 2).copied().unwrap_or(NORMAL);
    Summary { mean, deviation, margin: student * deviation / count.sqrt() }
}

/// The slope of the straight line through `(ln x, ln y)` with the least squares: the exponent of a power law.
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
    }

    #[test]
    fn the_exponent_of_a_power_law_is_found() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 9.0].map(|x: f64| (x, 3.0 * x * x * x)).to_vec();
        assert!((exponent(&points) - 3.0).abs() < 1e-12);
    }
}
