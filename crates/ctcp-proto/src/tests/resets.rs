//! Stateless resets of a server that does not know a connection.

use core::time::Duration;

use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::{
    ClientPolicy, ConnectionError, DatagramOutcome, Endpoint, EndpointConfig, Event, NetworkPath, SecretKey,
    TransportConfig,
};

fn connected() -> Pair {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let is_up = |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == Event::Connected);
    assert!(pair.run_until(Duration::from_secs(1), is_up));
    pair.run_until(Duration::from_secs(1), |_| false);
    pair
}

/// A server with the same key as that of the pair, but without its connections.
fn another_server() -> Endpoint {
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    Endpoint::new(config, [99; 32])
}

/// Returns a packet of the client.
fn packet_of_client(pair: &mut Pair) -> Vec<u8> {
    let now = pair.now;
    let connection = pair.client_connection();
    let id = connection.open().expect("a stream");
    connection.write(now, id, b"hello").expect("room");
    let mut datagram = Vec::new();
    connection.poll_transmit(now, &mut datagram).expect("a packet");
    datagram
}

/// Delivers a datagram from the server's address to the client.
fn give_client(pair: &mut Pair, mut datagram: Vec<u8>) {
    let (now, path) = (pair.now, NetworkPath { local: None, remote: pair.server.address });
    if let DatagramOutcome::Connection(_) = pair.client.endpoint.handle_datagram(now, path, None, &datagram) {
        pair.client_connection().handle_datagram(now, path, None, &mut datagram);
    }
}

/// The error with which the client's connection closed, if it has.
fn end_of_client(pair: &mut Pair) -> Option<ConnectionError> {
    core::iter::from_fn(|| pair.client_connection().poll_event()).find_map(|event| match event {
        Event::Closed(error) => Some(error),
        _ => None,
    })
}

#[test]
fn a_second_server_with_the_same_key_does_not_reveal_the_reset_token() {
    let mut pair = connected();
    let seen = packet_of_client(&mut pair);
    let attackers = NetworkPath { local: None, remote: "198.51.100.7:4000".parse().expect("an address") };
    let DatagramOutcome::Answer(reset) = another_server().handle_datagram(pair.now, attackers, None, &seen)
    else {
        panic!("a server answers a packet of an unknown connection")
    };
    give_client(&mut pair, reset);
    assert_eq!(end_of_client(&mut pair), None);
    // The answer to the client's own packet is a reset that the client accepts.
    let clients = NetworkPath { local: None, remote: pair.client.address };
    let DatagramOutcome::Answer(reset) = another_server().handle_datagram(pair.now, clients, None, &seen)
    else {
        panic!("an answer")
    };
    give_client(&mut pair, reset);
    assert_eq!(end_of_client(&mut pair), Some(ConnectionError::Reset));
}

#[test]
fn a_client_that_moved_recognises_the_reset_of_a_restarted_server() {
    let mut pair = connected();
    pair.client.address = "203.0.113.9:1234".parse().expect("an address");
    let now = pair.now;
    let id = pair.client_connection().open().expect("a stream");
    pair.client_connection().write(now, id, b"from elsewhere").expect("room");
    pair.run_until(Duration::from_secs(2), |_| false);
    assert!(pair.now > now && pair.server_connection().is_some_and(|one| one.stats().migrations == 1));
    pair.server.endpoint = another_server();
    pair.server.connections.clear();
    let now = pair.now;
    pair.client_connection().write(now, id, b"are you there?").expect("room");
    pair.run_until(Duration::from_secs(2), |_| false);
    let end = pair.client.events.iter().find_map(|(_, event)| match event {
        Event::Closed(error) => Some(error.clone()),
        _ => None,
    });
    assert_eq!(end, Some(ConnectionError::Reset));
}

#[test]
fn a_suspended_client_times_out_instead_of_reporting_a_reset() {
    let mut pair = connected();
    // The server sends a packet that waits in the client's socket, and then times out.
    let mut waiting = Vec::new();
    let now = pair.now;
    let server = pair.server_connection().expect("it is up");
    let id = server.open().expect("a stream");
    server.write(now, id, b"news").expect("room");
    server.poll_transmit(now, &mut waiting).expect("a packet");
    pair.now += TransportConfig::default().idle_timeout + Duration::from_secs(5);
    let late = pair.now;
    pair.server_connection().expect("it is there").handle_timeout(late);
    assert!(pair.server_connection().is_some_and(|server| server.is_closed()));
    pair.server.endpoint = another_server();
    // The client resumes. It reads its socket first, and its next packet triggers a reset.
    give_client(&mut pair, waiting);
    let clients = NetworkPath { local: None, remote: pair.client.address };
    if let Ok(id) = pair.client_connection().open() {
        let now = pair.now;
        pair.client_connection().write(now, id, b"hello").expect("room");
    }
    let mut datagram = Vec::new();
    while pair.client_connection().poll_transmit(late, &mut datagram).is_some() {
        if let DatagramOutcome::Answer(answer) =
            pair.server.endpoint.handle_datagram(late, clients, None, &datagram)
        {
            give_client(&mut pair, answer);
        }
    }
    assert_eq!(end_of_client(&mut pair), Some(ConnectionError::TimedOut));
}
