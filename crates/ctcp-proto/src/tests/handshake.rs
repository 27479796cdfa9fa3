//! What unconfirmed clients can make a server do.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::crypto::FirstPacketKey;
use crate::wire::{LongPacket, RejectReason, VERSION};
use crate::{
    ClientPolicy, Connection, ConnectionError, DatagramOutcome, DropReason, Endpoint, EndpointConfig, Event,
    NetworkPath, PublicKey, RefusedClient, SecretKey, TransportConfig,
};

/// A server's half-open connection and the INITIATE that created it.
fn half_open() -> (Pair, Connection, Vec<u8>, NetworkPath) {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let now = pair.now;
    let network_path = NetworkPath { local: None, remote: pair.client.address };
    let mut initiate = pair.client.first_flight(now);
    let [_, part] = &initiate[..] else { panic!("an INITIATE and its part") };
    assert!(matches!(
        pair.server.endpoint.handle_datagram(now, network_path, None, &initiate[0]),
        DatagramOutcome::Dropped(DropReason::Incomplete)
    ));
    let outcome = pair.server.endpoint.handle_datagram(now, network_path, None, part);
    let DatagramOutcome::Incoming(incoming) = outcome else { panic!("a client: {outcome:?}") };
    let (_, connection) = pair.server.endpoint.accept(now, *incoming).expect("room");
    (pair, connection, initiate.swap_remove(0), network_path)
}

fn answers(connection: &mut Connection, now: Instant) -> usize {
    let mut buffer = Vec::new();
    let mut bytes = 0;
    while connection.poll_transmit(now, &mut buffer).is_some() {
        bytes += buffer.len();
    }
    bytes
}

#[test]
fn only_a_whole_initiate_triggers_the_response_again() {
    let (pair, mut connection, initiate, network_path) = half_open();
    let now = pair.now;
    assert!(answers(&mut connection, now) > 0, "the RESPONSE");
    for length in [1, 15, 40, 1199] {
        let mut short = initiate[..length].to_vec();
        connection.handle_datagram(now, network_path, None, &mut short);
        assert_eq!(answers(&mut connection, now), 0, "{length} bytes of an INITIATE");
    }
    let mut other = vec![0xff; 1200];
    connection.handle_datagram(now, network_path, None, &mut other);
    assert_eq!(answers(&mut connection, now), 0, "something long");
    connection.handle_datagram(now, network_path, None, &mut initiate.clone());
    let answer = answers(&mut connection, now);
    assert!((1..=2 * initiate.len()).contains(&answer), "{answer} bytes answer {}", initiate.len());
}

#[test]
fn a_repeated_initiate_reaches_the_connection_only_with_its_tag() {
    let (mut pair, _, mut initiate, network_path) = half_open();
    let mut outcome = |datagram: &[u8]| {
        let outcome = pair.server.endpoint.handle_datagram(pair.now, network_path, None, datagram);
        matches!(outcome, DatagramOutcome::Connection(_))
    };
    assert!(outcome(&initiate));
    *initiate.last_mut().expect("1200 bytes") ^= 1;
    assert!(!outcome(&initiate));
}

#[test]
fn connections_per_client_are_limited_until_one_closes() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    pair.server.endpoint = Endpoint::new(EndpointConfig { connections_per_client: 2, ..config }, [9; 32]);
    let handles: Vec<_> = (0..3).map(|_| pair.connect(TransportConfig::default())).collect();
    pair.run_until(Duration::from_secs(2), |_| false);
    let up: Vec<_> =
        handles.iter().filter(|handle| pair.client.connections[handle].is_connected()).copied().collect();
    assert_eq!(up.len(), 2, "all are half open at once, but only two are confirmed");
    let closed = pair.client.events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::ClosedByPeer(close)) => Some(close.clone()),
        _ => None,
    });
    let closed = closed.expect("one was closed");
    assert_eq!(closed.reason, "this client has as many connections as it may have");
    assert!(!closed.by_application);
    pair.connect(TransportConfig::default());
    pair.run_until(Duration::from_secs(2), |_| false);
    let refused = pair.client.events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::Refused { reason, .. }) => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(refused.as_deref(), Some("this client has as many connections as it may have"));
    for handle in &up[..1] {
        let now = pair.now;
        pair.client.connections.get_mut(handle).expect("it is up").close(now, 0, "");
    }
    pair.run_until(Duration::from_secs(10), |_| false);
    let fourth = pair.connect(TransportConfig::default());
    pair.run_until(Duration::from_secs(2), |_| false);
    assert!(pair.client.connections[&fourth].is_connected());
}

#[test]
fn relays_may_have_more_connections_than_other_clients() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    let relay = SecretKey::from_bytes([1; 32]).public_key();
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    let config = EndpointConfig { connections_per_client: 2, relays: [relay].into(), ..config };
    pair.server.endpoint = Endpoint::new(config, [9; 32]);
    let handles: Vec<_> = (0..5).map(|_| pair.connect(TransportConfig::default())).collect();
    pair.run_until(Duration::from_secs(2), |_| false);
    assert!(handles.iter().all(|handle| pair.client.connections[handle].is_connected()));
}

#[test]
fn both_versions_are_reported_if_they_differ() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let (now, network_path) = (pair.now, NetworkPath { local: None, remote: pair.client.address });
    let mut initiate = Vec::new();
    pair.client_connection().poll_transmit(now, &mut initiate).expect("an INITIATE");
    // A server of this version and a client of an older one.
    initiate[1..5].copy_from_slice(&0x4354_0001_u32.to_be_bytes());
    let outcome = pair.server.endpoint.handle_datagram(now, network_path, None, &initiate);
    let DatagramOutcome::Answer(mut answer) = outcome else { panic!("a list of versions: {outcome:?}") };
    assert_eq!(answer[answer.len() - 4..], VERSION.to_be_bytes());
    let refused = pair.server.endpoint.poll_refused().expect("one of another version");
    assert_eq!((refused, refused.key()), (RefusedClient::OtherVersion(0x4354_0001), None));
    assert!(refused.to_string().contains("speaks version 1 of the protocol and this server version 4"));
    // QUIC, noise, and numbers that no version of this protocol will have: answered, but not reported as clients.
    for version in [1_u32, 0x6b33_43cf, 0x4354_4242, 0x4354_0000] {
        let mut noise = initiate.clone();
        noise[1..5].copy_from_slice(&version.to_be_bytes());
        let outcome = pair.server.endpoint.handle_datagram(now, network_path, None, &noise);
        assert!(matches!(outcome, DatagramOutcome::Answer(_)), "{outcome:?}");
        assert_eq!(pair.server.endpoint.poll_refused(), None, "{version:#x}");
    }
    assert_eq!(pair.server.endpoint.stats().other_versions, 1);
    // A client of this version and a server of an older one.
    let end = answer.len();
    answer[end - 4..].copy_from_slice(&0x4354_0001_u32.to_be_bytes());
    let from_server = NetworkPath { local: None, remote: pair.server.address };
    pair.client_connection().handle_datagram(now, from_server, None, &mut answer);
    let error = ConnectionError::VersionMismatch { server: 0x4354_0001 };
    assert_eq!(pair.client_connection().poll_event(), Some(Event::Closed(error)));
}

#[test]
fn a_first_packet_for_another_server_costs_a_hash_and_is_rejected() {
    let (mut pair, _, mut initiate, network_path) = half_open();
    let now = pair.now;
    let other = SecretKey::from_bytes([9; 32]).public_key();
    FirstPacketKey::new(&other).write_tag(&mut initiate);
    // A different destination id, which belongs to no connection of the server.
    initiate[6] ^= 1;
    let mut told = || match pair.server.endpoint.handle_datagram(now, network_path, None, &initiate) {
        DatagramOutcome::Answer(answer) => Some(
            LongPacket::parse(&answer)
                .map(|packet| matches!(packet, LongPacket::Reject { reason: RejectReason::Unopened, .. })),
        ),
        _ => None,
    };
    assert_eq!(told(), Some(Ok(true)));
    let answers = (0..2_000).filter(|_| told().is_some()).count();
    assert!(answers < 500, "{answers} of 2000 answers to garbage within a second");
    assert_eq!(pair.server.endpoint.stats().cookies, 0);
}

#[test]
fn a_client_removed_from_the_list_is_closed_and_an_added_one_is_accepted() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    let (listed, other) = (SecretKey::from_bytes([1; 32]).public_key(), PublicKey([7; 32]));
    let put_out = pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(2), |pair| pair.client.connections[&put_out].is_connected()));
    pair.run_until(Duration::from_secs(1), |_| false);

    pair.server.endpoint.set_clients(ClientPolicy::Listed([listed, other].into()));
    assert!(pair.server.endpoint.poll_close().is_none(), "the client is still listed");
    pair.server.endpoint.set_clients(ClientPolicy::Listed([other].into()));
    pair.run_until(Duration::from_millis(200), |_| false);
    let why = pair.client.events.last().map(|(_, event)| event.clone());
    let Some(Event::Closed(ConnectionError::ClosedByPeer(close))) = why else { panic!("{why:?}") };
    assert_eq!(close.reason, "this client's public key is no longer on the server's list");

    pair.connect(TransportConfig::default());
    pair.run_until(Duration::from_secs(2), |_| false);
    let why = pair.client.events.last().map(|(_, event)| event.clone());
    assert!(matches!(why, Some(Event::Closed(ConnectionError::Refused { code: 1, .. }))), "{why:?}");
    assert_eq!(pair.server.endpoint.poll_refused(), Some(RefusedClient::Unlisted(listed)));

    pair.server.endpoint.set_clients(ClientPolicy::Any);
    let again = pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(2), |pair| pair.client.connections[&again].is_connected()));
}

#[test]
fn a_half_open_client_removed_from_the_list_is_never_confirmed() {
    let (mut pair, mut connection, ..) = half_open();
    pair.server.endpoint.set_clients(ClientPolicy::Listed([].into()));
    let (_, reason) = pair.server.endpoint.poll_close().expect("the half-open one");
    connection.close_for(pair.now, &reason);
    assert!(connection.is_closed() && answers(&mut connection, pair.now) == 0);
}
