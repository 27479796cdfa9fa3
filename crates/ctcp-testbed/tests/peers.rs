//! Peers and the comparison on networks that are really started. These tests need root, and print a line if they are
//! skipped.
#![cfg(target_os = "linux")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_repro::Settings;
use ctcp_repro::comparison::RecordedComparison;
use ctcp_testbed::compare::{Comparison, Selection, Test};
use ctcp_testbed::network::Network;
use ctcp_testbed::peer::{KernelTcp, Mptcp, Peer, Udp};
use ctcp_testbed::plan::{NetworkPlan, PathPlan};
use ctcp_testbed::probe::{DatagramTarget, MessageServer, Messages};
use ctcp_testbed::testbed::{Testbed, download};
use ctcp_testbed::{Stop, TestbedError, bulk::Download, bulk::Request};

const RTT: Duration = Duration::from_millis(40);

/// Starts the network; `None`, after printing the reason, if none can be created.
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn start(loss: f64, paths: usize) -> Option<Network> {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let path = PathConfig::new(Rate::from_megabits_per_second(20), RTT, loss).with_lossless_return();
    match Network::start(
        &NetworkPlan::new(1, vec![PathPlan::new(path); paths]),
        "ctcp".into(),
        Stop::default(),
    ) {
        Ok(network) => Some(network),
        Err(TestbedError::Missing(what)) => {
            eprintln!("SKIP: {what}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn messages_take_at_least_the_path_delay_and_lost_ones_a_round_trip_more() {
    let Some(network) = start(0.05, 1) else { return };
    let peer = KernelTcp::BBR;
    let rate = Rate::from_megabits_per_second(1);
    let messages = Messages { bytes: 1_000, rate, time: Duration::from_secs(3) };
    let server = MessageServer::start(&network, peer.socket(), messages.bytes).expect("a server");
    let carrier = peer.start(&network, server.address()).expect("nothing to start");
    let delivery = messages.run(&network, &peer, &carrier, || {}).expect("messages");
    assert_eq!((delivery.due, delivery.missing()), (375, 0.0));
    let percentile = |share| delivery.percentile(share).expect("all were delivered");
    assert!(delivery.latencies.iter().all(|latency| *latency >= RTT / 2));
    // One in twenty is lost, and the messages after it wait for it.
    assert!(percentile(0.99) >= RTT * 3 / 2, "{:?}", percentile(0.99));
}

#[test]
fn of_messages_as_plain_datagrams_those_are_late_that_the_link_loses() {
    let Some(network) = start(0.05, 1) else { return };
    let rate = Rate::from_megabits_per_second(1);
    let messages = Messages { bytes: 200, rate, time: Duration::from_secs(3) };
    let target = DatagramTarget::bind(&network).expect("a socket");
    let carrier = Udp.start_datagrams(&network, target.address()).expect("nothing to start");
    let mut before = 0;
    let delivery = messages
        .run_datagrams(&network, target, carrier.entry, || before = network.packets_sent()[0])
        .expect("messages");
    assert_eq!((delivery.due, network.packets_sent()[0] - before), (1_875, 1_875));
    assert!(delivery.latencies.iter().all(|latency| *latency >= RTT / 2));
    // Five standard deviations.
    assert!((0.025..0.075).contains(&delivery.missing()), "{}", delivery.missing());
    assert!(delivery.late(RTT / 4) == 1.0 && delivery.late(Duration::from_secs(1)) == delivery.missing());
}

#[test]
fn a_stream_and_a_download_come_from_the_same_server() {
    let Some(network) = start(0.0, 1) else { return };
    let peer = KernelTcp::BBR;
    let rate = Rate::from_megabits_per_second(1);
    let messages = Messages { bytes: 1_000, rate, time: Duration::from_secs(1) };
    let server = MessageServer::start(&network, peer.socket(), messages.bytes).expect("a server");
    let carrier = peer.start(&network, server.address()).expect("nothing to start");
    let request = Request { bytes: None, time: Duration::from_secs(3) };
    let download = Download::start(&network, carrier.entry, peer.socket(), request);
    let delivery = messages.run(&network, &peer, &carrier, || {}).expect("messages");
    assert_eq!((delivery.due, delivery.missing()), (125, 0.0));
    let transfer = download.join().expect("the pattern");
    assert!(transfer.is_complete && transfer.bytes > 1_000_000, "{transfer:?}");
}

#[test]
fn multipath_tcp_sends_on_both_paths() {
    let Some(network) = start(0.0, 2) else { return };
    if let Err(error) = Mptcp::CUBIC.description(&network) {
        eprintln!("SKIP: {error}");
        return;
    }
    let request = Request { bytes: Some(8_000_000), time: Duration::from_secs(60) };
    let measured = download(&network, &Mptcp::CUBIC, request).expect("a download");
    assert_eq!(measured.transfer.bytes, 8_000_000);
    let sent: Vec<u64> = network.report().ways.iter().map(|path| path[0][0].bytes_offered).collect();
    assert!(sent.iter().all(|bytes| *bytes > 1_000_000), "{sent:?}");
}

#[test]
fn a_comparison_has_a_value_of_every_peer_and_names_the_best() {
    let settings = Settings { quick: true, seeds: Some(2), ..Settings::default() };
    let mut testbed = Testbed::new(settings, "ctcp".into(), Stop::default(), |_| {});
    let selection = Selection {
        peers: vec!["cubic", "bbr"],
        tests: vec![Test::Requests],
        losses: vec![0.05],
        seconds: None,
        cells: None,
    };
    // Interrupted after the first repetition, and then resumed.
    let mut kept = None;
    let found = Comparison::run(&mut testbed, &selection, ("1", None), |comparison, _| {
        kept = Some(comparison.kept("1"));
        Err(TestbedError::Interrupted)
    });
    match found {
        Err(TestbedError::Missing(what)) => return eprintln!("SKIP: {what}"),
        other => assert_eq!(other.err(), Some(TestbedError::Interrupted)),
    }
    let mut turns = 0;
    let found = Comparison::run(&mut testbed, &selection, ("1", kept), |_, _| {
        turns += 1;
        Ok(())
    });
    let comparison = match found {
        Ok(comparison) => comparison,
        Err(TestbedError::Missing(what)) => return eprintln!("SKIP: {what}"),
        Err(error) => panic!("{error}"),
    };
    assert_eq!((turns, comparison.repetitions()), (1, 2), "the second of two");
    let record = testbed.record();
    let json = comparison.json(&record, "1", true, testbed.elapsed_s());
    // On a busy machine a run may have been left out, which is reported as a failure.
    if comparison.failures.is_empty() {
        for peer in ["cubic", "bbr"] {
            let runs = json["runs"].as_array().expect("runs");
            let of_peer = || runs.iter().filter(|run| run["peer"] == peer && run["unit"] == "s");
            assert!(of_peer().count() >= 20 && of_peer().all(|run| run["value"].as_f64() > Some(0.02)));
        }
        let page = RecordedComparison::parse(&json.to_string()).expect("its own JSON").markdown();
        assert!(page.contains("| loss | statistic | unit | TCP Cubic | TCP BBR |"), "{page}");
    }
}
