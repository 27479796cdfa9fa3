//! The memory budget of all connections: clients that use up their share are refused, and others are served.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::ContextId;
use crate::connection::Connection;
use crate::wire::{Combination, Frame};
use crate::{
    ClientPolicy, ConnectionError, ConnectionHandle, DatagramOutcome, Endpoint, EndpointConfig, Event,
    NetworkPath, ReadOutcome, RefusedClient, SecretKey, StreamId, TransportConfig,
};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 48 * MIB;
const KEYS: u8 = 12;
const CONNECTIONS_PER_KEY: usize = 3;
const STREAMS: usize = 20;

/// Writes as much as possible on some streams.
fn write_everything(now: Instant, connection: &mut Connection) {
    let data = vec![7; 1 << 16];
    let streams: Vec<StreamId> = core::iter::from_fn(|| connection.open().ok()).take(STREAMS).collect();
    for id in streams {
        while connection.write(now, id, &data).is_ok() {}
    }
}

fn is_refused(pair: &Pair, handle: ConnectionHandle) -> bool {
    let told = |event: &Event| matches!(event, Event::Closed(ConnectionError::Refused { reason, .. }) if reason.contains("memory"));
    pair.client.events.iter().any(|(of, event)| *of == handle && told(event))
}

/// Opens another connection of the client; none if the server has no memory for it.
fn connect(pair: &mut Pair) -> Option<ConnectionHandle> {
    let handle = pair.connect(TransportConfig::default());
    pair.run_until(Duration::from_secs(1), |pair| {
        is_refused(pair, handle) || pair.client.connections[&handle].is_connected()
    });
    (!is_refused(pair, handle)).then_some(handle)
}

/// A server with little memory and an application that does not read.
fn server(pair: &mut Pair) {
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    pair.server.endpoint = Endpoint::new(EndpointConfig { memory: BUDGET, ..config }, [9; 32]);
}

/// Replaces the client side by another client.
fn become_client(pair: &mut Pair, key: u8) {
    pair.client.connections.clear();
    pair.client.events.clear();
    let config = EndpointConfig::client(SecretKey::from_bytes([100 + key; 32]));
    pair.client.endpoint = Endpoint::new(config, [100 + key; 32]);
}

/// Bytes of the clients' data that the server holds.
fn held(pair: &Pair) -> u64 {
    pair.server.connections.values().map(|connection| connection.received_bytes_held() as u64).sum()
}

#[test]
fn clients_that_use_up_their_memory_are_refused_and_the_next_one_is_served() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    server(&mut pair);
    let (mut refused, mut up) = (0, 0);
    for key in 0..KEYS {
        become_client(&mut pair, key);
        for _ in 0..CONNECTIONS_PER_KEY {
            let Some(handle) = connect(&mut pair) else {
                refused += 1;
                continue;
            };
            up += 1;
            let now = pair.now;
            let connection = pair.client.connections.get_mut(&handle).expect("it is up");
            write_everything(now, connection);
            pair.run_until(Duration::from_millis(300), |_| false);
            let memory = pair.server.endpoint.stats().memory;
            assert!(memory <= BUDGET, "{memory} bytes accounted for");
            assert!(held(&pair) <= memory, "{} bytes held, {memory} accounted for", held(&pair));
        }
    }
    assert!(up >= usize::from(KEYS) && refused > 0, "{up} connections, {refused} refused");
    let last = pair.server.endpoint.poll_refused();
    let Some(RefusedClient::NoRoom { reason, .. }) = last else { panic!("{last:?}") };
    assert!(reason.contains("no memory"), "{reason}");
    assert!(held(&pair) > BUDGET / 8, "{} bytes", held(&pair));

    become_client(&mut pair, KEYS);
    let handle = pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(1), |pair| pair.client.connections[&handle].is_connected()));
    let id = pair.client_connection().open().expect("streams are allowed");
    let mut left = 500_000;
    let newest = *pair.server.connections.keys().next_back().expect("its connection");
    let mut read = 0;
    let done = pair.run_until(Duration::from_secs(5), |pair| {
        let now = pair.now;
        let written = pair.client_connection().write(now, id, &vec![1; left.min(10_000)]).unwrap_or(0);
        left -= if left > 0 { written } else { 0 };
        let connection = pair.server.connections.get_mut(&newest).expect("its connection");
        let _ = connection.accept();
        let mut buffer = [0; 10_000];
        while let Ok(ReadOutcome::Data(count)) = connection.read(id, &mut buffer) {
            read += count;
        }
        read == 500_000
    });
    assert!(done, "{read} bytes of the new client were read");
}

/// Symbols after one that never arrives fill the decoder without using any credit.
#[test]
fn symbols_that_wait_for_others_stay_within_the_memory() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    server(&mut pair);
    let mut clients = Vec::new();
    for key in 0..KEYS {
        become_client(&mut pair, key);
        for _ in 0..CONNECTIONS_PER_KEY {
            let Some(handle) = connect(&mut pair) else { continue };
            pair.run_until(Duration::from_millis(5), |_| false);
            let newest = *pair.server.connections.keys().next_back().expect("its connection");
            clients.push((newest, pair.client.connections.remove(&handle).expect("it is up")));
        }
    }
    assert!(clients.len() >= usize::from(KEYS), "{} connections", clients.len());
    let (now, path) = (pair.now, NetworkPath { local: None, remote: pair.client.address });
    for (handle, client) in &mut clients {
        let connection = pair.server.connections.get_mut(handle).expect("it is up");
        for index in 1..connection.own_window().min(3_000) {
            let mut datagram = client.forge(
                now,
                &[Frame::Combination(
                    ContextId::Streams,
                    Combination::Source { index, floor: 0, symbol: &[0; 1_100] },
                )],
            );
            connection.handle_datagram(now, path, None, &mut datagram);
        }
        assert!(connection.is_connected());
    }
    let memory = pair.server.endpoint.stats().memory;
    assert!(memory <= BUDGET, "{memory} bytes of {BUDGET}");
}

/// First packets can come from any address.
#[test]
fn half_open_connections_take_little_memory() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    server(&mut pair);
    let mut half_open = Vec::new();
    for key in 0..100_u8 {
        become_client(&mut pair, key);
        pair.connect(TransportConfig::default());
        let (now, path) = (pair.now, NetworkPath { local: None, remote: pair.client.address });
        let initiate = pair.client.first_flight(now);
        let outcomes =
            initiate.iter().map(|datagram| pair.server.endpoint.handle_datagram(now, path, None, datagram));
        let Some(DatagramOutcome::Incoming(incoming)) = outcomes.last() else { break };
        let Some((_, mut connection)) = pair.server.endpoint.accept(now, *incoming) else { break };
        let mut buffer = Vec::new();
        while connection.poll_transmit(now, &mut buffer).is_some() {}
        half_open.push(connection);
    }
    let memory = pair.server.endpoint.stats().memory;
    assert!(
        half_open.len() > 30 && memory < half_open.len() as u64 * 64 * 1024,
        "{memory} for {}",
        half_open.len()
    );
}
