//! Paths with bursty loss or varying delay, as in `ctcp-lab testbed compare`, in virtual time: a file and a stream of
//! messages from the client to the server.
//!
//! To see the tables: `cargo test --release -p ctcp-sim --test rough -- --include-ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "the tables are what people run it for")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::measure::goodput_share;
use ctcp_sim::topology::Pair;

const RATE: Rate = Rate::from_megabits_per_second(25);
const BURST: f64 = 5.0;
const JITTER: Duration = Duration::from_millis(5);
const MESSAGE: u64 = 1_200;
const MESSAGES: usize = 3_000;
const SEEDS: u64 = 6;
const BIN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug)]
enum Rough {
    Independent,
    Bursts,
    Jitter,
}

fn path(rough: Rough, rtt: Duration, loss: f64) -> PathConfig {
    let share = Probability::new(loss).expect("a probability");
    let model = match rough {
        Rough::Bursts if loss > 0.0 => LossModel::bursts(share, BURST).expect("possible"),
        _ => LossModel::Bernoulli(share),
    };
    let path = PathConfig::new(RATE, rtt, model).with_lossless_return();
    if let Rough::Jitter = rough { path.with_jitter(JITTER) } else { path }
}

fn pair(seed: u64, path: &PathConfig, script: &Script) -> Pair {
    let profile = Profile::DEFAULT;
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    Pair::new(seed, path, &transport, script)
}

/// The result of a file transfer of five seconds.
struct Sent {
    /// Share of the link.
    share: f64,
    /// Packets sent per packet that would have been needed.
    excess: f64,
    /// Share of packets dropped by the queue.
    dropped: f64,
}

fn file(rough: Rough, loss: f64, seed: u64) -> Sent {
    let size = 15_000_000;
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, size)]);
    let mut pair = pair(seed, &path(rough, Duration::from_millis(20), loss), &script);
    let start = pair.simulation.now();
    pair.connect().expect("a valid configuration");
    assert_eq!(pair.run_to_completion(Duration::from_secs(600)), Stop::Done);
    let stats = pair.simulation.host(pair.client).stats();
    let sent = (stats.symbols_sent + stats.repairs_sent) as f64 / stats.symbols_sent as f64;
    let link = pair.simulation.link(pair.link).way(Direction::Forward).stats();
    Sent {
        share: goodput_share(size, pair.simulation.now() - start, RATE),
        excess: sent * (1.0 - loss),
        dropped: link.dropped as f64 / link.offered as f64,
    }
}

/// Returns the sorted delays from due to delivered in order, and the packets sent per message.
fn stream(rough: Rough, loss: f64, seed: u64) -> (Vec<f64>, f64) {
    let rate = Rate::from_megabits_per_second(3);
    let lasting = rate.time_to_send(MESSAGE) * MESSAGES as u32;
    let script = Script::constant_rate(rate, MESSAGE, lasting);
    let mut pair = pair(seed, &path(rough, Duration::from_millis(50), loss), &script);
    pair.simulation.keep_series(BIN, vec![pair.client, pair.server], Vec::new());
    pair.connect().expect("a valid configuration");
    assert_eq!(pair.run_to_completion(Duration::from_secs(600)), Stop::Done);
    let series = pair.simulation.series().expect("the series is kept");
    let begin =
        series.connection(pair.client).iter().position(|sample| sample.symbols_sent > 0).expect("begins");
    let read = series.connection(pair.server);
    let mut delays = Vec::new();
    let mut bin = 0;
    for message in 0..MESSAGES {
        while bin < read.len() - 1 && read[bin].bytes_read < MESSAGE * (message as u64 + 1) {
            bin += 1;
        }
        let due = begin as f64 + (rate.time_to_send(MESSAGE) * message as u32).as_secs_f64() * 1e3;
        delays.push(bin as f64 - due);
    }
    delays.sort_by(f64::total_cmp);
    let stats = pair.simulation.host(pair.client).stats();
    (delays, (stats.symbols_sent + stats.repairs_sent) as f64 / MESSAGES as f64)
}

#[test]
#[ignore = "takes a while; docs/testing.md"]
fn files() {
    for rough in [Rough::Independent, Rough::Bursts, Rough::Jitter] {
        for (loss, least) in [(0.0, 0.89), (0.01, 0.89), (0.05, 0.88), (0.1, 0.87), (0.2, 0.86), (0.3, 0.84)]
        {
            let found: Vec<Sent> = (1..=SEEDS).map(|seed| file(rough, loss, seed)).collect();
            let mean = |of: fn(&Sent) -> f64| found.iter().map(of).sum::<f64>() / SEEDS as f64;
            let (share, excess, dropped) =
                (mean(|sent| sent.share), mean(|sent| sent.excess), mean(|sent| sent.dropped));
            let worst = found.iter().map(|sent| sent.share).fold(1.0, f64::min);
            println!(
                "{rough:?} {loss:.2}: {share:.3} of the link, worst {worst:.3}; \
                 sent {excess:.3} of what was needed; queue dropped {dropped:.4}"
            );
            assert!(share > least && excess < 1.08 && dropped < 0.05, "{rough:?} {loss}");
        }
    }
}

#[test]
#[ignore = "takes a while; docs/testing.md"]
fn streams() {
    for rough in [Rough::Independent, Rough::Jitter] {
        for (loss, most) in [(0.01, 75.0), (0.05, 85.0), (0.2, 125.0)] {
            let mut delays = Vec::new();
            let mut sent = 0.0;
            for seed in 1..=SEEDS {
                let (mut some, packets) = stream(rough, loss, seed);
                delays.append(&mut some);
                sent += packets / SEEDS as f64;
            }
            delays.sort_by(f64::total_cmp);
            let at = |share: f64| delays[(delays.len() as f64 * share) as usize];
            println!(
                "{rough:?} {loss:.2}: p50 {:.0} ms, p99 {:.0}, p99.9 {:.0}, max {:.0}; {sent:.3} packets a message",
                at(0.5),
                at(0.99),
                at(0.999),
                delays[delays.len() - 1]
            );
            assert!(at(0.99) < most, "{rough:?} {loss}");
        }
    }
}
