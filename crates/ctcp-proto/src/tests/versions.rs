//! Forged version lists, and parameters that nobody knows.

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::Instant;
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::connection::{ClientHandshake, VERSIONS, client_parameters, is_downgraded};
use crate::crypto::random::SecretRng;
use crate::handshake::{Initiator, Responder};
use crate::id::ConnectionId;
use crate::wire::{LongHeader, LongPacket, Parameters, Reader, VERSION, is_reserved};
use crate::{
    ClientPolicy, Connection, ConnectionError, DatagramOutcome, Endpoint, EndpointConfig, Event, NetworkPath,
    SecretKey, TransportConfig,
};

const NOW: Instant = Instant::from_secs(1);
/// A version that does not exist yet.
const NEWER: u32 = VERSION + 1;

fn path(last: u8) -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, last], 1000)) }
}

/// A client that lists these versions and begins with [`VERSION`], as after a list that named no newer one. Also its INITIATE.
fn client(versions: &[u32]) -> (Connection, Vec<u8>) {
    let transport = TransportConfig { hybrid: false, ..TransportConfig::default() };
    let id = |byte| ConnectionId::new(&[byte; 8]).expect("8 bytes");
    let parameters = Parameters { versions: versions.to_vec(), ..client_parameters(&transport, id(7)) };
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let initiated =
        Initiator::start([3; 32], &SecretKey::from_bytes([1; 32]), &key, &bytes).expect("short parameters");
    let handshake = ClientHandshake::new(
        NOW,
        (initiated, None, SecretRng::new([4; 32])),
        parameters,
        id(9),
        (path(2).remote, key),
        Duration::from_secs(10),
    );
    let mut connection = Connection::client(NOW, transport, handshake);
    let mut initiate = Vec::new();
    connection.poll_transmit(NOW, &mut initiate).expect("an INITIATE");
    (connection, initiate)
}

/// The answer of a server that lists these versions.
fn answer(initiate: &[u8], versions: &[u32]) -> Vec<u8> {
    let Ok(LongPacket::Initiate { header, message, .. }) = LongPacket::parse(initiate) else {
        panic!("an INITIATE")
    };
    let (responder, _, parameters) =
        Responder::open([5; 32], &SecretKey::from_bytes([2; 32]), message).expect("an honest client");
    let client = Parameters::parse_from_client(&parameters).expect("valid");
    let own = Parameters { aead_suites: vec![1], versions: versions.to_vec(), ..client };
    let mut bytes = Vec::new();
    own.write(&mut bytes);
    let (message, _) = responder.answer(&bytes).expect("short parameters");
    let mut datagram = Vec::new();
    let header = LongHeader { destination: header.source, source: own.connection_id };
    LongPacket::Response { header, message: &message }.write(&mut datagram);
    datagram
}

/// How a handshake with [`VERSION`] ends for a client when both sides list these versions.
fn outcome(client_lists: &[u32], server_lists: &[u32]) -> Option<Event> {
    let (mut connection, initiate) = client(client_lists);
    connection.handle_datagram(NOW, path(2), None, &mut answer(&initiate, server_lists));
    connection.poll_event()
}

#[test]
fn two_newer_sides_do_not_speak_an_older_version() {
    assert_eq!(
        outcome(&[NEWER, VERSION], &[NEWER, VERSION]),
        Some(Event::Closed(ConnectionError::Downgraded))
    );
    for (at_client, at_server) in [
        (&[VERSION][..], &[VERSION][..]),
        (&[NEWER, VERSION], &[VERSION]),
        (&[VERSION], &[NEWER, VERSION]),
        (&[NEWER, VERSION], &[NEWER + 1, VERSION]),
        (&[VERSION, VERSION - 1], &[VERSION, VERSION - 1]),
    ] {
        assert_eq!(outcome(at_client, at_server), Some(Event::Connected), "{at_client:?} {at_server:?}");
    }
    assert!(is_downgraded(&[NEWER, VERSION], &[NEWER, VERSION]), "a newer server refuses, too");
    assert_eq!(VERSIONS, [VERSION]);
}

#[test]
fn a_server_accepts_clients_that_list_newer_versions() {
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    let mut server = Endpoint::new(config, [4; 32]);
    let (_, initiate) = client(&[NEWER, VERSION]);
    let outcome = server.handle_datagram(NOW, path(1), None, &initiate);
    assert!(matches!(outcome, DatagramOutcome::Incoming(_)), "{outcome:?}");
}

#[test]
fn clients_sometimes_send_a_reserved_parameter_and_servers_ignore_it() {
    let server = SecretKey::from_bytes([2; 32]);
    let mut with_one = 0;
    for seed in 0..40 {
        let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
        let config = EndpointConfig::client(SecretKey::from_bytes([1; 32]));
        pair.client.endpoint = Endpoint::new(config, [seed; 32]);
        pair.connect(TransportConfig::default());
        let now = pair.now;
        let flight = pair.client.first_flight(now);
        let Ok(LongPacket::Initiate { message, .. }) = LongPacket::parse(&flight[0]) else {
            panic!("an INITIATE")
        };
        let (_, _, parameters) = Responder::open([5; 32], &server, message).expect("an honest client");
        with_one += usize::from(ids(&parameters).iter().any(|&id| is_reserved(id)));
        assert!(pair.run_until(Duration::from_secs(1), |pair| pair.client_connection().is_connected()));
    }
    assert!((3..=20).contains(&with_one), "{with_one} of 40");
}

fn ids(parameters: &[u8]) -> Vec<u64> {
    let mut reader = Reader::new(parameters);
    let mut ids = Vec::new();
    while let Ok(id) = reader.varint() {
        ids.push(id);
        reader.prefixed().expect("a value");
    }
    ids
}
