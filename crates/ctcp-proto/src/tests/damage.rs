//! Damage to unsealed headers.

use core::time::Duration;

use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::{DatagramOutcome, NetworkPath, TransportConfig};

#[test]
fn a_damaged_source_id_in_the_header_of_a_response_does_not_end_the_handshake() {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let now = pair.now;
    let initiate = pair.client.first_flight(now);
    let from_client = NetworkPath { local: None, remote: pair.client.address };
    let outcomes = initiate
        .iter()
        .map(|datagram| pair.server.endpoint.handle_datagram(now, from_client, None, datagram));
    let outcome = outcomes.last().expect("datagrams");
    let DatagramOutcome::Incoming(incoming) = outcome else { panic!("{outcome:?}") };
    let (handle, connection) = pair.server.endpoint.accept(now, *incoming).expect("room");
    pair.server.connections.insert(handle, connection);

    let from_server = NetworkPath { local: None, remote: pair.server.address };
    for mut response in pair.server.first_flight(now) {
        // Flags, version, a length, the client's id of 8 bytes, and a length precede the server's id.
        response[15] ^= 0x10;
        pair.client_connection().handle_datagram(now, from_server, None, &mut response);
    }
    assert!(pair.client_connection().is_connected());
    let is_confirmed =
        |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == crate::Event::Connected);
    assert!(pair.run_until(Duration::from_secs(1), is_confirmed));
}
