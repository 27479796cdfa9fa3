//! How well it went.

use core::time::Duration;

use ctcp_base::Rate;

/// The share of a link's rate that `bytes` of content in `time` are, the content alone: headers, acknowledgements and
/// repair count against it.
#[must_use]
pub fn goodput_share(bytes: u64, time: Duration, rate: Rate) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / rate.as_bits_per_second() as f64
}

/// How equally `shares` are shared (Jain, 1984): 1 when all have the same, 1 / n when one of n has everything. Nothing shared
/// among whomever is shared equally.
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
    fn half_of_the_link_is_half() {
        let share = goodput_share(1_250_000, Duration::from_secs(2), Rate::from_megabits_per_second(10));
        assert_eq!(share, 0.5);
    }

    #[test]
    fn equal_shares_are_fair_and_one_for_all_is_not() {
        assert_eq!(jain(&[0.5, 0.5, 0.5]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
        assert!((jain(&[2.0, 1.0]) - 0.9).abs() < 1e-12);
    }
}
