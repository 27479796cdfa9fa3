//! How well it went.

use core::time::Duration;

use ctcp_base::Rate;

/// The share of a link's rate that `bytes` of content in `time` are, the content alone: headers, acknowledgements and
/// repair count against it.
#[must_use]
pub fn goodput_share(bytes: u64, time: Duration, rate: Rate) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / rate.as_bits_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_link_is_half() {
        let share = goodput_share(1_250_000, Duration::from_secs(2), Rate::from_megabits_per_second(10));
        assert_eq!(share, 0.5);
    }
}
