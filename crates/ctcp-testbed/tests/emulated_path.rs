//! Networks that are really started. These tests need root, and print a line if they are skipped. They do not depend on
//! the load of the machine.
#![cfg(target_os = "linux")]

use core::time::Duration;
use std::path::Path;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, PathConfig, Trace};
use ctcp_testbed::bulk::{BulkServer, Download, Request, SocketPlan};
use ctcp_testbed::network::Network;
use ctcp_testbed::peer::{KernelTcp, Peer};
use ctcp_testbed::plan::{NetworkPlan, PathPlan, WayPlan};
use ctcp_testbed::probe::{Datagrams, ping};
use ctcp_testbed::testbed::download;
use ctcp_testbed::{Stop, TestbedError};

/// Starts the network; `None`, after printing the reason, if none can be created.
#[expect(clippy::print_stderr, reason = "a skipped test prints the reason")]
fn start(plan: &NetworkPlan, stop: &Stop) -> Option<Network> {
    match Network::start(plan, "ctcp".into(), stop.clone()) {
        Ok(network) => Some(network),
        Err(TestbedError::Missing(what)) => {
            eprintln!("SKIP: {what}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn path(rtt_millis: u64, loss: f64) -> PathConfig {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    PathConfig::new(Rate::from_megabits_per_second(50), Duration::from_millis(rtt_millis), loss)
        .with_lossless_return()
}

#[test]
fn a_round_trip_has_the_delays_of_all_hops_of_its_own_path_only() {
    let plan = NetworkPlan::new(
        1,
        [PathPlan::new(path(30, 0.0)).then(path(50, 0.0)), PathPlan::new(path(500, 0.0))],
    );
    let Some(network) = start(&plan, &Stop::default()) else { return };
    let round_trips = ping(&network, 20, Duration::from_millis(5)).expect("a ping");
    assert_eq!(round_trips.len(), 20);
    let least = round_trips.iter().min().expect("some");
    assert!((80..200).contains(&least.as_millis()), "{least:?}");
}

#[test]
fn a_download_arrives_completely_and_all_its_packets_are_accounted_for() {
    let Some(network) = start(&NetworkPlan::new(1, [PathPlan::new(path(4, 0.05))]), &Stop::default()) else {
        return;
    };
    let request = Request { bytes: Some(2_000_000), time: Duration::from_secs(60) };
    let measured = download(&network, &KernelTcp::CUBIC, request).expect("a download");
    assert!(measured.transfer.is_complete && measured.transfer.bytes == 2_000_000, "{measured:?}");
    // Headers, and retransmissions of lost packets.
    assert!((1.05..1.5).contains(&measured.sent_per_byte()), "{}", measured.sent_per_byte());
    let forward = network.report().ways[0][0][0];
    let (offered, lost) = (forward.offered as f64, forward.lost as f64);
    assert!((0.02..0.09).contains(&(lost / offered)), "{forward:?}");
    assert_eq!(forward.offered, forward.lost + forward.dropped + forward.delivered + forward.held);
    assert_eq!(network.device_drops(), Ok(0));
    let description = KernelTcp::CUBIC.description(&network).expect("a kernel");
    assert!(description.settings.contains("cubic") && description.version.starts_with("Linux "));
}

#[test]
fn a_trace_interrupts_the_path() {
    let down = Trace::parse("0s up\n300ms down\n1300ms up").expect("a trace");
    let link = LinkConfig::default().with_rate(Rate::from_megabits_per_second(50));
    let path = PathPlan { forward: WayPlan::new(link.clone()).changing(down), backward: WayPlan::new(link) };
    let Some(network) = start(&NetworkPlan::new(1, [path]), &Stop::default()) else { return };
    let flow = Datagrams {
        path: 0,
        packet_bytes: 200,
        rate: Rate::from_bits_per_second(200 * 8 * 100),
        time: Duration::from_secs(2),
    };
    let arrivals = flow.run(&network).expect("datagrams");
    let lost_while_down = network.report().ways[0][0][0].lost_while_down;
    assert_eq!(arrivals.sent - arrivals.times.len() as u64, lost_while_down, "nothing else was lost");
    let down = |at: f64| (0.31..1.29).contains(&at);
    assert!(lost_while_down > 0 && !arrivals.times.iter().any(|(_, received)| down(received.as_secs_f64())));
    assert!(arrivals.times.iter().any(|(_, received)| received.as_secs_f64() > 1.3));
}

#[test]
fn paths_through_the_same_link_share_its_rate_and_reach_their_own_addresses() {
    let own = || PathPlan::new(PathConfig::symmetric(LinkConfig::default()));
    let rate = Rate::from_megabits_per_second(4);
    let common = PathConfig::symmetric(LinkConfig::default().with_rate(rate));
    let plan = NetworkPlan::new(1, [own(), own()]).through(PathPlan::new(common));
    let Some(network) = start(&plan, &Stop::default()) else { return };
    // Together 1.3 times the link's rate.
    let each = Rate::from_bits_per_second(2_600_000);
    let flow = |path| Datagrams { path, packet_bytes: 1_000, rate: each, time: Duration::from_secs(1) };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| flow(1).run(&network).expect("datagrams"));
        (flow(0).run(&network).expect("datagrams"), other.join().expect("no panic"))
    });
    assert_eq!((first.loss(), second.loss()), (0.0, 0.0));
    let all = || first.times.iter().chain(&second.times);
    let began = all().map(|(sent, _)| *sent).min().expect("some");
    let ended = all().map(|(_, received)| *received).max().expect("some");
    let least = rate.time_to_send(1_000 * all().count() as u64);
    assert!(ended.saturating_since(began) >= least.mul_f64(0.95), "faster than the link: {least:?}");
}

#[test]
fn waiting_code_stops_when_the_flag_is_set() {
    let stop = Stop::default();
    let Some(network) = start(&NetworkPlan::new(1, [PathPlan::new(path(4, 0.0))]), &stop) else { return };
    let server = BulkServer::start(&network, SocketPlan::default()).expect("a server");
    let request = Request { bytes: None, time: Duration::from_secs(600) };
    let endless = Download::start(&network, server.address(), SocketPlan::default(), request);
    stop.sleep(Duration::from_millis(300)).expect("the flag is not set yet");
    stop.set();
    assert_eq!(endless.join(), Err(TestbedError::Interrupted));
}

#[test]
fn a_program_ends_with_its_namespace_and_its_output_is_in_the_error() {
    let Some(network) = start(&NetworkPlan::new(1, [PathPlan::new(path(4, 0.0))]), &Stop::default()) else {
        return;
    };
    let words = |line: &str| vec!["-c".to_owned(), line.to_owned()];
    let mut failing =
        network.server.start(Path::new("/bin/sh"), &words("echo alas; exit 3")).expect("a shell");
    let found = network.wait_until("sh", Duration::from_secs(20), || failing.check().map(|()| false));
    let said = found.expect_err("it ends").to_string();
    assert!(said.contains("exit status: 3") && said.ends_with("alas"), "{said}");
    let staying = network.client.start(Path::new("/bin/sleep"), &["1000".to_owned()]).expect("a sleep");
    let process = format!("/proc/{}/stat", staying.id());
    // The network is dropped first, and with it the thread that is the program's parent: the kernel kills the program.
    drop(network);
    let is_running = || std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z "));
    for _ in 0..1_000 {
        if !is_running() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_running(), "it outlived its namespace");
}
