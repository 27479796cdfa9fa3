//! Attacks on the paths of a connection, by strangers and by the client itself.

use core::net::SocketAddr;
use core::time::Duration;

use super::several::{Conditions, Several};
use crate::wire::{AckRanges, Frame, PathAck};
use crate::{ConnectionError, Event, PathId, TransportConfig};

const PATHS: [Conditions; 2] = [Conditions::new(10.0, 20, 0.01), Conditions::new(10.0, 40, 0.01)];

fn with_ids() -> TransportConfig {
    TransportConfig { path_ids: true, ..TransportConfig::default() }
}

/// An acknowledgement of one packet of the second path.
fn acknowledgement(number: u64, delay: Duration) -> Frame<'static> {
    let ranges = AckRanges::from_descending([(number, number)]).expect("a packet number");
    Frame::PathAck(PathAck { path: PathId(1), ranges, delay, ecn: None })
}

fn stranger() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 9], 666))
}

#[test]
fn a_stranger_who_repeats_packets_first_neither_moves_the_connection_nor_gets_more_than_it_sends() {
    let mut several = Several::with_all_paths_of(&PATHS, 1, with_ids());
    several.run(Duration::from_millis(500), |_| false);
    several.stranger = Some(stranger());
    several.download(2_000_000);
    let remotes: Vec<_> =
        several.server.iter().flat_map(|server| server.paths()).map(|path| path.remote).collect();
    let clients: Vec<_> = several.lines.iter().map(|line| line.client).collect();
    assert_eq!(remotes, clients);
    let (sent, received) = several.strangers_bytes;
    // One challenge at a time, sent again after a second at most: far below the limit.
    assert!(received > 0 && received < sent / 3, "{received} bytes for {sent}");
    assert_eq!(several.server.as_ref().map(|server| server.stats().migrations), Some(0));
}

#[test]
fn old_packets_repeated_from_elsewhere_have_no_effect() {
    let mut several = Several::with_all_paths_of(&PATHS, 2, with_ids());
    several.run(Duration::from_millis(500), |_| false);
    let now = several.now;
    let frames = [Frame::PathChallenge([1; 8]), Frame::PathResponse([2; 8]), Frame::PathPreference(1)];
    let recorded = several.client.forge(now, &frames);
    several.receive_at_server(0, several.lines[0].client, recorded.clone());
    several.download(200_000);
    let before = several.server.as_ref().map(|server| (server.paths().len(), server.stats().migrations));
    for _ in 0..100 {
        several.receive_at_server(0, stranger(), recorded.clone());
        several.receive_at_server(1, several.lines[1].client, recorded.clone());
    }
    several.download(200_000);
    let after = several.server.as_ref().map(|server| (server.paths().len(), server.stats().migrations));
    assert_eq!((before, after), (Some((2, 0)), Some((2, 0))));
}

#[test]
fn a_client_that_acknowledges_on_a_path_what_was_never_sent_there_is_closed() {
    let mut several = Several::with_all_paths_of(&PATHS, 3, with_ids());
    several.run(Duration::from_millis(500), |_| false);
    let datagram = several.client.forge(several.now, &[acknowledgement(1_000_000, Duration::ZERO)]);
    several.receive_at_server(0, several.lines[0].client, datagram);
    let server = several.server.as_mut().expect("connected");
    let is_closed = core::iter::from_fn(|| server.poll_event())
        .any(|event| matches!(event, Event::Closed(ConnectionError::PeerFault(_))));
    assert!(is_closed);
}

#[test]
fn a_client_that_lies_about_the_delay_of_a_path_does_not_keep_the_other_one_from_working() {
    for (seed, lie) in [(6, Duration::ZERO), (7, Duration::from_secs(1)), (8, Duration::from_secs(1 << 40))] {
        let mut several = Several::with_all_paths_of(&PATHS, seed, with_ids());
        several.run(Duration::from_millis(500), |_| false);
        several.request(4_000_000);
        let (begun, mut next) = (several.now, several.now);
        let is_done = several.run(Duration::from_secs(60), |several| {
            let largest = several.client.largest_received(PathId(1));
            if let Some(largest) = largest.filter(|_| several.now >= next) {
                next = several.now + Duration::from_millis(5);
                let datagram = several.client.forge(several.now, &[acknowledgement(largest.0, lie)]);
                several.receive_at_server(0, several.lines[0].client, datagram);
            }
            several.is_done()
        });
        let rate = 4_000_000.0 * 8e-6 / (several.now - begun).as_secs_f64();
        assert!(is_done && rate > 8.0, "{rate} Mbit/s with a claimed delay of {lie:?}");
    }
}

#[test]
fn each_path_has_connection_ids_of_its_own_also_after_many_changes() {
    let conditions = [Conditions::new(10.0, 20, 0.05); 4];
    let mut several = Several::with_all_paths_of(&conditions, 4, with_ids());
    several.download(500_000);
    for round in 0..40 {
        let line = 1 + round % 3;
        let local = Some(several.lines[line].client.ip());
        let open = several.client.paths().into_iter().find(|path| path.local == local).expect("an open path");
        several.client.abandon_path(open.id).expect("another path works");
        let added = several.add_path(line).expect("room");
        let is_open = |several: &mut Several| several.client_events.contains(&Event::PathOpened(added));
        assert!(several.run(Duration::from_secs(20), is_open), "round {round}");
        several.download(20_000);
    }
    for (index, line) in several.lines.iter().enumerate() {
        for (other_index, other) in several.lines.iter().enumerate().skip(index + 1) {
            let shared: Vec<_> = line.ids.intersection(&other.ids).collect();
            assert!(shared.is_empty(), "lines {index} and {other_index} share {shared:?}");
        }
    }
    // Both directions have an id for each path: one for the handshake's, a dozen for the others.
    assert_eq!(several.lines[0].ids.len(), 2);
    assert!(several.lines[1].ids.len() >= 20, "{}", several.lines[1].ids.len());
}

#[test]
fn without_an_exchange_all_paths_have_the_ids_of_the_handshake() {
    let mut several = Several::with_all_paths(&PATHS, 5);
    several.download(500_000);
    assert_eq!(several.lines[0].ids.len(), 2);
    assert_eq!(several.lines[0].ids, several.lines[1].ids);
}
