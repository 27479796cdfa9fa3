//! Attacks on the paths of a connection, by strangers and by the client itself.

use core::net::SocketAddr;
use core::time::Duration;

use super::several::{Conditions, Several};
use crate::wire::{AckRanges, Combination, Frame, PathAck};
use crate::{ConnectionError, ContextId, Event, NetworkPath, PathId, TransportConfig};

const PATHS: [Conditions; 2] = [Conditions::new(10.0, 20, 0.01), Conditions::new(10.0, 40, 0.01)];

fn with_ids() -> TransportConfig {
    TransportConfig { path_ids: true, ..TransportConfig::default() }
}

/// An acknowledgement of one packet of the second path.
fn acknowledgement(number: u64, delay: Duration) -> Frame<'static> {
    acknowledgement_of((number, number), delay)
}

/// An acknowledgement of all packets of the second path from the first of these numbers to the last.
fn acknowledgement_of(range: (u64, u64), delay: Duration) -> Frame<'static> {
    let ranges = AckRanges::from_descending([range]).expect("packet numbers");
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
    // One challenge at a time, sent again after a second at most: far below the limit of three times.
    assert!(received > 0 && received < sent / 3, "{received} bytes for {sent}");
    assert_eq!(several.server.as_ref().map(|server| server.stats().migrations), Some(0));
}

#[test]
fn a_spoofed_address_gets_at_most_three_times_what_came_from_it() {
    let mut several = Several::with_all_paths_of(&PATHS[..1], 9, with_ids());
    several.run(Duration::from_secs(1), |_| false);
    let challenges = [1, 2, 3, 4].map(|byte| Frame::PathChallenge([byte; 8]));
    let datagram = several.client.forge(several.now, &challenges);
    let sent = datagram.len();
    several.stranger = Some(stranger());
    several.receive_at_server(0, stranger(), datagram);
    // The client is silent, so that nothing shows that it is still where it was.
    several.is_suspended = true;
    several.run(Duration::from_secs(20), |_| false);
    let received = several.strangers_bytes.1;
    assert!(received > 0 && received <= 3 * sent, "{received} bytes for {sent}");
}

#[test]
fn an_announced_address_gets_data_at_once_and_at_most_three_times_what_came_from_it() {
    let mut several = Several::with_all_paths_of(&PATHS[..1], 9, with_ids());
    several.request(2_000_000);
    several.run(Duration::from_millis(500), |_| false);
    let announcement = [Frame::Ping, Frame::Padding(1_444)];
    let datagrams = [(); 2].map(|()| several.client.forge(several.now, &announcement));
    let sent: usize = datagrams.iter().map(Vec::len).sum();
    several.stranger = Some(stranger());
    several.is_suspended = true;
    datagrams.into_iter().for_each(|datagram| several.receive_at_server(0, stranger(), datagram));
    several.run(Duration::from_millis(5), |_| false);
    let at_once = several.strangers_bytes.1;
    several.run(Duration::from_secs(20), |_| false);
    let received = several.strangers_bytes.1;
    assert!(
        at_once > 2 * sent && received <= 3 * sent,
        "{at_once} bytes at once, {received} in all, for {sent}"
    );
}

#[test]
fn data_from_elsewhere_does_not_make_a_client_send_to_an_address_that_never_answered() {
    let mut several = Several::with_all_paths_of(&PATHS[..1], 10, with_ids());
    several.run(Duration::from_secs(1), |_| false);
    let local = Some(several.lines[0].client.ip());
    let victim = NetworkPath { local, remote: stranger() };
    let path = several.client.add_path(several.now, victim, 65).expect("room");
    let symbol = Combination::Source { index: 0, floor: 0, symbol: &[0; 300] };
    let data = Frame::Combination(ContextId::Streams, symbol);
    let mut datagram = several.server.as_mut().expect("connected").forge_on(path, &[data]);
    let servers = NetworkPath { local, remote: SocketAddr::from(([192, 0, 2, 2], 2000)) };
    several.client.handle_datagram(several.now, servers, None, &mut datagram);
    let validated: Vec<bool> = several.client.paths().iter().map(|path| path.is_validated).collect();
    assert_eq!(validated, [true, false]);
}

#[test]
fn paths_that_die_while_they_open_leave_no_place_taken_at_the_server() {
    let mut several = Several::with_config(&PATHS, 11, with_ids());
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    several.run(Duration::from_secs(1), |_| false);
    for round in 0..8 {
        several.add_path(1).expect("room");
        // The server hears of it, and is heard no more, or the client hears it and is heard no more.
        several.run(Duration::from_millis(if round < 4 { 30 } else { 50 }), |_| false);
        several.lines[1].is_cut = true;
        several.run(Duration::from_secs(40), |_| false);
        several.lines[1].is_cut = false;
        let of_server = several.server.as_ref().map(|server| server.paths().len());
        assert_eq!((several.client.paths().len(), of_server), (1, Some(1)), "round {round}");
    }
    let added = several.add_path(1).expect("room");
    let is_open = |several: &mut Several| several.client_events.contains(&Event::PathOpened(added));
    assert!(several.run(Duration::from_secs(5), is_open));
}

#[test]
fn a_stranger_who_repeats_the_first_packet_of_a_path_does_not_keep_it_from_opening() {
    let mut several = Several::with_config(&PATHS, 12, with_ids());
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    several.run(Duration::from_secs(1), |_| false);
    several.stranger = Some(stranger());
    let added = several.add_path(1).expect("room");
    several.run(Duration::from_millis(1), |_| false);
    several.stranger = None;
    let is_open = |several: &mut Several| several.client_events.contains(&Event::PathOpened(added));
    assert!(several.run(Duration::from_secs(5), is_open));
    several.download(100_000);
    let remotes: Vec<_> =
        several.server.iter().flat_map(|server| server.paths()).map(|path| path.remote).collect();
    assert_eq!(remotes, [several.lines[0].client, several.lines[1].client]);
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

/// Whether a server closes the connection at a frame of a client with two paths.
fn closes_at(frame: &Frame<'_>) -> bool {
    let mut several = Several::with_all_paths_of(&PATHS, 3, with_ids());
    several.run(Duration::from_millis(500), |_| false);
    let datagram = several.client.forge(several.now, core::slice::from_ref(frame));
    several.receive_at_server(0, several.lines[0].client, datagram);
    let server = several.server.as_mut().expect("connected");
    core::iter::from_fn(|| server.poll_event())
        .any(|event| matches!(event, Event::Closed(ConnectionError::PeerFault(_))))
}

#[test]
fn a_client_that_acknowledges_on_a_path_what_was_never_sent_there_is_closed() {
    assert!(closes_at(&acknowledgement(1_000_000, Duration::ZERO)));
    assert!(closes_at(&Frame::Arrived { path: PathId(1), largest: 1_000_000 }));
    assert!(closes_at(&Frame::Arrived { path: PathId(7), largest: 0 }), "a path that was never opened");
    assert!(!closes_at(&Frame::Arrived { path: PathId(1), largest: 0 }));
}

#[test]
fn a_client_that_claims_that_all_has_arrived_on_a_path_gets_its_data_all_the_same() {
    let mut several = Several::with_all_paths_of(&PATHS, 5, with_ids());
    several.run(Duration::from_millis(500), |_| false);
    several.request(1_000_000);
    let is_done = several.run(Duration::from_secs(20), |several| {
        let next = several.server.as_ref().and_then(|server| server.next_number(PathId(1)));
        if let Some(largest) = next.and_then(|next| next.checked_sub(1)) {
            let datagram = several.client.forge(several.now, &[Frame::Arrived { path: PathId(1), largest }]);
            several.receive_at_server(0, several.lines[0].client, datagram);
        }
        several.is_done()
    });
    assert!(is_done);
    let sent = several.server.as_ref().map_or(0, |server| server.stats().bytes_sent);
    assert!(sent < 2_000_000, "{sent} bytes for 1 MB");
}

#[test]
fn a_client_that_acknowledges_what_it_never_got_on_a_path_is_closed() {
    let lossy = [Conditions::new(10.0, 20, 0.01), Conditions::new(10.0, 40, 0.2)];
    for seed in 13..17 {
        let mut several = Several::with_all_paths_of(&lossy, seed, with_ids());
        several.run(Duration::from_millis(500), |_| false);
        several.request(20_000_000);
        let mut next = several.now;
        // Numbers that the server skipped show that the client cannot have seen all that it acknowledges.
        let is_closed = several.run(Duration::from_secs(10), |several| {
            let largest = several.client.largest_received(PathId(1));
            if let Some(largest) = largest.filter(|_| several.now >= next) {
                next = several.now + Duration::from_millis(5);
                let all = acknowledgement_of((0, largest.0), Duration::ZERO);
                let datagram = several.client.forge(several.now, &[all]);
                several.receive_at_server(0, several.lines[0].client, datagram);
            }
            several.server.as_ref().is_some_and(|server| !server.is_connected())
        });
        assert!(is_closed, "seed {seed}");
    }
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
    // Those of closed paths are retired, but for the last few.
    let open_at_client = several.routed_ids().0;
    assert!(open_at_client <= 1 + 3 + 2 * 4, "{open_at_client} ids lead to the client");
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
