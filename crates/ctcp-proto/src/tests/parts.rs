//! Handshakes whose messages have a part in a second datagram: lost, reordered, forged, contradicting and missing ones.

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::{Instant, Prng};
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::crypto::FirstPacketKey;
use crate::handshake::HALF_OPEN_LIFETIME;
use crate::handshake::half_open::COOKIE_THRESHOLD;
use crate::wire::{LongPacket, PART_LENGTH};
use crate::{
    ClientPolicy, Connection, DatagramOutcome, DropReason, Endpoint, EndpointConfig, NetworkPath, SecretKey,
    TransportConfig,
};

const NOW: Instant = Instant::from_secs(1);

fn from(address: [u8; 4]) -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from((address, 1000)) }
}

fn server() -> Endpoint {
    Endpoint::new(EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any), [4; 32])
}

/// A client's connection with its INITIATE and the part, made from this seed.
fn client(seed: u32) -> (Connection, [Vec<u8>; 2]) {
    let mut bytes = [3; 32];
    bytes[..4].copy_from_slice(&seed.to_be_bytes());
    let mut endpoint = Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), bytes);
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) =
        endpoint.connect(NOW, from([192, 0, 2, 2]).remote, key, TransportConfig::default()).expect("valid");
    let flight = flight(&mut connection, NOW);
    (connection, flight.try_into().expect("two datagrams"))
}

fn flight(connection: &mut Connection, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = Vec::new();
    core::iter::from_fn(|| connection.poll_transmit(now, &mut buffer).map(|_| buffer.clone())).collect()
}

/// Gives a server datagrams from one client. Returns its connection, if one results.
fn give(server: &mut Endpoint, path: NetworkPath, datagrams: &[&Vec<u8>]) -> Option<Connection> {
    datagrams.iter().find_map(|datagram| match server.handle_datagram(NOW, path, None, datagram) {
        DatagramOutcome::Incoming(incoming) => {
            server.accept(NOW, *incoming).map(|(_, connection)| connection)
        }
        _ => None,
    })
}

const HERE: [u8; 4] = [192, 0, 2, 1];

#[test]
fn both_orders_and_any_repetition_lead_to_one_connection() {
    let (_, [initiate, part]) = &client(1);
    for order in [
        &[initiate, part][..],
        &[part, initiate],
        &[initiate, initiate, part],
        &[part, part, initiate],
        &[initiate, part, initiate, part],
    ] {
        let mut server = server();
        assert!(give(&mut server, from(HERE), order).is_some());
        assert_eq!((server.connections(), server.stats().half_open), (1, 1));
    }
}

#[test]
fn either_datagram_may_be_lost_and_the_next_flight_completes_it() {
    for lost in 0..2 {
        let (mut connection, first) = client(1);
        let mut server = server();
        assert!(give(&mut server, from(HERE), &[&first[1 - lost]]).is_none());
        let again = flight(&mut connection, NOW + Duration::from_millis(50));
        assert_eq!(again, first, "the same bytes");
        assert!(give(&mut server, from(HERE), &[&again[lost]]).is_some(), "the lost one is enough");
    }
}

#[test]
fn the_parts_of_the_answer_may_come_in_any_order_and_from_different_copies() {
    for order in [[0, 1], [1, 0], [0, 3], [3, 0], [1, 2]] {
        let (mut connection, [initiate, part]) = client(1);
        let mut at_server = give(&mut server(), from(HERE), &[&initiate, &part]).expect("a connection");
        let answer = flight(&mut at_server, NOW);
        assert_eq!(answer.len(), 4, "two copies of two datagrams");
        assert!(answer.iter().map(Vec::len).sum::<usize>() <= 3 * (initiate.len() + part.len()));
        for index in order {
            assert!(!connection.is_connected());
            connection.handle_datagram(NOW, from([192, 0, 2, 2]), None, &mut answer[index].clone());
        }
        assert!(connection.is_connected() && connection.is_hybrid() && at_server.is_hybrid());
    }
}

#[test]
fn a_repeated_datagram_is_never_answered_with_three_times_its_bytes() {
    let (_, both) = client(1);
    let mut at_server = give(&mut server(), from(HERE), &[&both[0], &both[1]]).expect("a connection");
    flight(&mut at_server, NOW);
    for datagram in both {
        at_server.handle_datagram(NOW, from(HERE), None, &mut datagram.clone());
        let answer: usize = flight(&mut at_server, NOW).iter().map(Vec::len).sum();
        assert!((1..=3 * datagram.len()).contains(&answer), "{answer} bytes answer {}", datagram.len());
        // From another address it is not answered at all.
        at_server.handle_datagram(NOW, from([192, 0, 2, 9]), None, &mut datagram.clone());
        assert!(flight(&mut at_server, NOW).is_empty());
    }
}

#[test]
fn other_parts_with_the_same_ids_neither_complete_a_handshake_nor_prevent_it() {
    let (_, [initiate, part]) = client(1);
    let key = FirstPacketKey::new(&SecretKey::from_bytes([2; 32]).public_key());
    let Ok(LongPacket::InitiatePart { header, .. }) = LongPacket::parse(&part) else { panic!("a part") };
    let forged: Vec<Vec<u8>> = (0..20)
        .map(|index| {
            let mut datagram = Vec::new();
            LongPacket::InitiatePart { header, part: &[index; PART_LENGTH] }.write(&mut datagram);
            key.write_tag(&mut datagram);
            datagram
        })
        .collect();
    let all: Vec<&Vec<u8>> = forged.iter().collect();
    for before in [true, false] {
        let mut server = server();
        let (first, then) =
            if before { (&all[..], vec![&initiate, &part]) } else { (&[&initiate][..], vec![&part]) };
        assert!(give(&mut server, from(HERE), first).is_none());
        assert!(give(&mut server, from(HERE), &all).is_none());
        assert!(give(&mut server, from(HERE), &then).is_some());
    }
}

#[test]
fn a_part_of_another_handshake_or_address_or_without_tag_does_not_count() {
    let ((_, [initiate, part]), (_, [_, other])) = (client(1), client(2));
    let mut server = server();
    assert!(give(&mut server, from(HERE), &[&initiate, &other]).is_none());
    assert!(give(&mut server, from([192, 0, 2, 9]), &[&part]).is_none());
    let mut untagged = part.clone();
    *untagged.last_mut().expect("bytes") ^= 1;
    for length in [0, 1, 40, 600, part.len() - 1] {
        assert!(give(&mut server, from(HERE), &[&part[..length].to_vec(), &untagged]).is_none());
    }
    assert!(give(&mut server, from(HERE), &[&part]).is_some());
}

#[test]
fn a_forged_or_short_part_of_the_answer_does_not_prevent_the_valid_one() {
    let (mut connection, [initiate, part]) = client(1);
    let mut at_server = give(&mut server(), from(HERE), &[&initiate, &part]).expect("a connection");
    let answer = flight(&mut at_server, NOW);
    let (response, ciphertext) = (&answer[0], &answer[1]);
    let mut forged = ciphertext.clone();
    forged[500] ^= 1;
    let short = ciphertext[..ciphertext.len() - 1].to_vec();
    let long = [ciphertext.clone(), vec![0]].concat();
    for datagram in [&forged, response, &forged, &short, &long, response] {
        connection.handle_datagram(NOW, from([192, 0, 2, 2]), None, &mut datagram.clone());
        assert!(!connection.is_connected());
    }
    connection.handle_datagram(NOW, from([192, 0, 2, 2]), None, &mut ciphertext.clone());
    assert!(connection.is_connected());
}

#[test]
fn dropping_the_parts_ends_in_a_time_out_and_not_in_a_classical_handshake() {
    for to_server in [true, false] {
        let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
        pair.drops = Some((to_server, |datagram| {
            matches!(
                LongPacket::parse(datagram),
                Ok(LongPacket::InitiatePart { .. } | LongPacket::ResponsePart { .. })
            )
        }));
        pair.connect(TransportConfig::default());
        let is_over = |pair: &mut Pair| pair.client_connection().is_closed();
        assert!(pair.run_until(Duration::from_secs(20), is_over));
        assert!(!pair.server.events.iter().any(|(_, event)| *event == crate::Event::Connected));
        pair.run_until(Duration::from_secs(20), |_| false);
        pair.server.endpoint.handle_timeout(pair.now + Duration::from_secs(60));
        assert_eq!(pair.server.endpoint.stats().half_open, 0);
    }
}

#[test]
fn a_side_without_ml_kem_connects_classically_and_both_know() {
    for (at_client, at_server) in [(true, true), (true, false), (false, true), (false, false)] {
        let transport = |hybrid| TransportConfig { hybrid, ..TransportConfig::default() };
        let mut pair = Pair::new(LinkConfig::default(), transport(at_server), 1);
        pair.connect(transport(at_client));
        let is_up =
            |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == crate::Event::Connected);
        assert!(pair.run_until(Duration::from_secs(1), is_up));
        let expected = at_client && at_server;
        assert_eq!(pair.client_connection().is_hybrid(), expected);
        assert_eq!(pair.server_connection().map(|server| server.is_hybrid()), Some(expected));
    }
}

#[test]
fn a_handshake_passes_a_path_of_1232_bytes() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.datagram_size_max = 1_232;
    pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_millis(100), |pair| pair.client_connection().is_connected()));
}

/// Gives a server this many first packets within half a second, each from a network of its own. Returns the number of cookies.
fn flood(server: &mut Endpoint, datagrams: &[[Vec<u8>; 2]], count: u32, with: usize) -> usize {
    let mut prng = Prng::new(7);
    (0..count)
        .filter(|&index| {
            let path = from(prng.next_u64().to_be_bytes()[..4].try_into().expect("4 bytes"));
            let now = NOW + Duration::from_secs(1) / 2 * index / count;
            let datagram = &datagrams[index as usize % datagrams.len()][with];
            let outcome = server.handle_datagram(now, path, None, datagram);
            assert!(!matches!(outcome, DatagramOutcome::Incoming(_)));
            matches!(outcome, DatagramOutcome::Answer(_))
        })
        .count()
}

#[test]
fn initiates_without_their_parts_from_spoofed_addresses_hold_bounded_state_and_a_newcomer_is_served() {
    let replayed: Vec<_> = (10..2_010).map(|seed| client(seed).1).collect();
    let mut server = server();
    let cookies = flood(&mut server, &replayed, 20_000, 0);
    let (waiting, half_open) = (server.connections(), server.stats().half_open);
    assert_eq!(waiting, half_open);
    assert!(waiting <= COOKIE_THRESHOLD, "{waiting} wait");
    assert!(cookies > 15_000, "the others got {cookies} cookies");
    // A newcomer needs one round trip more.
    let (mut connection, both) = client(1);
    let now = NOW + Duration::from_millis(500);
    let DatagramOutcome::Answer(mut cookie) = server.handle_datagram(now, from(HERE), None, &both[0]) else {
        panic!("a COOKIE")
    };
    connection.handle_datagram(now, from([192, 0, 2, 2]), None, &mut cookie);
    let again = flight(&mut connection, now);
    let outcome = server.handle_datagram(now, from(HERE), None, &again[0]);
    assert!(matches!(outcome, DatagramOutcome::Dropped(DropReason::Incomplete)), "{outcome:?}");
    assert!(give(&mut server, from(HERE), &[&again[1]]).is_some());
    server.handle_timeout(now + HALF_OPEN_LIFETIME);
    assert_eq!(server.stats().half_open, 0);
    assert_eq!(server.connections(), 1, "only the newcomer's place is left, which its connection frees");
}

#[test]
fn parts_without_initiates_hold_bounded_state_and_keep_nobody_out() {
    let stray: Vec<_> = (10..110).map(|seed| client(seed).1).collect();
    let mut server = server();
    assert_eq!(flood(&mut server, &stray, 20_000, 1), 0, "no answers");
    assert_eq!((server.connections(), server.stats().half_open), (0, 0));
    let (_, [initiate, part]) = client(1);
    assert!(give(&mut server, from(HERE), &[&part, &initiate]).is_some(), "even reordered");
}

#[test]
fn a_replayed_handshake_never_becomes_a_connection() {
    let (_, [initiate, part]) = client(1);
    let mut server = server();
    let first = give(&mut server, from(HERE), &[&initiate, &part]);
    assert!(first.is_some());
    // While it is half open, a replay from elsewhere is ignored.
    let elsewhere = from([198, 51, 100, 1]);
    assert!(give(&mut server, elsewhere, &[&initiate, &part]).is_none());
    let outcome = server.handle_datagram(NOW, elsewhere, None, &initiate);
    assert!(matches!(outcome, DatagramOutcome::Dropped(DropReason::Limited)), "{outcome:?}");
    // Later it causes a RESPONSE that nobody can use, with other keys.
    server.handle_timeout(NOW + HALF_OPEN_LIFETIME);
    let mut again = give(&mut server, elsewhere, &[&initiate, &part]).expect("half open");
    let mut first = first.expect("a connection");
    assert_ne!(flight(&mut first, NOW), flight(&mut again, NOW));
    let confirmed = core::iter::from_fn(|| again.poll_event()).count();
    assert_eq!(confirmed, 0);
}

#[test]
fn a_server_forgets_a_waiting_client_that_is_no_longer_listed() {
    let (_, [initiate, part]) = client(1);
    let mut server = server();
    assert!(give(&mut server, from(HERE), &[&initiate]).is_none());
    server.set_clients(ClientPolicy::Listed([].into()));
    assert!(give(&mut server, from(HERE), &[&part]).is_none());
    assert_eq!((server.connections(), server.stats().half_open), (0, 0));
}
