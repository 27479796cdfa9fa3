//! Damage to unsealed headers.

use core::time::Duration;

use ctcp_netem::LinkConfig;

use super::pair::{Pair, Side};
use crate::{DatagramOutcome, NetworkPath, TransportConfig};

/// The first datagram that this side's first connection sends.
fn first_datagram(side: &mut Side, now: ctcp_base::Instant) -> Vec<u8> {
    let mut buffer = Vec::new();
    let connection = side.connections.values_mut().next().expect("a connection");
    connection.poll_transmit(now, &mut buffer).expect("a datagram");
    buffer
}

#[test]
fn a_damaged_source_id_in_the_header_of_a_response_does_not_end_the_handshake() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let now = pair.now;
    let initiate = first_datagram(&mut pair.client, now);
    let from_client = NetworkPath { local: None, remote: pair.client.address };
    let outcome = pair.server.endpoint.handle_datagram(now, from_client, None, &initiate);
    let DatagramOutcome::Incoming(incoming) = outcome else { panic!("{outcome:?}") };
    let (handle, connection) = pair.server.endpoint.accept(now, *incoming).expect("room");
    pair.server.connections.insert(handle, connection);

    let mut response = first_datagram(&mut pair.server, now);
    // Flags, version, a length, the client's id of 8 bytes, and a length precede the server's id.
    response[15] ^= 0x10;
    let from_server = NetworkPath { local: None, remote: pair.server.address };
    pair.client_connection().handle_datagram(now, from_server, None, &mut response);
    assert!(pair.client_connection().is_connected());
    let is_confirmed =
        |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == crate::Event::Connected);
    assert!(pair.run_until(Duration::from_secs(1), is_confirmed));
}
