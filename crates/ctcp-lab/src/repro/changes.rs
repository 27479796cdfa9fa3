//! Options that change what an experiment computes, with checks of their values.

use std::time::Duration;

use ctcp_base::{Probability, Rate, parse_duration};
use ctcp_repro::{Changes, Experiment};

use super::RunArgs;
use ctcp_cli::error::CliError;

const MEGABITS_MAX: u64 = 10_000;
const RTT_MILLIS_MAX: u64 = 10_000;
/// With more loss nothing in these simulations makes progress.
const LOSS_MAX: f64 = 0.5;
/// Shorter runs end before anything settles, and longer ones take days.
const SECONDS: core::ops::RangeInclusive<u64> = 10..=100_000;

/// Parses the changes by `--rate`, `--rtt`, `--loss` and `--time`.
pub(super) fn parse(args: &RunArgs) -> Result<Changes, CliError> {
    Ok(Changes {
        megabits: args.rate.as_deref().map(megabits).transpose()?,
        rtt_millis: args.rtt.as_deref().map(rtt_millis).transpose()?,
        loss: args.loss.as_deref().map(loss).transpose()?,
        seconds: args.time.as_deref().map(seconds).transpose()?,
    })
}

/// Checks that `experiment` has all options that are changed.
pub(super) fn check(experiment: &Experiment, changes: &Changes) -> Result<(), CliError> {
    let Some(other) = changes.parameters().find(|parameter| !experiment.takes.contains(parameter)) else {
        return Ok(());
    };
    let takes = match options(experiment) {
        takes if takes.is_empty() => "its numbers are fixed".to_owned(),
        takes => format!("it has {takes}"),
    };
    Err(CliError::usage(format!("`{}` has no {}: {takes}", experiment.id, other.option())))
}

/// The options of an experiment.
pub(super) fn options(experiment: &Experiment) -> String {
    experiment.takes.iter().map(|parameter| parameter.option()).collect::<Vec<_>>().join(", ")
}

fn megabits(text: &str) -> Result<u64, CliError> {
    let rate = text.parse::<Rate>().map_err(|error| CliError::usage(format!("--rate {text}: {error}")))?;
    let bits = rate.as_bits_per_second();
    let is_whole = bits.is_multiple_of(1_000_000) && (1..=MEGABITS_MAX).contains(&(bits / 1_000_000));
    is_whole.then_some(bits / 1_000_000).ok_or_else(|| {
        CliError::usage(format!(
            "--rate {text}: expected a whole number of Mbit/s from 1 to {MEGABITS_MAX}, such as 25mbit"
        ))
    })
}

fn duration(option: &str, text: &str) -> Result<Duration, CliError> {
    parse_duration(text).map_err(|error| CliError::usage(format!("{option} {text}: {error}")))
}

fn rtt_millis(text: &str) -> Result<u64, CliError> {
    let rtt = duration("--rtt", text)?;
    let millis = rtt.as_millis() as u64;
    let is_even = rtt == Duration::from_millis(millis) && millis.is_multiple_of(2);
    (is_even && (2..=RTT_MILLIS_MAX).contains(&millis)).then_some(millis).ok_or_else(|| {
        CliError::usage(format!("--rtt {text}: expected an even number of ms from 2 to {RTT_MILLIS_MAX}"))
    })
}

fn loss(text: &str) -> Result<f64, CliError> {
    let loss = text.parse::<Probability>().ok().map(Probability::as_f64).filter(|loss| *loss <= LOSS_MAX);
    loss.ok_or_else(|| {
        CliError::usage(format!("--loss {text}: expected a share from 0 to {LOSS_MAX}, such as 0.05"))
    })
}

fn seconds(text: &str) -> Result<u64, CliError> {
    let time = duration("--time", text)?;
    let whole = time.as_secs();
    (time == Duration::from_secs(whole) && SECONDS.contains(&whole)).then_some(whole).ok_or_else(|| {
        let (least, most) = (SECONDS.start(), SECONDS.end());
        CliError::usage(format!("--time {text}: expected whole seconds from {least} to {most}, such as 60s"))
    })
}
