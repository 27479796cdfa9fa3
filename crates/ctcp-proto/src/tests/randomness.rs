//! Unpredictable values depend on entropy that is mixed in. They reveal neither earlier nor later values.

mod observer;

use core::time::Duration;

use ctcp_base::{Instant, Prng};
use ctcp_netem::LinkConfig;

use super::pair::Pair;
use crate::wire::{LongPacket, Peek, peek};
use crate::{Endpoint, EndpointConfig, ReadOutcome, SecretKey, TransportConfig};

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
fn a_known_seed_does_not_reveal_values_after_entropy_was_mixed_in() {
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

/// Number of values that an observer sees before predicting the next ones.
const SEEN: usize = 16_384;
const NEXT: usize = 8;

/// The values that a client sees of its server's generator while its address keeps changing: challenges, and between them values that
/// decide which packet number is skipped.
fn draws_of_a_server(count: usize) -> Vec<Option<u64>> {
    let mut pair = Pair::new(LinkConfig::default(), TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client_connection().is_connected()));
    let stream = pair.client_connection().open().expect("a stream");
    let (mut draws, mut last) = (Vec::new(), (None, None));
    for port in (1_001..2_000).cycle() {
        pair.client.address.set_port(port);
        let now = pair.now;
        pair.client_connection().write(now, stream, b"I moved").expect("room");
        let mut is_asked = false;
        let has_moved = pair.run_until(Duration::from_secs(5), |pair| {
            let Some((challenge, left_out)) = pair.server_connection().and_then(|server| server.drawn())
            else {
                return false;
            };
            let is_new = challenge.is_some() && challenge != last.0;
            let is_left_out = left_out != last.1;
            last = (challenge.or(last.0), left_out);
            // If both are new, their order is unknown.
            draws.extend(is_new.then_some(challenge.filter(|_| !is_left_out)));
            draws.extend(is_left_out.then_some(None));
            is_asked |= is_new;
            is_asked && challenge.is_none()
        });
        assert!(has_moved, "port {port}");
        let server = pair.server_connection().expect("it is up");
        while let Ok(ReadOutcome::Data(_)) = server.read(stream, &mut [0; 100]) {}
        if draws.len() >= count {
            break;
        }
    }
    draws.truncate(count);
    draws
}

#[test]
fn values_of_xoshiro_reveal_the_next_ones() {
    let mut prng = Prng::new(0x00c0_ffee);
    let draws: Vec<u64> = (0..SEEN + NEXT).map(|_| prng.next_u64()).collect();
    let seen: Vec<_> =
        draws[..SEEN].iter().enumerate().map(|(index, draw)| (index % 300 != 0).then_some(*draw)).collect();
    assert_eq!(observer::next_draws(&seen, NEXT).as_deref(), Some(&draws[SEEN..]));
}

#[test]
fn challenges_of_a_server_do_not_reveal_the_next_ones() {
    let seen = draws_of_a_server(SEEN);
    let different: std::collections::BTreeSet<_> = seen.iter().flatten().collect();
    assert!(different.len() > SEEN - SEEN / 20, "{} challenges", different.len());
    assert_eq!(observer::next_draws(&seen, NEXT), None);
}
