//! First packets, damaged or invented: the server's answers are never longer than the packets, and whatever it received
//! before, valid packets lead to a connection.

use core::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::{
    ClientPolicy, Connection, ConnectionError, DatagramOutcome, Endpoint, EndpointConfig, Event, NetworkPath,
    SecretKey, TransportConfig,
};

use super::edits;

const NOW: Instant = Instant::from_secs(1);

pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => invented(rest),
        1 => damaged_initiate(rest),
        _ => damaged_response(rest),
    }
}

fn client_path() -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 2], 1000)) }
}

fn server_path() -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 1], 2000)) }
}

pub fn server() -> Endpoint {
    let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
    Endpoint::new(config, [4; 32])
}

/// A client's connection and its first datagram.
pub fn connecting() -> (Endpoint, Connection, Vec<u8>) {
    let mut client = Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), [3; 32]);
    let server_key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) = client
        .connect(NOW, server_path().remote, server_key, TransportConfig::default())
        .expect("a valid configuration");
    let mut initiate = Vec::new();
    connection.poll_transmit(NOW, &mut initiate).expect("a client sends first");
    (client, connection, initiate)
}

/// Passes a datagram to a server and returns the connection, if one results.
pub fn give(server: &mut Endpoint, datagram: &[u8]) -> Option<Connection> {
    match server.handle_datagram(NOW, client_path(), None, datagram) {
        DatagramOutcome::Incoming(incoming) => {
            server.accept(NOW, *incoming).map(|(_, connection)| connection)
        }
        DatagramOutcome::Answer(answer) => {
            assert!(answer.len() <= datagram.len(), "a stateless answer is longer than its packet");
            None
        }
        DatagramOutcome::Connection(_) | DatagramOutcome::Dropped(_) => None,
    }
}

fn invented(datagram: &[u8]) {
    let mut server = server();
    give(&mut server, datagram);
    let (_, mut client, _) = connecting();
    client.handle_datagram(NOW, server_path(), None, &mut datagram.to_vec());
    while client.poll_event().is_some() {}
}

fn damaged_initiate(edits: &[u8]) {
    let mut server = server();
    let (_, _, initiate) = connecting();
    let mut damaged = initiate.clone();
    edits::apply(edits, &mut damaged);
    if let Some(mut connection) = give(&mut server, &damaged) {
        let mut response = Vec::new();
        while connection.poll_transmit(NOW, &mut response).is_some() {
            assert!(response.len() <= damaged.len());
        }
    }
    let is_known = server.connections() > 0;
    assert!(give(&mut server, &initiate).is_some() || is_known, "the valid first packet is refused");
}

fn damaged_response(edits: &[u8]) {
    let mut server = server();
    let (_, mut client, initiate) = connecting();
    let mut connection = give(&mut server, &initiate).expect("an open server accepts");
    let mut response = Vec::new();
    connection.poll_transmit(NOW, &mut response).expect("a server answers");
    let mut damaged = response.clone();
    edits::apply(edits, &mut damaged);
    client.handle_datagram(NOW, server_path(), None, &mut damaged);
    client.handle_datagram(NOW, server_path(), None, &mut response);
    // A list of versions is not authenticated, so it may end the attempt.
    let is_ended = core::iter::from_fn(|| client.poll_event())
        .any(|event| matches!(event, Event::Closed(ConnectionError::VersionMismatch { .. })));
    assert!(client.is_connected() || is_ended, "a damaged answer prevented the valid one");
}
