//! Tests of sealing and opening. Those of key updates are in [`phases`].

mod phases;

use proptest::prelude::*;

use super::*;
use crate::crypto::derive::expand;
use crate::crypto::reset::{RESET_MIN, ResetToken, is_reset};

const DESTINATION: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const CLIENT_SECRET: [u8; 32] = counting(0);
const SERVER_SECRET: [u8; 32] = counting(32);

const fn counting(from: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = from + index as u8;
        index += 1;
    }
    bytes
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn pair(suite: Suite) -> (PacketProtection, PacketProtection) {
    pair_with_limits(suite, KeyLimits::of(suite))
}

fn pair_with_limits(suite: Suite, limits: KeyLimits) -> (PacketProtection, PacketProtection) {
    let client = PacketProtection::with_limits(suite, CLIENT_SECRET, SERVER_SECRET, limits);
    let server = PacketProtection::with_limits(suite, SERVER_SECRET, CLIENT_SECRET, limits);
    (client, server)
}

/// An unprotected datagram as the builder leaves it, and its seal header.
fn unsealed(
    destination: &[u8],
    path: u8,
    number: u64,
    number_length: usize,
    frames: &[u8],
) -> (Vec<u8>, SealHeader) {
    let mut datagram = vec![0x40 | number_length as u8];
    datagram.extend_from_slice(destination);
    datagram.push(path);
    datagram.extend_from_slice(&number.to_be_bytes()[8 - number_length..]);
    datagram.extend_from_slice(frames);
    let header = SealHeader {
        start: 0,
        destination_length: destination.len(),
        path: PathId(path),
        packet_number: PacketNumber(number),
        packet_number_length: number_length,
    };
    (datagram, header)
}

fn sealed(
    from: &mut PacketProtection,
    path: u8,
    number: u64,
    number_length: usize,
    frames: &[u8],
) -> Vec<u8> {
    let (mut datagram, header) = unsealed(&DESTINATION, path, number, number_length, frames);
    from.seal(&mut datagram, header).unwrap();
    datagram
}

fn open_after(
    by: &mut PacketProtection,
    datagram: &[u8],
    largest: Option<u64>,
) -> Result<(Opened, Vec<u8>), OpenError> {
    let mut datagram = datagram.to_vec();
    let opened = by.open(&mut datagram, DESTINATION.len(), |_| largest.map(PacketNumber))?;
    let frames = datagram[opened.payload.clone()].to_vec();
    Ok((opened, frames))
}

/// The packets of docs/test-vectors.txt: suite, phase, path, number, its length, frames, sealed.
const KNOWN_PACKETS: [(Suite, u64, u8, u64, usize, &str, &str); 4] = [
    (
        Suite::Aes256Gcm,
        0,
        2,
        0x12345,
        2,
        "011205",
        "4e8394c8f03e515708d2952600a3bcdc73d41e979e3fc8a12eb62ebf0a6cb8",
    ),
    (Suite::Aes256Gcm, 1, 0, 7, 1, "01", "458394c8f03e5157086e2712c7bf6a59acc50af94b25c3d8fdb180e1bd"),
    (
        Suite::ChaCha20Poly1305,
        0,
        2,
        0x12345,
        2,
        "011205",
        "438394c8f03e515708aeca03fa3021843d11f9a1eef62cbd994e83064497ad",
    ),
    (Suite::ChaCha20Poly1305, 1, 0, 7, 1, "01", "568394c8f03e515708a2c44657bb81cca429d48d47e5dbfeefbd0c2fca"),
];

const KNOWN_HEADER_KEY: &str = "337cb63f2a233538e9bc0e7bf63c2f79e9ca19e3c3aa3f99073b43f21b2d8f3e";
const KNOWN_SECRET_1: &str = "8cd558477229de9e2e960e15d1f4f6be066db4a1d37d6709da872688b9a228c4";
const KNOWN_KEYS: [(&str, &str); 2] = [
    ("f59e8b11ea5a4ba13802be217f10adf1fb71dd2452d076c9fa0a3519b063600d", "b85bd81ed6227b8082661c8b"),
    ("dc28b2d5b6cbbcf17374da151141ecfe34affd5d115c46363dca6cd5068276ff", "3ad1e47de995c0b2f210a0ea"),
];

#[test]
fn derived_keys_match_an_independent_implementation() {
    assert_eq!(expand::<32>(&CLIENT_SECRET, &[b"ctcp hp"]).to_vec(), hex(KNOWN_HEADER_KEY));
    let mut secret = CLIENT_SECRET;
    for (key, iv) in KNOWN_KEYS {
        assert_eq!(expand::<32>(&secret, &[b"ctcp key"]).to_vec(), hex(key));
        assert_eq!(expand::<12>(&secret, &[b"ctcp iv"]).to_vec(), hex(iv));
        secret = expand(&secret, &[b"ctcp ku"]);
    }
    let secret_1: [u8; 32] = expand(&CLIENT_SECRET, &[b"ctcp ku"]);
    assert_eq!(secret_1.to_vec(), hex(KNOWN_SECRET_1));
}

#[test]
fn sealed_packets_match_an_independent_implementation() {
    for (suite, phase, path, number, number_length, frames, expected) in KNOWN_PACKETS {
        let (mut client, mut server) = pair(suite);
        for early in 0..phase {
            sealed(&mut client, path, early, 1, &[1]);
            client.on_acked(PathId(path), PacketNumber(early));
            assert!(client.initiate_key_update());
        }
        let datagram = sealed(&mut client, path, number, number_length, &hex(frames));
        assert_eq!(datagram, hex(expected), "{suite:?} {phase}");
        let (opened, padded) = open_after(&mut server, &datagram, Some(number - 1)).unwrap();
        assert_eq!((opened.path, opened.packet_number), (PathId(path), PacketNumber(number)));
        assert!(
            padded.starts_with(&hex(frames)) && padded.iter().skip(frames.len() / 2).all(|&byte| byte == 0)
        );
    }
}

#[test]
fn the_protocol_page_contains_the_known_answers() {
    let page: String = include_str!("../../../../../docs/test-vectors.txt").split_whitespace().collect();
    let packets = KNOWN_PACKETS.iter().map(|packet| packet.6);
    let keys = KNOWN_KEYS.iter().flat_map(|keys| [keys.0, keys.1]);
    for answer in packets.chain(keys).chain([KNOWN_HEADER_KEY, KNOWN_SECRET_1]) {
        assert!(page.contains(answer), "{answer}");
    }
}

#[test]
fn packets_sealed_by_one_side_are_opened_by_the_other() {
    for suite in Suite::ALL {
        for destination_length in 0..=20 {
            let (mut client, mut server) = pair(suite);
            for (number, size) in [0, 1, 2, 3, 100, 1200].into_iter().enumerate() {
                let number_length = 1 + number % 3;
                let frames = vec![7; size];
                let destination = vec![9; destination_length];
                let number = 70_000 + number as u64;
                let (mut datagram, header) = unsealed(&destination, 255, number, number_length, &frames);
                client.seal(&mut datagram, header).unwrap();
                let opened = server
                    .open(&mut datagram, destination_length, |_| Some(PacketNumber(number - 1)))
                    .unwrap();
                assert_eq!((opened.path, opened.packet_number.0), (PathId(255), number));
                let payload = &datagram[opened.payload];
                assert_eq!(payload[..size], frames);
                assert!(payload.len() <= size.max(2) && payload[size..].iter().all(|&byte| byte == 0));
            }
        }
    }
}

// Requirement: U9
#[test]
fn every_changed_bit_is_detected() {
    for suite in Suite::ALL {
        let (mut client, mut server) = pair(suite);
        let datagram = sealed(&mut client, 1, 5, 2, b"some frames");
        for bit in 0..8 * datagram.len() {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // The connection id is authenticated too, although it has no header protection.
            assert!(open_after(&mut server, &changed, Some(4)).is_err(), "bit {bit}");
        }
        assert_eq!(open_after(&mut server, &datagram, Some(4)).unwrap().1, b"some frames");
    }
}

#[test]
fn truncated_datagrams_of_any_length_are_rejected() {
    let (mut client, mut server) = pair(Suite::Aes256Gcm);
    let datagram = sealed(&mut client, 1, 5, 2, b"some frames");
    for length in 0..datagram.len() {
        assert!(open_after(&mut server, &datagram[..length], Some(4)).is_err());
    }
    // Also with a connection id longer than the datagram.
    assert_eq!(server.open(&mut [0x41; 40], usize::MAX - 4, |_| None), Err(OpenError::Malformed));
    assert_eq!(server.open(&mut [0xc1; 40], 8, |_| None), Err(OpenError::Malformed));
}

#[test]
fn each_direction_and_suite_has_its_own_keys() {
    let (mut client, mut server) = pair(Suite::Aes256Gcm);
    let datagram = sealed(&mut client, 0, 0, 1, b"to the server");
    assert!(open_after(&mut client, &datagram, None).is_err());
    let (_, mut other) = pair(Suite::ChaCha20Poly1305);
    assert!(open_after(&mut other, &datagram, None).is_err());
    assert!(open_after(&mut server, &datagram, None).is_ok());
}

#[test]
fn a_packet_is_bound_to_its_full_number_and_path() {
    let (mut client, mut server) = pair(Suite::Aes256Gcm);
    let datagram = sealed(&mut client, 0, 300, 1, b"frames");
    assert_eq!(open_after(&mut server, &datagram, Some(44)), Err(OpenError::NotAuthentic));
    assert!(open_after(&mut server, &datagram, Some(299)).is_ok());
    // Equal numbers on two paths give different bytes.
    let frames = [5; 32];
    let (left, right) = (sealed(&mut client, 1, 9, 1, &frames), sealed(&mut client, 2, 9, 1, &frames));
    assert_ne!(left[12..], right[12..]);
}

#[test]
fn several_datagrams_can_be_sealed_in_one_buffer() {
    let (mut client, mut server) = pair(Suite::Aes256Gcm);
    let mut buffer = Vec::new();
    let mut starts = Vec::new();
    for number in 0..3 {
        starts.push(buffer.len());
        let (datagram, header) = unsealed(&DESTINATION, 0, number, 1, &[number as u8; 40]);
        buffer.extend_from_slice(&datagram);
        client.seal(&mut buffer, SealHeader { start: starts[number as usize], ..header }).unwrap();
    }
    starts.push(buffer.len());
    for number in 0..3 {
        let datagram = &buffer[starts[number]..starts[number + 1]];
        let (opened, frames) = open_after(&mut server, datagram, Some(2)).unwrap();
        assert_eq!((opened.packet_number.0, frames), (number as u64, vec![number as u8; 40]));
    }
}

#[test]
fn reserved_bits_of_an_authentic_packet_are_a_violation() {
    let (mut client, mut server) = pair(Suite::Aes256Gcm);
    let (mut datagram, header) = unsealed(&DESTINATION, 0, 0, 1, b"frames");
    datagram[0] |= 0x08;
    client.seal(&mut datagram, header).unwrap();
    assert_eq!(open_after(&mut server, &datagram, None), Err(OpenError::ReservedBits));
}

#[test]
fn a_reset_is_recognized_after_opening_failed() {
    let (_, mut server) = pair(Suite::Aes256Gcm);
    let token = ResetToken([0x5a; 16]);
    for length in RESET_MIN..80 {
        let mut datagram: Vec<u8> = (0..length as u8 - 16).map(|byte| byte.wrapping_mul(77)).collect();
        datagram[0] = 0x40 | datagram[length / 2 - 8] & 0x3f;
        datagram.extend_from_slice(&token.0);
        assert!(server.open(&mut datagram, 8, |_| None).is_err());
        assert!(is_reset(&datagram, &token), "{length}");
    }
}

#[test]
fn too_many_forgeries_reach_the_limit_of_the_keys() {
    let limits = KeyLimits { failures_max: 3, ..KeyLimits::of(Suite::ChaCha20Poly1305) };
    let (mut client, mut server) = pair_with_limits(Suite::ChaCha20Poly1305, limits);
    let mut forged = sealed(&mut client, 0, 0, 1, b"frames");
    forged[20] ^= 1;
    assert_eq!(open_after(&mut server, &forged, None), Err(OpenError::NotAuthentic));
    assert_eq!(open_after(&mut server, &forged, None), Err(OpenError::NotAuthentic));
    assert_eq!(open_after(&mut server, &forged, None), Err(OpenError::LimitReached));
    assert_eq!(server.open_failures(), 3);
    assert_eq!(KeyLimits::of(Suite::ChaCha20Poly1305).failures_max, 1 << 36);
    assert_eq!(KeyLimits::of(Suite::Aes256Gcm).failures_max, 1 << 52);
}

#[test]
#[should_panic(expected = "a packet number is sealed once")]
fn sealing_a_number_twice_panics() {
    let (mut client, _) = pair(Suite::Aes256Gcm);
    sealed(&mut client, 0, 8, 1, b"frames");
    sealed(&mut client, 0, 8, 1, b"other frames");
}

#[test]
fn secrets_are_not_printed() {
    let (client, _) = pair(Suite::Aes256Gcm);
    let text = format!("{client:?}");
    assert_eq!(text, "PacketProtection { suite: Aes256Gcm, send_phase: 0, receive_phase: 0, .. }");
}

proptest! {
    #[test]
    fn arbitrary_datagrams_never_open_and_never_panic(
        mut datagram in prop::collection::vec(any::<u8>(), 0..100),
        destination_length in 0_usize..=20,
    ) {
        let (_, mut server) = pair(Suite::Aes256Gcm);
        prop_assert!(server.open(&mut datagram, destination_length, |_| None).is_err());
    }
}
