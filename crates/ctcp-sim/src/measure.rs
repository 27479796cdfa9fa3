//! Measures of performance.

use core::time::Duration;

use ctcp_base::Rate;

/// Returns the goodput of `bytes` of content in `time` as a share of a link's rate. Headers, acknowledgements and
/// repair are not counted.
#[must_use]
pub fn goodput_share(bytes: u64, time: Duration, rate: Rate) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / rate.as_bits_per_second() as f64
}

/// Returns Jain's fairness index (1984): 1 if all shares are equal, 1 / n if one of n gets everything. If all shares
/// are zero, it is 1.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_of_half_the_rate_is_one_half() {
        let share = goodput_share(1_250_000, Duration::from_secs(2), Rate::from_megabits_per_second(10));
        assert_eq!(share, 0.5);
    }

    #[test]
    fn the_fairness_index_is_one_for_equal_shares_and_one_nth_for_a_single_one() {
        assert_eq!(jain(&[0.5, 0.5, 0.5]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
        assert!((jain(&[2.0, 1.0]) - 0.9).abs() < 1e-12);
    }
}
