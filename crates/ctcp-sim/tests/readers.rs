//! Readers that stop reading must not take bandwidth from other streams of their connection.
#![expect(clippy::print_stdout, reason = "the times are in the decisions")]

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::TransportConfig;
use ctcp_sim::Stop;
use ctcp_sim::application::script::{FlowPlan, Pace, Script, StreamPlan};
use ctcp_sim::topology::Pair;

/// Bytes of each flow whose reader stops.
const ENDLESS: u64 = 20_000_000;

/// Approximate bytes held by a stream whose reader has stopped.
const EARLY: u64 = 1 << 20;

/// Bytes of the request that follows.
const REQUEST: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Way {
    Download,
    Upload,
}

/// Returns a stream with `size` bytes in this direction, and access to that direction.
fn stream(way: Way, start: Duration, size: u64) -> (StreamPlan, fn(&mut StreamPlan) -> &mut FlowPlan) {
    match way {
        Way::Download => (StreamPlan::download(start, size), |plan| &mut plan.response),
        Way::Upload => (StreamPlan::upload(start, size), |plan| &mut plan.request),
    }
}

/// Returns streams that start one after the other, separated by a pause. Their readers read `read` bytes and then stop.
fn stopping(way: Way, count: u32, read: u64, pause: Duration) -> Vec<StreamPlan> {
    let one = |index| {
        let (mut plan, flow) = stream(way, pause * index, ENDLESS);
        flow(&mut plan).reading = Pace { chunk: read, pause: Duration::from_secs(1 << 20) };
        plan
    };
    (0..count).map(one).collect()
}

/// Returns how long a request takes on a connection on which the streams `before` were begun earlier.
fn time_of_request(path: &PathConfig, way: Way, before: Vec<StreamPlan>, start: Duration) -> Duration {
    let size = stream(way, start, REQUEST).0.size();
    let mut streams = before;
    streams.push(stream(way, start, REQUEST).0);
    let mut pair = Pair::new(3, path, &TransportConfig::default(), &Script::of_client(streams));
    pair.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
    pair.connect().expect("a valid configuration");
    let connected = pair.simulation.now();
    pair.simulation.run_for(start, |_| false);
    let read = pair.simulation.ledger().total_read();
    let stop = pair
        .simulation
        .run_for(Duration::from_secs(60), |simulation| simulation.ledger().total_read() >= read + size);
    assert_eq!(stop, Stop::Done, "{way:?}: a request next to readers that stopped");
    pair.simulation.now() - connected - start
}

/// A path without loss. Whether a request is hit by a loss is a matter of chance and costs a round trip.
fn path(megabits: u64, rtt: Duration) -> PathConfig {
    PathConfig::new(Rate::from_megabits_per_second(megabits), rtt, LossModel::None)
}

/// Asserts that a request next to readers that stopped takes at most 1.2 times as long as after the same number of
/// bytes that were read.
fn assert_not_held_up(path: &PathConfig, count: u32, read: u64, (pause, start): (Duration, Duration)) {
    for way in [Way::Download, Way::Upload] {
        let whole = |index| stream(way, pause * index, read + EARLY).0;
        let usual = time_of_request(path, way, (0..count).map(whole).collect(), start);
        let beside = time_of_request(path, way, stopping(way, count, read, pause), start);
        println!(
            "{way:?}: {usual:.3?} usually, {beside:.3?} beside {count} readers that stopped after {read} bytes"
        );
        assert!(beside < usual.mul_f64(1.2), "{way:?}: {usual:?}, and beside them {beside:?}");
    }
}

#[test]
fn a_request_is_not_held_up_by_readers_that_never_read() {
    let path = path(100, Duration::from_millis(20));
    assert_not_held_up(&path, 100, 1, (Duration::from_millis(50), Duration::from_secs(20)));
}

#[test]
fn a_request_is_not_held_up_on_a_long_path() {
    let path = path(200, Duration::from_millis(200));
    for (count, read) in [(3, 8_000_000), (100, 1_000_000)] {
        assert_not_held_up(&path, count, read, (Duration::from_millis(400), Duration::from_secs(60)));
    }
}
