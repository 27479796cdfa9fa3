//! The changes of a link over time as a text file, for example of a recorded cell or a walk through a house.
//!
//! ```text
//! # time, then the values from then on
//! 0s     rate 25mbit  loss 1%  delay 10ms
//! 1.5s   rate 8mbit
//! 2s     loss 0.2
//! 3s     down
//! 3.4s   up
//! 10s    repeat
//! ```
//!
//! A line is a time since the beginning and any of `rate RATE`, `queue BYTES`, `loss PROBABILITY` (independent loss), `delay TIME`,
//! `down` and `up`; times never go back. `repeat` stands alone on the last line: at that time, everything begins again.
//! Empty lines, and everything after a `#`, are ignored. A property that the file does not change keeps the value of the configuration.

use core::fmt;
use core::time::Duration;

use ctcp_base::{Instant, parse_bytes, parse_duration};

use crate::{Change, LossModel, QueueLimit, Schedule};

/// The maximum number of changes in a file: one per millisecond for an hour.
const MAX_CHANGES: usize = 3_600_000;

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    changes: Vec<(Duration, Change)>,
    period: Option<Duration>,
}

/// An error in a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    line: usize,
    what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.what)
    }
}

impl core::error::Error for TraceError {}

impl Trace {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns an error for the first invalid line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut trace = Self::default();
        let mut latest = Duration::ZERO;
        for (index, line) in text.lines().enumerate() {
            let fail = |what: String| TraceError { line: index + 1, what };
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(time) = words.next() else { continue };
            let at =
                parse_duration(time).map_err(|_| fail(format!("`{time}` is no time, as 1.5s or 20ms")))?;
            if at < latest {
                return Err(fail(format!("{time} is before the line above it")));
            }
            if trace.period.is_some() {
                return Err(fail("nothing may follow `repeat`".to_owned()));
            }
            latest = at;
            trace.read_line(at, words).map_err(fail)?;
            if trace.changes.len() > MAX_CHANGES {
                return Err(fail(format!("more than {MAX_CHANGES} changes")));
            }
        }
        Ok(trace)
    }

    /// The changes of a link whose time begins at `start`.
    #[must_use]
    pub fn schedule(&self, start: Instant) -> Schedule {
        let schedule = Schedule::new(self.changes.iter().map(|(at, change)| (start + *at, change.clone())));
        match self.period {
            Some(period) => schedule.repeating(period),
            None => schedule,
        }
    }

    fn read_line<'a>(&mut self, at: Duration, words: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let mut words = words.peekable();
        if words.next_if_eq(&"repeat").is_some() {
            if words.next().is_some() {
                return Err("`repeat` stands alone on its line".to_owned());
            }
            // Each change would repeat without end in the same instant.
            if at.is_zero() {
                return Err("`repeat` after no time".to_owned());
            }
            self.period = Some(at);
            return Ok(());
        }
        let changes = read_changes(words)?;
        if changes.is_empty() {
            return Err("a time, and nothing that happens then".to_owned());
        }
        self.changes.extend(changes.into_iter().map(|change| (at, change)));
        Ok(())
    }
}

/// Parses a line of changes without a time, such as `rate 25mbit loss 1%`.
///
/// # Errors
/// Returns an error that says what is wrong.
pub fn parse_changes(line: &str) -> Result<Vec<Change>, String> {
    read_changes(line.split('#').next().unwrap_or_default().split_whitespace())
}

fn read_changes<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` without a value"));
        changes.push(match word {
            "rate" => Change::Rate(parsed(word, value()?, "as 25mbit")?),
            "loss" => Change::Loss(LossModel::Bernoulli(parsed(word, value()?, "as 1% or 0.01")?)),
            "delay" => {
                let text = value()?;
                Change::Delay(parse_duration(text).map_err(|_| wanted(word, text, "as 20ms"))?)
            }
            "queue" => {
                let text = value()?;
                let bytes = parse_bytes(text).map_err(|_| wanted(word, text, "as 64kb"))?;
                Change::Queue(QueueLimit::Bytes(bytes))
            }
            "down" => Change::Down(true),
            "up" => Change::Down(false),
            "repeat" => return Err("`repeat` stands alone on its line".to_owned()),
            _ => return Err(format!("`{word}` is none of rate, queue, loss, delay, down, up and repeat")),
        });
    }
    Ok(changes)
}

fn parsed<T: core::str::FromStr>(word: &str, text: &str, example: &str) -> Result<T, String> {
    text.parse().map_err(|_| wanted(word, text, example))
}

fn wanted(word: &str, text: &str, example: &str) -> String {
    format!("{word} `{text}`: it is written {example}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::{Probability, Rate};

    #[test]
    fn a_file_is_read_into_a_schedule_that_repeats() {
        let text = "# a cell\n0s rate 25mbit loss 1% # at first\n\n1.5s rate 8mbit queue 64kb\n2s down\n2500ms up delay 20ms\n4s repeat\n";
        let mut schedule = Trace::parse(text).expect("a trace").schedule(Instant::from_secs(1));
        let loss = LossModel::Bernoulli(Probability::new(0.01).expect("a probability"));
        let rate = |megabits| Change::Rate(Rate::from_megabits_per_second(megabits));
        let found: Vec<(u64, Change)> = core::iter::from_fn(|| schedule.poll_change(Instant::from_secs(5)))
            .map(|(at, change)| (at.as_nanos() / 1_000_000, change))
            .collect();
        let delay = Change::Delay(Duration::from_millis(20));
        assert_eq!(
            found,
            [
                (1_000, rate(25)),
                (1_000, Change::Loss(loss.clone())),
                (2_500, rate(8)),
                (2_500, Change::Queue(QueueLimit::Bytes(64_000))),
                (3_000, Change::Down(true)),
                (3_500, Change::Down(false)),
                (3_500, delay),
                (5_000, rate(25)),
                (5_000, Change::Loss(loss)),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("x", "line 1: `x` is no time, as 1.5s or 20ms"),
            ("1s", "line 1: a time, and nothing that happens then"),
            ("1s rate", "line 1: `rate` without a value"),
            ("\n1s rate fast", "line 2: rate `fast`: it is written as 25mbit"),
            ("1s loss 120%", "line 1: loss `120%`: it is written as 1% or 0.01"),
            ("1s queue long", "line 1: queue `long`: it is written as 64kb"),
            ("1s delay 3", "line 1: delay `3`: it is written as 20ms"),
            ("1s colour red", "line 1: `colour` is none of rate, queue, loss, delay, down, up and repeat"),
            ("2s down\n1s up", "line 2: 1s is before the line above it"),
            ("0s repeat", "line 1: `repeat` after no time"),
            ("1s down repeat", "line 1: `repeat` stands alone on its line"),
            ("1s repeat\n2s up", "line 2: nothing may follow `repeat`"),
        ] {
            assert_eq!(Trace::parse(text).expect_err("wrong").to_string(), said, "{text:?}");
        }
    }
}
