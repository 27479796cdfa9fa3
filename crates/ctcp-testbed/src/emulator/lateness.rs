//! How late deliveries were: whether the emulator kept up.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// What the 99th percentile may be before a run is rejected.
pub const LATENESS_LIMIT: Duration = Duration::from_micros(300);

/// Width of a bin.
const BIN: Duration = Duration::from_micros(5);

/// Up to 20 ms; what is later is in the last bin, and in the maximum.
const BINS: usize = 4_000;

/// Percentiles in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets delivered.
    pub deliveries: u64,
    /// The median.
    pub p50_ms: f64,
    /// What 99 of 100 are below.
    pub p99_ms: f64,
    /// What 999 of 1000 are below.
    pub p999_ms: f64,
    /// The latest one.
    pub max_ms: f64,
}

impl Lateness {
    /// Whether the emulator kept up.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.p99_ms <= millis(LATENESS_LIMIT)
    }
}

/// Counts by bins.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bins: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS], count: 0, max: Duration::ZERO }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, late: Duration) {
        let bin = usize::try_from(late.as_nanos() / BIN.as_nanos()).unwrap_or(BINS).min(BINS - 1);
        self.bins[bin] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    pub(super) fn summary(&self) -> Lateness {
        Lateness {
            deliveries: self.count,
            p50_ms: self.percentile(0.5),
            p99_ms: self.percentile(0.99),
            p999_ms: self.percentile(0.999),
            max_ms: millis(self.max),
        }
    }

    /// The upper end of the bin in which that share of all is reached, and the maximum where the bins end.
    fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut below = 0;
        for (index, count) in self.bins[..BINS - 1].iter().enumerate() {
            below += count;
            if below >= wanted {
                return millis((BIN * (index as u32 + 1)).min(self.max));
            }
        }
        millis(self.max)
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_numbers_to_a_bin() {
        let mut histogram = Histogram::default();
        (1..=1_000).for_each(|micros| histogram.add(Duration::from_micros(micros)));
        let found = histogram.summary();
        for (got, micros) in [(found.p50_ms, 500.0), (found.p99_ms, 990.0), (found.p999_ms, 999.0)] {
            assert!((got * 1e3 - micros).abs() <= 5.0, "{got} for {micros}");
        }
        assert_eq!((found.deliveries, found.max_ms), (1_000, 1.0));
    }

    #[test]
    fn a_run_is_acceptable_up_to_the_limit_and_not_beyond() {
        let of = |late: u64| {
            let mut histogram = Histogram::default();
            (0..98).for_each(|_| histogram.add(Duration::ZERO));
            (0..2).for_each(|_| histogram.add(Duration::from_micros(late)));
            histogram.summary()
        };
        assert!(of(300).is_acceptable() && !of(306).is_acceptable());
        let far = of(5_000_000);
        assert_eq!((far.p50_ms, far.p99_ms), (0.005, 5_000.0));
        assert_eq!(Histogram::default().summary(), Lateness::default());
    }
}
