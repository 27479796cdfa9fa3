//! A client with one path whose address changes during a download.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::TransportConfig;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;

const MILLISECOND: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(20);
const MOVES: u8 = 20;

/// A download over 20 Mbit/s and a round trip of 20 ms, with a queue of 40 ms, after its first second.
fn download(seed: u64, loss: f64) -> Pair {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let mut path = PathConfig::new(Rate::from_megabits_per_second(20), RTT, loss);
    path.backward.queue = QueueLimit::Bytes(100_000);
    let transport = TransportConfig::default();
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, 60_000_000)]);
    let mut pair = Pair::several(seed, &[path], [&transport, &transport], &script);
    pair.connect().expect("a first connection");
    pair.simulation.run_for(50 * RTT, |_| false);
    pair
}

/// Gives the client another address. Returns the time until it reads something, and the longest time without anything in the quarter of a
/// second after the move.
fn move_client(pair: &mut Pair, number: u8, is_told: bool) -> (Duration, Duration) {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 9, number + 1)), 5_000);
    pair.simulation.set_address(pair.client, address);
    if is_told {
        pair.simulation.on_network_change(pair.client);
    }
    let (mut waited, mut longest, mut first) = (Duration::ZERO, Duration::ZERO, None);
    let mut read = pair.simulation.host(pair.client).bytes_read();
    for _ in 0..250 {
        pair.simulation.run_for(MILLISECOND, |_| false);
        waited += MILLISECOND;
        longest = longest.max(waited);
        let bytes = pair.simulation.host(pair.client).bytes_read();
        if bytes > read {
            first = first.or(Some(waited));
            (read, waited) = (bytes, Duration::ZERO);
        }
    }
    (first.unwrap_or(longest), longest)
}

#[test]
fn data_arrives_within_a_round_trip_of_a_move_and_never_pauses_for_long() {
    for seed in 1..=4 {
        let mut pair = download(seed, 0.0);
        for number in 0..MOVES {
            // A packet to the old address may still wait at the link.
            let (first, longest) = move_client(&mut pair, number, true);
            assert!(
                first <= RTT + 12 * MILLISECOND,
                "seed {seed}, move {number}: first data after {first:?}"
            );
            assert!(longest <= 2 * RTT, "seed {seed}, move {number}: {longest:?} without data");
        }
        assert_eq!(pair.simulation.violations().count(), 0);
    }
}

// Whole blocks are in flight when the client moves. As combinations, their repairs would be of use only block by block: 84 ms.
#[test]
fn a_client_that_is_not_told_that_it_moved_has_data_soon_after_it_notices() {
    let mut sum = Duration::ZERO;
    for seed in 1..=4 {
        let mut pair = download(seed, 0.01);
        for number in 0..MOVES {
            let (_, longest) = move_client(&mut pair, number, false);
            assert!(longest <= 10 * RTT, "seed {seed}, move {number}: {longest:?} without data");
            sum += longest;
        }
    }
    let mean = sum / (4 * u32::from(MOVES));
    // It checks a flow that stopped after 40 ms. Then come two round trips, unless a packet is lost.
    assert!(mean <= 75 * MILLISECOND, "{mean:?} without data");
}

#[test]
fn a_new_start_on_a_queue_of_two_bandwidth_delay_products_overflows_it_hardly_ever() {
    let mut pair = download(1, 0.0);
    let dropped = |pair: &Pair| pair.simulation.link(pair.links[0]).way(Direction::Backward).stats().dropped;
    let before = dropped(&pair);
    for number in 0..MOVES {
        move_client(&mut pair, number, true);
    }
    let dropped = dropped(&pair) - before;
    assert!(dropped < 4 * u64::from(MOVES), "{dropped} packets dropped in {MOVES} starts");
}
