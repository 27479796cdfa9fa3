//! The first flight of a client with a ticket, damaged: a server never sends more than three times what it received,
//! unless early data arrived whole, and the client's connection comes up with its data in the end.

use ctcp_proto::crypto::FirstPacketKey;
use ctcp_proto::{
    Connection, Endpoint, EndpointConfig, Event, ReadOutcome, SecretKey, Ticket, TransportConfig,
};

use super::edits;
use super::handshake::{NOW, client_path, flight, give, server, server_path};

/// Any first flight carries that much.
const EARLY: usize = 4_000;

pub fn run(data: &[u8]) {
    let Some((&[damage, kind, split], rest)) = data.split_first_chunk() else { return };
    let (edits, request) = rest.split_at(rest.len() * usize::from(split) / 256);
    let (mut client, mut server) = (client(), server());
    let ticket = first_visit(&mut client, &mut server);
    let remote = server_path().remote;
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) =
        client.connect_early(NOW, remote, key, transport(), &ticket).expect("a valid configuration");
    let id = connection.open().expect("the ticket allows streams");
    let written = connection.write(NOW, id, request).unwrap_or(0);
    if kind & 1 != 0 {
        connection.finish(id).expect("it is open");
    }
    let whole = flight(&mut connection);
    let mut damaged = whole.clone();
    let count = damaged.len();
    let place = usize::from(damage) % count;
    edits::apply(edits, &mut damaged[place]);
    if kind & 2 != 0 {
        FirstPacketKey::new(&key).write_tag(&mut damaged[place]);
    }
    if kind & 4 != 0 {
        damaged.swap(place, count - 1);
    }
    let mut accepted = give_all(&mut server, None, &damaged);
    if let Some(accepted) = &mut accepted
        && accepted.poll_event().is_none()
    {
        let received: usize = damaged.iter().map(Vec::len).sum();
        let sent: usize = flight(accepted).iter().map(Vec::len).sum();
        assert!(sent <= 3 * received, "{sent} bytes answer {received}");
    }
    let Some(mut accepted) = give_all(&mut server, accepted, &whole) else { return };
    converse(&mut connection, &mut accepted);
    assert!(connection.is_connected() && accepted.is_connected(), "damage ended the connection");
    // Time stands still, so what the pacer holds back does not arrive.
    let read = read_all(&mut accepted);
    assert!(request[..written].starts_with(&read), "what arrived is not what was written");
    assert!(read.len() >= written.min(EARLY), "early bytes are missing: {} of {written}", read.len());
}

fn client() -> Endpoint {
    Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), [3; 32])
}

fn transport() -> TransportConfig {
    TransportConfig { tickets: true, ..TransportConfig::default() }
}

/// Gives datagrams to a server and to the connection that results.
fn give_all(
    server: &mut Endpoint,
    mut accepted: Option<Connection>,
    datagrams: &[Vec<u8>],
) -> Option<Connection> {
    for datagram in datagrams {
        match &mut accepted {
            None => accepted = give(server, std::slice::from_ref(datagram)),
            Some(connection) => {
                connection.handle_datagram(NOW, client_path(), None, &mut datagram.clone());
            }
        }
    }
    accepted
}

fn converse(client: &mut Connection, server: &mut Connection) {
    for _ in 0..8 {
        for mut datagram in flight(server) {
            client.handle_datagram(NOW, server_path(), None, &mut datagram);
        }
        for mut datagram in flight(client) {
            server.handle_datagram(NOW, client_path(), None, &mut datagram);
        }
    }
}

fn first_visit(client: &mut Endpoint, server: &mut Endpoint) -> Ticket {
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let (_, mut connection) =
        client.connect(NOW, server_path().remote, key, transport()).expect("a valid configuration");
    let first = flight(&mut connection);
    let mut accepted = give_all(server, None, &first).expect("an open server accepts");
    converse(&mut connection, &mut accepted);
    connection.take_ticket().expect("a ticket")
}

fn read_all(connection: &mut Connection) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
    while connection.poll_event().is_some_and(|event| !matches!(event, Event::Closed(_))) {}
    if let Some(id) = connection.accept() {
        while let Ok(ReadOutcome::Data(count)) = connection.read(id, &mut buffer) {
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
    bytes
}
