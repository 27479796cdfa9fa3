//! Packets of a connection, damaged or invented: they change nothing, and the valid packet is still accepted.

use core::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::{Connection, NetworkPath, ReadOutcome};

use super::{edits, handshake};

const NOW: Instant = Instant::from_secs(1);

pub fn run(data: &[u8]) {
    let (mut client, mut server) = connected();
    let id = client.open().expect("streams are allowed");
    client.write(NOW, id, b"true").expect("the stream is open");
    let datagram = next_datagram(&mut client).expect("there is data to send");
    let mut damaged = datagram.clone();
    match data.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => edits::apply(rest, &mut damaged),
        _ => damaged = data.to_vec(),
    }
    if damaged != datagram {
        server.handle_datagram(NOW, from_client(), None, &mut damaged);
        assert!(server.is_connected() && server.accept().is_none(), "a damaged packet was accepted");
    }
    server.handle_datagram(NOW, from_client(), None, &mut datagram.clone());
    assert_eq!(server.accept(), Some(id));
    let mut read = [0; 8];
    assert_eq!(server.read(id, &mut read), Ok(ReadOutcome::Data(4)));
}

fn from_client() -> NetworkPath {
    NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 2], 1000)) }
}

fn next_datagram(connection: &mut Connection) -> Option<Vec<u8>> {
    let mut datagram = Vec::new();
    connection.poll_transmit(NOW, &mut datagram).map(|_| datagram)
}

/// Both ends of an established connection, with nothing left to send.
fn connected() -> (Connection, Connection) {
    let mut endpoint = handshake::server();
    let (_, mut client, initiate) = handshake::connecting();
    let mut server = handshake::give(&mut endpoint, &initiate).expect("an open server accepts");
    let to_client = NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 1], 2000)) };
    loop {
        let mut is_silent = true;
        while let Some(mut datagram) = next_datagram(&mut server) {
            is_silent = false;
            client.handle_datagram(NOW, to_client, None, &mut datagram);
        }
        while let Some(mut datagram) = next_datagram(&mut client) {
            is_silent = false;
            server.handle_datagram(NOW, from_client(), None, &mut datagram);
        }
        if is_silent {
            assert!(client.is_connected() && server.is_connected());
            return (client, server);
        }
    }
}
