use proptest::prelude::*;

use super::*;
use crate::wire::{Combination, Malformed, frames};

fn id(length: usize) -> ConnectionId {
    ConnectionId::new(&[0xc1; ConnectionId::MAX][..length]).expect("at most 20 bytes")
}

fn packet(number: u64, largest_acked: Option<u64>) -> NewPacket {
    NewPacket {
        destination: id(8),
        path: PathId(3),
        packet_number: PacketNumber(number),
        largest_acked: largest_acked.map(PacketNumber),
    }
}

/// Header and frames of a finished packet.
fn split(packet: &SealablePacket) -> (ShortHeader, Result<Vec<Frame<'_>>, Malformed>) {
    let datagram = &packet.buffer[packet.start..];
    let header = ShortHeader::parse(datagram, packet.destination_length).expect("our own header");
    (header, frames(&datagram[header.length()..]).collect())
}

#[test]
fn a_packet_has_its_header_and_its_frames() {
    let mut builder = DatagramBuilder::short(Vec::new(), 1200, packet(1000, Some(500)));
    assert!(builder.is_empty() && !builder.is_ack_eliciting());
    assert_eq!(builder.remaining(), 1200 - 16 - (1 + 8 + 1 + 2));
    assert!(!builder.write(&Frame::Padding(2)));
    assert!(builder.write(&Frame::MaxData(7)));
    assert!(builder.write(&Frame::Padding(1)), "it still asks");
    assert_eq!((builder.remaining(), builder.sealed_length()), (1200 - 16 - 12 - 5, 12 + 5 + 16));
    let parts = builder.finish();
    assert!(parts.is_ack_eliciting);
    assert_eq!((parts.start, parts.destination_length, parts.packet_number_length), (0, 8, 2));
    assert_eq!((parts.path, parts.packet_number), (PathId(3), PacketNumber(1000)));
    let (header, frames) = split(&parts);
    assert_eq!((header.path, header.destination, header.key_phase), (PathId(3), id(8), false));
    assert_eq!(header.packet_number.restore(Some(PacketNumber(998))), PacketNumber(1000));
    assert_eq!(frames, Ok(vec![Frame::Padding(2), Frame::MaxData(7), Frame::Padding(1)]));
}

#[test]
fn a_short_packet_is_padded_for_the_sample() {
    for (number, largest_acked) in [(0, None), (300, Some(0)), (70_000, Some(0))] {
        let mut builder = DatagramBuilder::short(Vec::new(), 1200, packet(number, largest_acked));
        builder.write(&Frame::Ping);
        let promised = builder.sealed_length();
        let parts = builder.finish();
        assert_eq!(parts.buffer.len() + 16, promised);
        // The 16 bytes of the sample begin 4 bytes after the destination id.
        assert!(parts.buffer.len() + 16 >= 1 + 8 + 4 + 16, "{}", parts.buffer.len());
        assert!(matches!(split(&parts).1.as_deref(), Ok([Frame::Ping, ..])));
    }
}

#[test]
fn padding_makes_the_sealed_datagram_exactly_that_long() {
    let mut builder = DatagramBuilder::short(Vec::new(), 1400, packet(1, None));
    builder.write(&Frame::Ping);
    builder.pad_to(1400);
    assert_eq!((builder.remaining(), builder.sealed_length()), (0, 1400));
    builder.pad_to(1300);
    assert_eq!(builder.finish().buffer.len() + 16, 1400);
}

#[test]
fn a_second_datagram_is_appended_to_the_first() {
    let mut builder = DatagramBuilder::short(vec![9; 100], 60, packet(1, None));
    assert_eq!(builder.remaining(), 60 - 16 - 11);
    builder.write(&Frame::Ping);
    builder.pad_to(60);
    let parts = builder.finish();
    assert_eq!((parts.start, parts.buffer.len()), (100, 144));
    assert_eq!(split(&parts).1, Ok(vec![Frame::Ping, Frame::Padding(60 - 16 - 11 - 1)]));
    let abandoned = DatagramBuilder::short(parts.buffer, 60, packet(2, None)).abandon();
    assert_eq!(abandoned.len(), 144);
}

#[test]
#[should_panic(expected = "left")]
fn nothing_fits_after_a_combination() {
    let mut builder = DatagramBuilder::short(Vec::new(), 1200, packet(1, None));
    builder.write(&Frame::Combination(
        ContextId::Streams,
        Combination::Source { index: 0, floor: 0, symbol: &[1] },
    ));
    builder.write(&Frame::Ping);
}

proptest! {
    #[test]
    fn the_largest_symbol_fits_for_all_numbers(
        size in 1200usize..9000, id_length in 0..=ConnectionId::MAX, number in 0u64..1 << 62, first_bits in 0u32..62,
        distance in 0u64..65_536, is_source: bool,
    ) {
        let destination = id(id_length);
        let packet = NewPacket { destination, path: PathId(0), packet_number: PacketNumber(number), largest_acked: None };
        let first = (1u64 << first_bits) + 65_536;
        let overhead = combination_overhead(ContextId::Streams, first, 65_536);
        let symbol = vec![1; symbol_size_for_datagram(size, &destination, overhead)];
        let floor = first - distance;
        let mut builder = DatagramBuilder::short(Vec::new(), size, packet);
        if is_source {
            builder.write(&Frame::Combination(ContextId::Streams, Combination::Source { index: first, floor, symbol: &symbol }));
        } else {
            builder.write(&Frame::Combination(ContextId::Streams, Combination::Coded { first, length: 4095, density: 15, key: 0, floor, payload: &symbol }));
        }
        prop_assert!(builder.sealed_length() <= size);
        // No more room is reserved than the longest header needs.
        if !is_source && distance >= 16_384 && number >= 1 << 15 {
            prop_assert_eq!(builder.sealed_length(), size);
        }
    }
}

#[test]
fn an_id_of_eight_bytes_and_an_index_of_four_cost_forty_bytes() {
    let overhead = combination_overhead(ContextId::Streams, 20_000, 8_192);
    assert_eq!(symbol_size_for_datagram(1200, &id(8), overhead), 1160);
    assert_eq!(symbol_size_for_datagram(10, &id(8), overhead), 0);
}
