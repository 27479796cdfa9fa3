//! Requests that follow one another at once, as of a web page or an API.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::TransportConfig;
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::topology::Pair;

fn path(megabits: u64, rtt_millis: u64) -> PathConfig {
    let loss = LossModel::Bernoulli(Probability::new(0.05).expect("a probability"));
    PathConfig::new(Rate::from_megabits_per_second(megabits), Duration::from_millis(rtt_millis), loss)
}

/// The seconds of each response of these sizes, which are requested one after another.
fn responses(seed: u64, paths: &[PathConfig], sizes: &[u64]) -> Vec<f64> {
    let plans = sizes.iter().map(|&size| StreamPlan::download(Duration::ZERO, size)).collect();
    let script = Script { in_sequence: true, ..Script::of_client(plans) };
    let transport = TransportConfig::default();
    let mut pair = Pair::several(seed, paths, [&transport, &transport], &script);
    pair.connect().expect("a first connection");
    let client = pair.client;
    let (mut bytes, mut last) = (0, 0.0);
    let mut all = Vec::new();
    for size in sizes {
        bytes += size;
        let stop =
            pair.simulation.run_for(Duration::from_secs(60), |now| now.host(client).bytes_read() >= bytes);
        assert_eq!(stop, Stop::Done);
        let now = pair.simulation.now().as_secs_f64();
        all.push(now - last);
        last = now;
    }
    all
}

// All fit into one block. The repairs of a response that has arrived are still in flight when the next one begins.
#[test]
fn repairs_of_one_response_do_not_count_for_the_next() {
    let mut sizes = vec![200_000];
    sizes.resize(61, 10_000);
    let mut all: Vec<f64> =
        (1..=10).flat_map(|seed| responses(seed, &[path(20, 20)], &sizes).split_off(1)).collect();
    all.sort_by(f64::total_cmp);
    let late = all[all.len() * 95 / 100];
    assert!(late < 0.030, "{late} s; without losses a response takes 0.024 s");
}

// Each small response is a burst that waits for a moment at the bottleneck, while the path loses as many packets as ever.
#[test]
fn small_responses_over_a_lossy_path_do_not_end_slow_start() {
    let sizes = [vec![200_000], vec![10_000; 60], vec![100_000; 60], vec![1_000_000; 5]].concat();
    let large = |seed| responses(seed, &[path(2, 10), path(50, 80)], &sizes).split_off(121);
    let all: Vec<f64> = (1..=6).flat_map(large).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean < 0.28, "{mean} s for 1 MB");
}
