//! Profile `low-latency`: the delay of messages on lossy paths, and what it costs.

#![allow(clippy::print_stdout, reason = "the figures are what people run it for")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::messages::{Delivery, Messages};

/// Seeds of each row.
const SEEDS: u64 = 5;

/// A stream like that of a game or a remote desktop.
const STREAM: Messages =
    Messages { bytes: 1_200, rate: Rate::from_megabits_per_second(3), time: Duration::from_secs(60) };

fn run(profile: Profile, loss: f64, burst: f64, seed: u64) -> Delivery {
    let share = Probability::new(loss).expect("a share");
    let model = if burst > 1.0 {
        LossModel::bursts(share, burst).expect("possible")
    } else {
        LossModel::Bernoulli(share)
    };
    let rate = Rate::from_megabits_per_second(25);
    let path = PathConfig::new(rate, Duration::from_millis(50), model).with_lossless_return();
    STREAM.run(seed, &path, &TransportConfig { profile, ..TransportConfig::default() })
}

/// Returns the medians over seeds of p50, p99 and p99.9 in milliseconds, and of bytes on the wire per byte.
fn row(profile: Profile, loss: f64, burst: f64) -> [f64; 4] {
    let runs: Vec<Delivery> = (1..=SEEDS).map(|seed| run(profile, loss, burst, seed)).collect();
    let median = |value: &dyn Fn(&Delivery) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let row = [
        median(&|run| run.percentile(0.5)),
        median(&|run| run.percentile(0.99)),
        median(&|run| run.percentile(0.999)),
        median(&|run| run.sent_per_byte),
    ];
    let repairs = median(&Delivery::repairs_per_symbol);
    println!("{profile}, loss {loss}, bursts of {burst}: {row:.3?}, repairs {repairs:.3}");
    row
}

#[test]
fn messages_arrive_in_time_within_the_budget() {
    let cases = [(0.01, 30.0, 45.0), (0.05, 38.0, 60.0), (0.10, 50.0, 80.0)];
    for (loss, p99_max, p999_max) in cases {
        let [_, p99, p999, sent] = row(Profile::LOW_LATENCY, loss, 1.0);
        assert!(p99 <= p99_max && p999 <= p999_max, "loss {loss}: {p99} {p999}");
        assert!(sent <= 1.45 / (1.0 - loss), "loss {loss}: {sent}");
    }
}

#[test]
fn bursts_cost_no_more_than_the_budget() {
    for burst in [3.0, 6.0] {
        let [_, p99, _, sent] = row(Profile::LOW_LATENCY, 0.05, burst);
        assert!(p99 <= 130.0, "bursts of {burst}: {p99}");
        assert!(sent <= 1.45 / 0.95, "bursts of {burst}: {sent}");
    }
}

#[test]
fn a_clean_path_gets_hardly_any_repair() {
    let delivery = run(Profile::LOW_LATENCY, 0.0, 1.0, 1);
    println!("{:.4}", delivery.repairs_per_symbol());
    assert!(delivery.repairs_per_symbol() <= 0.01);
}
