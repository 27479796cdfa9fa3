use proptest::prelude::*;

use super::*;
use crate::id::PacketNumber;

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("at most 20 bytes")
}

fn any_id(shortest: usize) -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), shortest..=ConnectionId::MAX).prop_map(|bytes| id(&bytes))
}

fn any_header() -> impl Strategy<Value = LongHeader> {
    (any_id(8), any_id(0)).prop_map(|(destination, source)| LongHeader { destination, source })
}

fn any_long_packet(
    token: &'static [u8],
    message: &'static [u8],
) -> impl Strategy<Value = LongPacket<'static>> {
    let token = (0..=token.len()).prop_map(move |length| &token[..length]);
    let message = (0..=message.len()).prop_map(move |length| &message[..length]);
    prop_oneof![
        (any_header(), token.clone(), message.clone())
            .prop_map(|(header, token, message)| LongPacket::Initiate { header, token, message }),
        any_header().prop_map(|header| LongPacket::InitiatePart { header, part: &[0x70; PART_LENGTH] }),
        (any_header(), message).prop_map(|(header, message)| LongPacket::Response { header, message }),
        any_header().prop_map(|header| LongPacket::ResponsePart { header, part: &[0x71; PART_LENGTH] }),
        (any_header(), token).prop_map(|(header, token)| LongPacket::Cookie { header, token }),
        (any_header(), any::<u8>()).prop_map(|(header, reason)| LongPacket::Reject {
            header,
            reason: RejectReason::from_number(reason)
        }),
    ]
}

fn written(packet: &LongPacket<'_>) -> Vec<u8> {
    let mut out = vec![1, 2, 3];
    packet.write(&mut out);
    out
}

proptest! {
    #[test]
    fn a_handshake_packet_round_trips_and_nothing_shorter_parses(
        packet in any_long_packet(&[0x7a; TOKEN_MAX], &[0x6d; NOISE_MESSAGE_MAX]),
    ) {
        let out = written(&packet);
        prop_assert_eq!(LongPacket::parse(&out), Ok(packet));
        let LongHeader { destination, source } = packet.header();
        let expected =
            Peek::Long { version: VERSION, destination: destination.as_bytes(), source: source.as_bytes() };
        prop_assert_eq!(peek(&out, ConnectionId::LOCAL), Ok(expected));
        prop_assert_eq!(matches!(packet, LongPacket::Initiate { .. }), out.len() >= DATAGRAM_SIZE_MIN);
        for length in 0..out.len() {
            prop_assert!(LongPacket::parse(&out[..length]).is_err(), "{} of {} bytes", length, out.len());
        }
    }

    #[test]
    fn a_short_header_round_trips_and_nothing_shorter_parses(
        key_phase: bool, destination in any_id(0), path: u8, number in 0u64..1 << 62, acked in any::<Option<u64>>(),
    ) {
        let packet_number = TruncatedNumber::new(PacketNumber(number), acked.map(PacketNumber));
        let header = ShortHeader { key_phase, destination, path: PathId(path), packet_number };
        let mut out = Vec::new();
        header.write(&mut out);
        prop_assert_eq!(out.len(), header.length());
        let length = destination.as_bytes().len();
        prop_assert_eq!(ShortHeader::parse(&out, length), Ok(header));
        prop_assert_eq!(peek(&out, length), Ok(Peek::Short { destination }));
        for shorter in 0..out.len() {
            prop_assert!(ShortHeader::parse(&out[..shorter], length).is_err());
        }
    }

    #[test]
    fn version_negotiation_echoes_ids_of_any_length(
        destination in prop::collection::vec(any::<u8>(), 0..=255), source in prop::collection::vec(any::<u8>(), 0..=255),
    ) {
        let mut out = vec![5];
        VersionNegotiation::write(&mut out, &destination, &source);
        let packet = VersionNegotiation::parse(&out).expect("what we wrote");
        prop_assert_eq!((packet.destination, packet.source), (&destination[..], &source[..]));
        prop_assert_eq!(packet.versions().collect::<Vec<_>>(), [VERSION]);
        for length in 0..out.len() {
            prop_assert!(VersionNegotiation::parse(&out[..length]).is_err());
        }
    }
}

#[test]
fn other_versions_may_have_longer_ids() {
    let mut datagram = vec![0x80, 0, 0, 0, 2, 200];
    datagram.extend([7; 200]);
    datagram.push(0);
    let expected = Peek::Long { version: 2, destination: &[7; 200], source: &[] };
    assert_eq!(peek(&datagram, 8), Ok(expected));
    datagram[1..5].copy_from_slice(&VERSION.to_be_bytes());
    assert!(LongPacket::parse(&datagram).is_err());
}

#[test]
fn handshake_packets_out_of_bounds_are_errors() {
    let header = LongHeader { destination: id(&[1; 8]), source: id(&[2; 8]) };
    let initiate = written(&LongPacket::Initiate { header, token: &[], message: &[3; 100] });
    assert!(LongPacket::parse(&initiate).is_ok());
    assert!(LongPacket::parse(&initiate[..DATAGRAM_SIZE_MIN - 1]).is_err(), "below 1200 bytes");
    let flipped = |index: usize, bit: u8| {
        let mut datagram = initiate.clone();
        datagram[index] ^= bit;
        datagram
    };
    for bit in [0x80, 0x40, 0x08, 0x04, 0x03, 0x12, 0x22, 0x01] {
        assert!(LongPacket::parse(&flipped(0, bit)).is_err(), "bit {bit:#04x} of the first byte");
    }
    assert!(LongPacket::parse(&flipped(4, 2)).is_err(), "another version");
    assert!(LongPacket::parse(&flipped(0, 0x21)).is_err(), "a COOKIE has no part");
    let guessable = LongHeader { destination: id(&[1; 7]), ..header };
    let short_id = written(&LongPacket::Initiate { header: guessable, token: &[], message: &[] });
    assert!(LongPacket::parse(&short_id).is_err(), "destination of 7 bytes");

    let mut reject = written(&LongPacket::Reject { header, reason: RejectReason::Busy });
    assert!(LongPacket::parse(&reject).is_ok());
    reject.push(0);
    assert!(LongPacket::parse(&reject).is_err(), "a trailing byte");

    let cookie = written(&LongPacket::Cookie { header, token: &[] });
    let mut long_token = cookie[..cookie.len() - 1].to_vec();
    write_varint(&mut long_token, TOKEN_MAX as u64 + 1);
    long_token.extend([0; TOKEN_MAX + 1]);
    assert!(LongPacket::parse(&long_token).is_err(), "token of 109 bytes");
    let response = written(&LongPacket::Response { header, message: &[] });
    let mut long_message = response[..response.len() - 1].to_vec();
    write_varint(&mut long_message, 1025);
    long_message.extend([0; 1025]);
    assert!(LongPacket::parse(&long_message).is_err(), "message of 1025 bytes");
}

#[test]
fn the_longest_initiate_still_fits_the_smallest_datagram() {
    let header = LongHeader { destination: id(&[1; 20]), source: id(&[2; 20]) };
    let packet = LongPacket::Initiate { header, token: &[0; TOKEN_MAX], message: &[0; NOISE_MESSAGE_MAX] };
    assert_eq!(written(&packet).len(), DATAGRAM_SIZE_MIN);
    let early = LongPacket::Early { header, index: 3, sealed: &[7; 1_000] };
    let datagram = written(&early);
    assert_eq!(LongPacket::parse(&datagram), Ok(early));
    assert!(LongPacket::parse(&datagram[..datagram.len() - 1_001]).is_err(), "no room for its tag");
    for packet in [
        LongPacket::InitiatePart { header, part: &[0; PART_LENGTH] },
        LongPacket::ResponsePart { header, part: &[0; PART_LENGTH] },
    ] {
        let datagram = written(&packet);
        assert!(datagram.len() <= DATAGRAM_SIZE_MIN);
        assert_eq!(LongPacket::parse(&datagram), Ok(packet));
        assert!(LongPacket::parse(&[datagram, vec![0]].concat()).is_err(), "a trailing byte");
    }
}

#[test]
fn the_fixed_bits_of_a_short_header_are_checked() {
    let datagram = [0x41, 1, 2, 0, 9];
    assert!(ShortHeader::parse(&datagram, 2).is_ok());
    for first in [0x40, 0x01, 0xc1, 0x45, 0x49, 0x51] {
        assert!(ShortHeader::parse(&[first, 1, 2, 0, 9], 2).is_err(), "{first:#04x}");
    }
    assert!(ShortHeader::parse(&[0x41; 40], 21).is_err(), "an id of 21 bytes");
    assert!(ShortHeader::parse(&[0x41; 40], usize::MAX).is_err());
    assert_eq!(peek(&[0x01, 1, 2], 2), Err(Malformed::new("short header without its fixed bit")));
    assert!(peek(&[0x41; 40], usize::MAX).is_err());
}

#[test]
fn the_form_is_the_first_bit() {
    assert!(is_long_header(&[0x80]) && !is_long_header(&[0x7f]) && !is_long_header(&[]));
}

#[test]
fn a_version_negotiation_lists_at_least_one_whole_version() {
    let empty = [0xc0, 0, 0, 0, 0, 0, 0];
    assert!(VersionNegotiation::parse(&empty).is_err());
    assert!(VersionNegotiation::parse(&[&empty[..], &[1, 2, 3]].concat()).is_err());
    let two = [&empty[..], &[0, 0, 0, 1], &VERSION.to_be_bytes()].concat();
    let versions = VersionNegotiation::parse(&two).map(|packet| packet.versions().collect::<Vec<_>>());
    assert_eq!(versions, Ok(vec![1, VERSION]));
}
