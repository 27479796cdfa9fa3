//! What must not be guessed follows from entropy that is mixed in, and leaves no trace of what was drawn before.

use ctcp_base::Instant;

use crate::wire::{LongPacket, Peek, peek};
use crate::{Endpoint, EndpointConfig, SecretKey, TransportConfig};

const NOW: Instant = Instant::from_secs(1);

fn endpoint() -> Endpoint {
    Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), [3; 32])
}

/// The destination id and the ephemeral key of a new connection's first packet.
fn first_packet(endpoint: &mut Endpoint) -> (Vec<u8>, [u8; 32]) {
    let server = SecretKey::from_bytes([2; 32]).public_key();
    let remote = "192.0.2.2:2000".parse().expect("an address");
    let (_, mut connection) =
        endpoint.connect(NOW, remote, server, TransportConfig::default()).expect("a valid configuration");
    let mut datagram = Vec::new();
    connection.poll_transmit(NOW, &mut datagram).expect("an INITIATE");
    let Ok(Peek::Long { destination, .. }) = peek(&datagram, 0) else { panic!("no long header") };
    let Ok(LongPacket::Initiate { message, .. }) = LongPacket::parse(&datagram) else {
        panic!("no INITIATE")
    };
    (destination.to_vec(), *message.first_chunk().expect("an ephemeral key"))
}

#[test]
fn whoever_learns_the_seed_cannot_tell_what_is_drawn_after_entropy_was_mixed_in() {
    let (mut known, mut mixed, mut other) = (endpoint(), endpoint(), endpoint());
    assert_eq!(first_packet(&mut known), first_packet(&mut mixed), "reproducible from its seed");
    first_packet(&mut other);
    mixed.mix_entropy(&[7; 32]);
    other.mix_entropy(&[8; 32]);
    let drawn = [&mut known, &mut mixed, &mut other].map(first_packet);
    for (one, another) in [(0, 1), (0, 2), (1, 2)] {
        assert_ne!(drawn[one].0, drawn[another].0, "connection ids");
        assert_ne!(drawn[one].1, drawn[another].1, "ephemeral keys");
    }
}

#[test]
fn no_two_handshakes_share_an_ephemeral_key() {
    let mut endpoint = endpoint();
    let keys: std::collections::BTreeSet<[u8; 32]> = (0..50).map(|_| first_packet(&mut endpoint).1).collect();
    assert_eq!(keys.len(), 50);
}
