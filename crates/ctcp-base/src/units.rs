//! Rates and probabilities as types, and parsing of rates, probabilities, durations and sizes.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A rate in bits per second. In the description of a link, zero means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` per second.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `megabits` times 10^6 bits per second.
    #[must_use]
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns how long sending `bytes` takes at this rate. The rate zero means unlimited and takes no time.
    #[must_use]
    pub fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how many whole bytes this rate carries in `duration`.
    #[must_use]
    pub fn bytes_in(self, duration: Duration) -> u64 {
        let bytes = u128::from(self.0) * duration.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        match self.0 {
            0..1_000 => write!(formatter, "{bits} bit/s"),
            1_000..1_000_000 => write!(formatter, "{:.1} kbit/s", bits / 1e3),
            1_000_000..1_000_000_000 => write!(formatter, "{:.1} Mbit/s", bits / 1e6),
            _ => write!(formatter, "{:.2} Gbit/s", bits / 1e9),
        }
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// Parses `25mbit`, `1.5gbit`, `800kbit` or `9600bit`, each optionally followed by `/s`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let lower = text.trim().to_ascii_lowercase();
        let lower = lower.strip_suffix("/s").unwrap_or(&lower);
        let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
        scaled(lower, &units)
            .map(|bits| Self(bits as u64))
            .ok_or(ParseUnitError { what: "rate", example: "25mbit" })
    }
}

/// A probability in `[0, 1]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Probability zero.
    pub const ZERO: Self = Self(0.0);
    /// Probability one.
    pub const ONE: Self = Self(1.0);

    /// Converts `value` to a probability. Returns `None` outside `[0, 1]` and for NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the probability as a number.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = ParseUnitError;

    /// Parses a fraction such as `0.05` or a percentage such as `5%`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let text = text.trim();
        let value = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
            None => text.parse::<f64>(),
        };
        value.ok().and_then(Self::new).ok_or(ParseUnitError { what: "probability", example: "0.05 or 5%" })
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.4}", self.0)
    }
}

/// Parses a duration with its unit: `20ms`, `1.5s`, `300us`, `2min`, `1h`.
///
/// # Errors
/// Returns an error if the number or the unit is missing or invalid, or if the value is negative or not finite.
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    let units = [("min", 60.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("s", 1.0)];
    scaled(&text.trim().to_ascii_lowercase(), &units)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or(ParseUnitError { what: "duration", example: "20ms" })
}

/// Parses a size: `10mb`, `64kb`, `1gb` (powers of ten), `1mib`, `4kib` (powers of two), `1500b`, `1500`.
///
/// # Errors
/// Returns an error if the number or the unit is invalid, or if the value is negative or not finite.
pub fn parse_bytes(text: &str) -> Result<u64, ParseUnitError> {
    let units = [
        ("gib", 1_073_741_824.0),
        ("mib", 1_048_576.0),
        ("kib", 1_024.0),
        ("gb", 1e9),
        ("mb", 1e6),
        ("kb", 1e3),
        ("b", 1.0),
        ("", 1.0),
    ];
    scaled(&text.trim().to_ascii_lowercase(), &units)
        .map(|bytes| bytes as u64)
        .ok_or(ParseUnitError { what: "size", example: "10mb" })
}

/// Parses the number before the first suffix in `units` that matches, and multiplies it by that unit's scale.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, scale) =
        units.iter().find_map(|(unit, scale)| text.strip_suffix(unit).map(|number| (number, *scale)))?;
    let value = number.trim().parse::<f64>().ok()? * scale;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// The error for a text that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    what: &'static str,
    example: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "not a {}: write it as {}", self.what, self.example)
    }
}

impl core::error::Error for ParseUnitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_units() {
        assert_eq!("25mbit".parse(), Ok(Rate::from_megabits_per_second(25)));
        assert_eq!("1.5gbit/s".parse(), Ok(Rate::from_bits_per_second(1_500_000_000)));
        assert_eq!("800kbit".parse(), Ok(Rate::from_bits_per_second(800_000)));
        for wrong in ["", "25", "mbit", "-1mbit", "nanmbit", "infmbit", "25 parsec"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn probabilities_are_read_as_fractions_and_percentages() {
        assert_eq!("5%".parse(), Ok(Probability(0.05)));
        assert_eq!("0.2".parse(), Ok(Probability(0.2)));
        for wrong in ["1.1", "-0.1", "101%", "nan", "x"] {
            assert!(wrong.parse::<Probability>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_and_sizes_are_read_with_their_units() {
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(parse_duration("20").is_err());
        assert!(parse_duration("1e300h").is_err());
        assert_eq!(parse_bytes("10mb"), Ok(10_000_000));
        assert_eq!(parse_bytes("4kib"), Ok(4_096));
        assert_eq!(parse_bytes("1500"), Ok(1_500));
        assert!(parse_bytes("-1").is_err());
    }

    #[test]
    fn a_rate_converts_between_time_and_bytes() {
        let rate = Rate::from_megabits_per_second(12);
        assert_eq!(rate.time_to_send(1_500), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), 1_500);
        assert_eq!(Rate::default().time_to_send(1_500), Duration::ZERO);
    }
}
