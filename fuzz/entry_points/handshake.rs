//! First packets, damaged or invented: the server's answers are never longer than the packets, and whatever it received
//! before, valid packets lead to a connection.

use core::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::crypto::FirstPacketKey;
use ctcp_proto::{
    ClientPolicy, Connection, ConnectionError, DatagramOutcome, Endpoint, EndpointConfig, Event, NetworkPath,
    SecretKey, TransportConfig,
};

use super::edits;

pub const NOW: Instant = Instant::from_secs(1);

pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => invented(rest),
        1 => damaged_initiate(rest),
        _ => damaged_response(rest),
    }
}

pub fn client_path() -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 2], 1000)) }
}

pub fn server_path() -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 1], 2000)) }
}

pub fn server() -> Endpoint {
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    Endpoint::new(config, [4; 32])
}

/// A client's connection and its first datagrams: an INITIATE and its part.
pub fn connecting() -> (Endpoint, Connection, Vec<Vec<u8>>) {
    let mut client = Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), [3; 32]);
    let server_key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) = client
        .connect(NOW, server_path().remote, server_key, TransportConfig::default())
        .expect("a valid configuration");
    let initiate = flight(&mut connection);
    assert_eq!(initiate.len(), 2, "a client offers ML-KEM");
    (client, connection, initiate)
}

/// What a connection sends now.
pub fn flight(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut buffer = Vec::new();
    core::iter::from_fn(|| connection.poll_transmit(NOW, &mut buffer).map(|_| buffer.clone())).collect()
}

/// Passes datagrams to a server and returns the connection, if one results.
pub fn give(server: &mut Endpoint, datagrams: &[Vec<u8>]) -> Option<Connection> {
    datagrams.iter().find_map(|datagram| match server.handle_datagram(NOW, client_path(), None, datagram) {
        DatagramOutcome::Incoming(incoming) => {
            server.accept(NOW, *incoming).map(|(_, connection)| connection)
        }
        DatagramOutcome::Answer(answer) => {
            assert!(answer.len() <= datagram.len(), "a stateless answer is longer than its packet");
            None
        }
        DatagramOutcome::Connection(_) | DatagramOutcome::Dropped(_) => None,
    })
}

fn invented(datagram: &[u8]) {
    let mut server = server();
    give(&mut server, &[datagram.to_vec()]);
    let (_, mut client, _) = connecting();
    client.handle_datagram(NOW, server_path(), None, &mut datagram.to_vec());
    while client.poll_event().is_some() {}
}

/// Damages one of two datagrams, which may get a valid tag, and may reverse them.
fn damaged(edits: &[u8], datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let Some((kind, edits)) = edits.split_first() else { return datagrams.to_vec() };
    let mut damaged = datagrams.to_vec();
    let count = damaged.len();
    edits::apply(edits, &mut damaged[usize::from(kind & 1) % count]);
    if kind & 2 != 0 {
        let key = FirstPacketKey::new(&SecretKey::from_bytes([2; 32]).public_key());
        key.write_tag(&mut damaged[usize::from(kind & 1) % count]);
    }
    if kind & 4 != 0 {
        damaged.reverse();
    }
    damaged
}

fn damaged_initiate(edits: &[u8]) {
    let mut server = server();
    let (_, _, initiate) = connecting();
    let damaged = damaged(edits, &initiate);
    let received: usize = damaged.iter().map(Vec::len).sum();
    if let Some(mut connection) = give(&mut server, &damaged) {
        let sent: usize = flight(&mut connection).iter().map(Vec::len).sum();
        assert!(sent <= 3 * received, "{sent} bytes answer {received}");
    }
    let is_known = server.connections() > 0;
    assert!(give(&mut server, &initiate).is_some() || is_known, "the valid first packets are refused");
}

fn damaged_response(edits: &[u8]) {
    let mut server = server();
    let (_, mut client, initiate) = connecting();
    let mut connection = give(&mut server, &initiate).expect("an open server accepts");
    let response = flight(&mut connection);
    for datagram in damaged(edits, &response[..2]).iter_mut().chain(&mut response.clone()) {
        client.handle_datagram(NOW, server_path(), None, datagram);
    }
    // A list of versions is not authenticated, so it may end the attempt.
    let is_ended = core::iter::from_fn(|| client.poll_event())
        .any(|event| matches!(event, Event::Closed(ConnectionError::VersionMismatch { .. })));
    assert!(client.is_connected() || is_ended, "a damaged answer prevented the valid one");
}
