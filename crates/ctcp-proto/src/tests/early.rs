//! Tickets and early data: what a returning client gains, and what nobody can do with it.

use core::time::Duration;

use ctcp_base::{Instant, Probability};
use ctcp_netem::{LinkConfig, LossModel};

use super::pair::Pair;
use crate::crypto::Ticket;
use crate::error::ConnectionError;
use crate::handshake::HALF_OPEN_LIFETIME;
use crate::wire::LongPacket;
use crate::{
    ConnectionHandle, DatagramOutcome, Endpoint, EndpointConfig, Event, NetworkPath, ReadOutcome, SecretKey,
    StreamId, TransportConfig,
};

const ROUND_TRIP: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

fn transport() -> TransportConfig {
    TransportConfig { tickets: true, ..TransportConfig::default() }
}

/// A network whose client has visited the server once and got a ticket.
fn visited(loss: f64, seed: u64) -> (Pair, Ticket) {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let link = LinkConfig { delay: ROUND_TRIP / 2, loss, ..LinkConfig::default() };
    let mut pair = Pair::new(link, TransportConfig::default(), seed);
    let handle = pair.connect(transport());
    let mut ticket = None;
    assert!(pair.run_until(Duration::from_secs(20), |pair| {
        let connection = pair.client.connections.get_mut(&handle).expect("the connection");
        ticket = connection.take_ticket();
        ticket.is_some()
    }));
    end_visit(&mut pair, handle);
    (pair, ticket.expect("a ticket"))
}

/// Closes the client's connection and forgets both sides of it.
fn end_visit(pair: &mut Pair, handle: ConnectionHandle) {
    let now = pair.now;
    pair.client.connections.get_mut(&handle).expect("the connection").close(now, 0, "");
    pair.run_until(Duration::from_secs(60), |_| false);
    assert!(pair.server.connections.values().all(|connection| connection.poll_timeout().is_none()));
    pair.client.connections.clear();
    pair.server.connections.clear();
    pair.client.events.clear();
    pair.server.events.clear();
}

/// Begins another visit and writes `data` at once.
fn return_with(pair: &mut Pair, ticket: &Ticket, data: &[u8]) -> (ConnectionHandle, StreamId) {
    let (handle, mut connection) = pair
        .client
        .endpoint
        .connect_early(pair.now, pair.server.address, pair.server_key, transport(), ticket)
        .expect("a valid configuration");
    let id = connection.open().expect("the ticket allows streams");
    assert_eq!(connection.write(pair.now, id, data), Ok(data.len()));
    pair.client.connections.insert(handle, connection);
    (handle, id)
}

/// Everything that the server has received on its newest connection's first stream.
fn read_at_server(pair: &mut Pair, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4_096];
    let Some(connection) = pair.server.connections.values_mut().next_back() else { return false };
    if !pair.server.events.iter().any(|(_, event)| *event == Event::Connected) {
        return false;
    }
    let id = StreamId(0);
    while connection.accept().is_some() {}
    while let Ok(ReadOutcome::Data(count)) = connection.read(id, &mut buffer) {
        into.extend_from_slice(&buffer[..count]);
    }
    false
}

/// The time from now until the client has an answer of 8 kB to its request.
fn time_of_answer(pair: &mut Pair, handle: ConnectionHandle, id: StreamId) -> Duration {
    let (begin, mut request, mut answer) = (pair.now, Vec::new(), 0);
    let mut is_answered = false;
    assert!(pair.run_until(Duration::from_secs(20), |pair| {
        read_at_server(pair, &mut request);
        if request == REQUEST && !is_answered {
            let connection = pair.server.connections.values_mut().next_back().expect("it was read");
            assert_eq!(connection.write(pair.now, StreamId(0), &[7; 8_000]), Ok(8_000));
            is_answered = true;
        }
        let connection = pair.client.connections.get_mut(&handle).expect("the connection");
        let mut buffer = [0; 4_096];
        while let Ok(ReadOutcome::Data(count)) = connection.read(id, &mut buffer) {
            answer += count;
        }
        answer == 8_000
    }));
    assert_eq!(request, REQUEST, "it arrived once");
    pair.now - begin
}

#[test]
fn a_returning_client_has_its_answer_after_one_round_trip() {
    let (mut pair, ticket) = visited(0.0, 1);
    let (handle, id) = return_with(&mut pair, &ticket, REQUEST);
    let early = time_of_answer(&mut pair, handle, id);
    assert!(early >= ROUND_TRIP && early < ROUND_TRIP.mul_f64(1.2), "{early:?}");
    end_visit(&mut pair, handle);
    // The same without a ticket.
    let handle = pair.connect(transport());
    let begin = pair.now;
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client_connection().is_connected()));
    let connected = pair.now;
    let id = pair.client_connection().open().expect("a stream");
    assert_eq!(pair.client_connection().write(connected, id, REQUEST), Ok(REQUEST.len()));
    time_of_answer(&mut pair, handle, id);
    let late = pair.now - begin;
    assert!(late >= 2 * ROUND_TRIP && late < ROUND_TRIP.mul_f64(2.2), "{late:?}");
}

#[test]
fn with_losses_the_answer_comes_later_but_comes_whole() {
    let mut times = Vec::new();
    for seed in 0..20 {
        let (mut pair, ticket) = visited(0.2, seed);
        let (handle, id) = return_with(&mut pair, &ticket, REQUEST);
        times.push(time_of_answer(&mut pair, handle, id));
    }
    times.sort_unstable();
    assert!(times[10] < 4 * ROUND_TRIP, "{times:?}");
}

#[test]
fn what_does_not_fit_into_the_first_flight_follows_the_handshake() {
    let (mut pair, ticket) = visited(0.0, 1);
    let data: Vec<u8> = (0..16_000_u32).map(|byte| byte as u8).collect();
    let (handle, id) = return_with(&mut pair, &ticket, &data);
    let connection = pair.client.connections.get_mut(&handle).expect("the connection");
    connection.finish(id).expect("it was open");
    let flight = pair.client.first_flight(pair.now);
    let is_early = |datagram: &&Vec<u8>| matches!(LongPacket::parse(datagram), Ok(LongPacket::Early { .. }));
    assert_eq!(flight.iter().filter(is_early).count(), 4);
    assert!(flight.iter().all(|datagram| datagram.len() <= 1_200));
    let mut received = Vec::new();
    pair.run_until(Duration::from_secs(2), |pair| read_at_server(pair, &mut received));
    assert!(received == data, "{} of {} bytes", received.len(), data.len());
}

#[test]
fn early_data_of_several_writes_and_streams_arrives_in_order() {
    let (mut pair, ticket) = visited(0.0, 1);
    let (handle, first) = return_with(&mut pair, &ticket, b"one ");
    let connection = pair.client.connections.get_mut(&handle).expect("the connection");
    let second = connection.open().expect("another stream");
    connection.write(pair.now, second, b"other").expect("room");
    connection.write(pair.now, first, b"two").expect("room");
    connection.finish(second).expect("it was open");
    while connection.open().is_ok() {}
    let mut received = Vec::new();
    // Before the server can have anything else.
    pair.run_until(ROUND_TRIP.mul_f64(0.6), |pair| read_at_server(pair, &mut received));
    assert_eq!(received, b"one two");
    let server = pair.server.connections.values_mut().next_back().expect("a connection");
    let mut buffer = [0; 100];
    assert_eq!(server.read(second, &mut buffer), Ok(ReadOutcome::Data(5)));
    assert_eq!(server.read(second, &mut buffer), Ok(ReadOutcome::Finished));
    pair.run_until(Duration::from_secs(1), |_| false);
    assert!(pair.client_connection().is_connected());
}

/// Delivers datagrams to an endpoint as coming from `remote`. Returns whether an application would have got anything.
fn replay(server: &mut Endpoint, now: Instant, remote: core::net::SocketAddr, flight: &[Vec<u8>]) -> bool {
    let path = NetworkPath { local: None, remote };
    let mut connections = std::collections::BTreeMap::new();
    for datagram in flight {
        match server.handle_datagram(now, path, None, datagram) {
            DatagramOutcome::Incoming(incoming) => {
                if let Some((handle, connection)) = server.accept(now, *incoming) {
                    connections.insert(handle, connection);
                }
            }
            DatagramOutcome::Connection(handle) => {
                let Some(connection) = connections.get_mut(&handle) else { continue };
                connection.handle_datagram(now, path, None, &mut datagram.clone());
            }
            DatagramOutcome::Answer(_) | DatagramOutcome::Dropped(_) => {}
        }
    }
    connections.values_mut().any(|connection| connection.poll_event().is_some())
}

#[test]
fn a_recorded_first_flight_has_an_effect_once_and_only_from_its_address() {
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    let flight = pair.client.first_flight(pair.now);
    assert_eq!(flight.len(), 3);
    let (now, client) = (pair.now, pair.client.address);
    let elsewhere = "198.51.100.7:4000".parse().expect("an address");
    let server = &mut pair.server.endpoint;
    assert!(!replay(server, now, elsewhere, &flight), "another address");
    // The same first message is half open for a while.
    let later = now + Duration::from_secs(60);
    server.handle_timeout(later);
    assert!(replay(server, later, client, &flight), "the first time");
    let later = later + Duration::from_secs(60);
    server.handle_timeout(later);
    assert!(!replay(server, later, client, &flight), "the second time");
    let mut restarted = {
        let listed = [SecretKey::from_bytes([1; 32]).public_key()].into_iter().collect();
        let config =
            EndpointConfig::server(SecretKey::from_bytes([2; 32]), crate::ClientPolicy::Listed(listed));
        Endpoint::new(config, [99; 32])
    };
    assert!(!replay(&mut restarted, later, client, &flight), "a server that was restarted");
}

#[test]
fn a_ticket_of_another_client_or_a_spent_one_only_costs_the_round_trip() {
    let (mut pair, ticket) = visited(0.0, 1);
    for _ in 0..2 {
        let (handle, id) = return_with(&mut pair, &ticket, REQUEST);
        time_of_answer(&mut pair, handle, id);
        end_visit(&mut pair, handle);
    }
    let (handle, id) = return_with(&mut pair, &ticket, REQUEST);
    let time = time_of_answer(&mut pair, handle, id);
    assert!(time >= 2 * ROUND_TRIP && time < ROUND_TRIP.mul_f64(2.2), "{time:?}");
    let fresh = pair.client.connections.get_mut(&handle).and_then(crate::Connection::take_ticket);
    let fresh = fresh.expect("each visit gives a ticket");
    end_visit(&mut pair, handle);
    // Someone else, whom the server also knows, has stolen it.
    let other = SecretKey::from_bytes([5; 32]);
    pair.server.endpoint.set_clients(crate::ClientPolicy::Any);
    let mut thief = Endpoint::new(EndpointConfig::client(other), [6; 32]);
    let (_, mut connection) = thief
        .connect_early(pair.now, pair.server.address, pair.server_key, transport(), &fresh)
        .expect("a valid configuration");
    let id = connection.open().expect("a stream");
    connection.write(pair.now, id, REQUEST).expect("room");
    let mut buffer = Vec::new();
    let now = pair.now;
    let flight: Vec<Vec<u8>> =
        core::iter::from_fn(|| connection.poll_transmit(now, &mut buffer).map(|_| buffer.clone())).collect();
    let client = pair.client.address;
    assert!(!replay(&mut pair.server.endpoint, now, client, &flight));
    // For its owner it is still good.
    let (handle, id) = return_with(&mut pair, &fresh, REQUEST);
    let time = time_of_answer(&mut pair, handle, id);
    assert!(time < ROUND_TRIP.mul_f64(1.2), "{time:?}");
}

#[test]
fn forged_early_data_is_ignored_and_a_malformed_symbol_of_the_client_ends_its_connection() {
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    let flight = pair.client.first_flight(pair.now);
    let (now, client) = (pair.now, pair.client.address);
    let mut forged = flight.clone();
    let Ok(LongPacket::Early { header, .. }) = LongPacket::parse(&flight[2]) else { panic!("early data") };
    for (index, sealed) in [(0, vec![0; 100]), (3, vec![1; 1_100]), (255, vec![]), (1, vec![0; 16])] {
        let mut datagram = Vec::new();
        LongPacket::Early { header, index, sealed: &sealed }.write(&mut datagram);
        crate::crypto::FirstPacketKey::new(&pair.server_key).write_tag(&mut datagram);
        forged.insert(2, datagram);
    }
    forged.pop();
    assert!(!replay(&mut pair.server.endpoint, now, client, &forged));
    // What the client itself sealed, but malformed.
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    let mut flight = pair.client.first_flight(pair.now);
    let Ok(LongPacket::Early { header, .. }) = LongPacket::parse(&flight[2]) else { panic!("early data") };
    let Ok(LongPacket::Initiate { message, .. }) = LongPacket::parse(&flight[0]) else { panic!("INITIATE") };
    let sealed = ticket.early_key(message).seal(1, vec![0, 9, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut datagram = Vec::new();
    LongPacket::Early { header, index: 1, sealed: &sealed }.write(&mut datagram);
    crate::crypto::FirstPacketKey::new(&pair.server_key).write_tag(&mut datagram);
    flight.push(datagram);
    assert!(replay(&mut pair.server.endpoint, pair.now, pair.client.address, &flight));
}

#[test]
fn a_client_that_sends_early_data_and_never_returns_is_forgotten() {
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    let flight = pair.client.first_flight(pair.now);
    pair.client.connections.clear();
    let (now, path) = (pair.now, NetworkPath { local: None, remote: pair.client.address });
    for mut datagram in flight {
        match pair.server.endpoint.handle_datagram(now, path, None, &datagram) {
            DatagramOutcome::Incoming(incoming) => {
                let (handle, connection) = pair.server.endpoint.accept(now, *incoming).expect("accepted");
                pair.server.connections.insert(handle, connection);
            }
            DatagramOutcome::Connection(_) => {
                pair.server_connection().expect("a connection").handle_datagram(
                    now,
                    path,
                    None,
                    &mut datagram,
                );
            }
            DatagramOutcome::Answer(_) | DatagramOutcome::Dropped(_) => {}
        }
    }
    let now = pair.now;
    let connection = pair.server_connection().expect("a connection");
    assert_eq!(connection.poll_event(), Some(Event::Connected));
    let id = connection.accept().expect("the stream");
    connection.write(now, id, &[1; 50_000]).expect("room");
    pair.run_until(Duration::from_secs(120), |_| false);
    assert!(pair.server_connection().expect("a connection").is_closed());
    assert_eq!(pair.server.endpoint.connections(), 0);
}

#[test]
fn a_handshake_whose_early_data_had_its_effect_is_not_begun_again() {
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    // Every answer is lost until the server has forgotten the handshake, but the client still tries.
    pair.drops = Some((false, |_| true));
    let mut received = Vec::new();
    pair.run_until(HALF_OPEN_LIFETIME + 2 * ROUND_TRIP, |pair| read_at_server(pair, &mut received));
    assert_eq!(received, REQUEST);
    pair.server.connections.clear();
    pair.server.events.clear();
    pair.drops = None;
    pair.run_until(Duration::from_secs(20), |pair| read_at_server(pair, &mut received));
    assert_eq!(received, REQUEST, "it would send everything again");
}

#[test]
fn a_server_can_close_a_connection_of_which_it_has_only_early_data() {
    let (mut pair, ticket) = visited(0.0, 1);
    return_with(&mut pair, &ticket, REQUEST);
    assert!(pair.run_until(ROUND_TRIP, |pair| !pair.server.events.is_empty()));
    let now = pair.now;
    pair.server_connection().expect("a connection").close(now, 7, "no");
    pair.run_until(ROUND_TRIP, |_| false);
    let is_told = |event: &Event| matches!(event, Event::Closed(ConnectionError::ClosedByPeer(close)) if close.code == 7);
    assert!(pair.client.events.iter().any(|(_, event)| is_told(event)), "{:?}", pair.client.events);
}

#[test]
fn a_ticket_promises_no_more_than_the_server_allows() {
    let visit = |server: TransportConfig| {
        let mut pair = Pair::new(LinkConfig::default(), server, 1);
        let handle = pair.connect(transport());
        pair.run_until(Duration::from_secs(2), |_| false);
        let ticket = pair.client_connection().take_ticket();
        end_visit(&mut pair, handle);
        (pair, ticket)
    };
    let (mut pair, ticket) = visit(TransportConfig { streams: 2, ..TransportConfig::default() });
    let (handle, _) = return_with(&mut pair, &ticket.expect("a ticket"), REQUEST);
    let connection = pair.client.connections.get_mut(&handle).expect("the connection");
    assert!(connection.open().is_ok() && connection.open().is_err());
    pair.run_until(Duration::from_secs(2), |_| false);
    assert!(pair.client_connection().is_connected(), "{:?}", pair.client.events);
    for server in [
        TransportConfig { streams: 0, ..TransportConfig::default() },
        TransportConfig { stream_credit: 1_000, ..TransportConfig::default() },
        TransportConfig { connection_credit: 1_000, ..TransportConfig::default() },
    ] {
        assert_eq!(visit(server).1, None);
    }
}

#[test]
fn a_stream_reset_during_the_handshake_has_the_same_final_size_on_both_sides() {
    for wait in [Duration::ZERO, ROUND_TRIP / 4, ROUND_TRIP.mul_f64(0.9)] {
        let (mut pair, ticket) = visited(0.0, 1);
        let (handle, id) = return_with(&mut pair, &ticket, REQUEST);
        pair.run_until(wait, |_| false);
        pair.client.connections.get_mut(&handle).expect("the connection").reset(id, 9).expect("it exists");
        pair.run_until(Duration::from_secs(2), |_| false);
        assert!(pair.client_connection().is_connected(), "{wait:?}: {:?}", pair.client.events);
        // The connection's credit still counts alike.
        let next = pair.client_connection().open().expect("another stream");
        let mut rest = 300_000;
        assert!(pair.run_until(Duration::from_secs(30), |pair| {
            let now = pair.now;
            while rest > 0 {
                let Ok(count) = pair.client_connection().write(now, next, &[1; 10_000][..rest.min(10_000)])
                else {
                    break;
                };
                rest -= count;
            }
            let server = pair.server.connections.values_mut().next_back().expect("a connection");
            while server.accept().is_some() {}
            let mut buffer = [0; 4_096];
            while let Ok(ReadOutcome::Data(_)) = server.read(next, &mut buffer) {}
            rest == 0
        }));
        assert!(pair.client_connection().is_connected());
    }
}

#[test]
fn nobody_gets_a_ticket_without_asking() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    pair.run_until(Duration::from_secs(2), |_| false);
    assert!(pair.client_connection().is_connected() && pair.client_connection().take_ticket().is_none());
}

#[test]
fn a_ticket_that_was_lost_comes_again() {
    for seed in 0..10 {
        visited(0.3, seed);
    }
}
