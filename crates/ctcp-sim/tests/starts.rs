//! How soon a new connection fills a long lossy path.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::TransportConfig;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;

const RATE: u64 = 100;
const RTT: Duration = Duration::from_millis(60);

/// Round trips of a download, the handshake included, until four in a row carry three quarters of a path that holds `product` bytes; at most 60.
fn rounds_until_full(seed: u64, path: &PathConfig, rtt: Duration, product: f64) -> u32 {
    let transport = TransportConfig::default();
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, 4_000_000_000)]);
    let mut pair = Pair::several(seed, core::slice::from_ref(path), [&transport, &transport], &script);
    pair.connect().expect("a valid configuration");
    let mut read = vec![0];
    for round in 1..60 {
        pair.simulation.run_for(rtt, |_| false);
        read.push(pair.simulation.host(pair.client).bytes_read());
        if read.len() > 4 {
            let four = read[read.len() - 1] - read[read.len() - 5];
            if four as f64 > 0.75 * 4.0 * product {
                return round;
            }
        }
    }
    60
}

/// The same over a path that loses a twentieth.
fn rounds_until_lossy_is_full(seed: u64) -> u32 {
    let loss = LossModel::Bernoulli(Probability::new(0.05).expect("a probability"));
    let mut path = PathConfig::new(Rate::from_megabits_per_second(RATE), RTT, loss);
    let product = RATE as f64 * 1e6 / 8.0 * RTT.as_secs_f64();
    path.backward.queue = QueueLimit::Bytes((product / 2.0) as u64);
    rounds_until_full(seed, &path, RTT, product)
}

/// The receiver's window grows ahead of what slow start sends.
#[test]
fn a_download_fills_a_long_lossy_path_within_twenty_round_trips() {
    let mut rounds: Vec<u32> = (1..=20).map(rounds_until_lossy_is_full).collect();
    rounds.sort_unstable();
    println!("{rounds:?}");
    assert!(rounds[10] <= 14 && rounds[19] <= 20, "{rounds:?}");
}

/// The round trip is longer than the initial estimate, so the handshake gives no sample of it.
#[test]
fn the_first_flight_over_a_very_long_path_causes_no_queue() {
    let rtt = Duration::from_millis(500);
    let path = PathConfig::new(Rate::from_megabits_per_second(8), rtt, LossModel::None);
    let transport = TransportConfig::default();
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, 4_000_000)]);
    let mut pair = Pair::several(1, &[path], [&transport, &transport], &script);
    pair.connect().expect("a valid configuration");
    pair.simulation.run_for(3 * rtt, |_| false);
    let link = pair.simulation.link(pair.link).way(Direction::Backward).stats();
    assert!(link.delivered >= 24, "{} packets", link.delivered);
    assert!(link.queue_max_packets <= 6, "a queue of {} packets", link.queue_max_packets);
}

/// How long a download of 300 KB takes that `begins` so long after the connection.
fn download_time(begins: Duration) -> Duration {
    let path = PathConfig::new(Rate::from_megabits_per_second(RATE), RTT, LossModel::None);
    let transport = TransportConfig::default();
    let size = 300_000;
    let script = Script::of_client(vec![StreamPlan::download(begins, size)]);
    let mut pair = Pair::several(1, &[path], [&transport, &transport], &script);
    pair.connect().expect("a valid configuration");
    let step = Duration::from_millis(1);
    let is_done = |pair: &Pair| pair.simulation.host(pair.client).bytes_read() >= size;
    let mut taken = Duration::ZERO;
    while !is_done(&pair) && taken < Duration::from_secs(10) {
        pair.simulation.run_for(step, |_| false);
        taken += step;
    }
    taken - begins
}

/// The server has nothing to send when the connection is established, but its first flight fills the window, and more data waits.
/// 300 KB need the handshake, the request, and windows of 32, 64 and 128 packets.
#[test]
fn the_first_flight_lets_the_window_grow() {
    let [at_once, later] = [Duration::ZERO, Duration::from_millis(500)].map(download_time);
    println!("{at_once:?} {later:?}");
    assert!(at_once < 5 * RTT && later < 5 * RTT, "{at_once:?} {later:?}");
}

/// Seconds until a download fills 50 Mbit/s, if so many packets are lost in a row after the first 20.
fn seconds_until_full(rtt: Duration, lost: usize) -> f64 {
    let mut path = PathConfig::new(Rate::from_megabits_per_second(50), rtt, LossModel::None);
    path.backward.loss = LossModel::Pattern((0..20 + lost).map(|packet| packet >= 20).collect());
    let product = 50e6 / 8.0 * rtt.as_secs_f64();
    f64::from(rounds_until_full(1, &path, rtt, product)) * rtt.as_secs_f64()
}

/// The breaker ends slow start with a few packets, from which the window would grow for dozens of round trips. Prints the table of decision 0078.
#[test]
fn a_burst_of_losses_in_the_first_flight_does_not_leave_a_long_path_unused() {
    for millis in [60, 100, 160, 250] {
        let rtt = Duration::from_millis(millis);
        let seconds: Vec<f64> = (16..=48).step_by(4).map(|lost| seconds_until_full(rtt, lost)).collect();
        println!("{millis} ms: {seconds:.1?}");
        assert!(seconds.iter().all(|&seconds| seconds < 7.0), "{millis} ms: {seconds:?}");
    }
}
