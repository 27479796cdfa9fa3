//! Cold starts of downloads on paths that lose packets.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::TransportConfig;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::topology::Pair;

const RTT: Duration = Duration::from_millis(60);
const MEGABITS: u64 = 100;

/// Bytes that the link carries in a round trip.
const PRODUCT: u64 = MEGABITS * 125 * 60;

/// A download counts as started once it has had this share of the link for four round trips.
const SHARE: f64 = 0.75;
const SPAN: usize = 4;

/// How many round trips a download needs to start, from the first packet of the handshake.
fn rounds_to_start(seed: u64, loss: f64) -> usize {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let mut path = PathConfig::new(Rate::from_megabits_per_second(MEGABITS), RTT, loss);
    path.backward.queue = QueueLimit::Bytes(PRODUCT);
    let transport = TransportConfig::default();
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, 400_000_000)]);
    let mut pair = Pair::several(seed, &[path], [&transport, &transport], &script);
    pair.connect().expect("a connection");
    let mut read = vec![0];
    loop {
        pair.simulation.run_for(RTT, |_| false);
        read.push(pair.simulation.host(pair.client).bytes_read());
        let rounds = read.len() - 1;
        let lately = read[rounds] - read[rounds.saturating_sub(SPAN)];
        if lately as f64 >= SHARE * (SPAN as u64 * PRODUCT) as f64 || rounds == 200 {
            return rounds;
        }
    }
}

// With windows of the receiver that grow more slowly, half of them need 17 round trips.
#[test]
fn a_download_on_a_long_lossy_path_starts_within_few_round_trips() {
    let mut rounds: Vec<usize> = (1..=20).map(|seed| rounds_to_start(seed, 0.05)).collect();
    rounds.sort_unstable();
    assert!(rounds[10] <= 12 && rounds[19] <= 15, "{rounds:?}");
}
