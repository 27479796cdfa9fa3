//! The random paths of the comparison.

use core::time::Duration;

use ctcp_repro::random_path::RandomPath;

/// The number of paths in a full and in a quick run.
const PATHS: (usize, usize) = (100, 1);

/// The first seed. Controllers are tuned on small ones.
const FIRST: u64 = 1_000_001;

/// Faster paths are left out: emulator and programs share the processor.
const RATE_MAX: f64 = 100e6;

/// A download takes this long, or so many round trips if they take longer.
const TIME: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 25;

/// The paths, by ascending seeds.
pub(super) fn paths(quick: bool) -> impl Iterator<Item = RandomPath> {
    let drawn =
        (FIRST..).map(RandomPath::draw).filter(|path| path.rate.as_bits_per_second() as f64 <= RATE_MAX);
    drawn.take(if quick { PATHS.1 } else { PATHS.0 })
}

/// How long a download on a path with this round-trip time takes, if it is to take at least `seconds`.
pub(super) fn time(rtt: Duration, seconds: Option<u64>, quick: bool) -> Duration {
    let least = seconds.map_or(if quick { TIME / 2 } else { TIME }, Duration::from_secs);
    if quick { least } else { least.max(ROUNDS * rtt) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_paths_are_drawn_that_the_emulator_can_follow() {
        let drawn: Vec<RandomPath> = paths(false).collect();
        assert_eq!(drawn.len(), 100);
        assert!(drawn.iter().all(|path| path.rate.as_bits_per_second() <= 100_000_000));
        assert!(drawn.is_sorted_by(|one, other| one.seed < other.seed));
        assert_eq!(RandomPath::draw(drawn[3].seed), drawn[3]);
    }

    #[test]
    fn downloads_over_long_paths_take_longer() {
        let [short, long] = [20, 500].map(Duration::from_millis);
        assert_eq!(
            [time(short, None, false), time(long, None, false)],
            [TIME, Duration::from_millis(12_500)]
        );
        assert_eq!(time(long, Some(30), false), Duration::from_secs(30));
        assert_eq!(time(long, None, true), TIME / 2);
    }
}
