use proptest::prelude::*;

use super::*;
use crate::wire::frame::tests::any_path_ack;
use crate::wire::{Frame, frames};

/// An acknowledgement of these packets.
fn of_packets(ranges: &[(u64, u64)]) -> PathAck {
    PathAck {
        path: PathId(0),
        ranges: AckRanges::from_descending(ranges.iter().copied()).expect("at least one range"),
        delay: Duration::ZERO,
        ecn: None,
    }
}

fn read(bytes: &[u8]) -> Result<PathAck, Malformed> {
    match frames(bytes).next() {
        Some(Ok(Frame::PathAck(ack))) => Ok(ack),
        Some(Err(malformed)) => Err(malformed),
        other => panic!("no acknowledgement: {other:?}"),
    }
}

fn written(ack: &PathAck, max_length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xee];
    let fits = ack.write_within(&mut out, max_length);
    assert_eq!(fits, out.len() > 1, "something is written exactly if it fits");
    fits.then(|| out.split_off(1))
}

/// The bytes of an acknowledgement with these numbers.
fn from_numbers(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind];
    for &number in numbers {
        write_varint(&mut out, number);
    }
    out
}

#[test]
fn the_shorter_form_is_chosen_and_both_parse_alike() {
    // Ranges, kind and length of the frame: type and head take 4 bytes, 5 with a number above 63.
    type Received = &'static [(u64, u64)];
    let table: [(Received, u8, usize); 7] = [
        // One packet: a bitmap of no bytes.
        (&[(9, 9)], kind::PATH_ACK_BITMAP, 4 + 1),
        // A run of 10 takes 1 + 1 bytes as a range, 1 + 2 as a bitmap.
        (&[(0, 9)], kind::PATH_ACK_RANGES, 4 + 2),
        // A tie goes to the ranges.
        (&[(2, 9)], kind::PATH_ACK_RANGES, 4 + 2),
        // One hole near the top: 1 + 1 + 2 bytes, or 1 + 2.
        (&[(7, 9), (0, 5)], kind::PATH_ACK_BITMAP, 4 + 3),
        // One hole in a long run.
        (&[(100, 200), (0, 98)], kind::PATH_ACK_RANGES, 5 + 1 + 2 + 3),
        // Every other packet.
        (&[(16, 16), (14, 14), (12, 12), (10, 10), (8, 8)], kind::PATH_ACK_BITMAP, 4 + 2),
        // Far apart.
        (&[(60, 60), (20, 20)], kind::PATH_ACK_RANGES, 4 + 4),
    ];
    for (ranges, kind, length) in table {
        let ack = of_packets(ranges);
        let out = written(&ack, usize::MAX).expect("no limit");
        assert_eq!((out[0], out.len()), (kind, length), "{ranges:?}");
        assert_eq!(read(&out), Ok(ack));
    }
}

#[test]
fn a_bitmap_and_ranges_of_the_same_packets_parse_alike() {
    // 20 19 18, 15 14, 9: the drawing in the module documentation.
    let head = [0, 20, 0];
    let ranges = [from_numbers(kind::PATH_ACK_RANGES, &head), vec![2, 2, 1, 1, 3, 0]].concat();
    let bitmap = [from_numbers(kind::PATH_ACK_BITMAP, &head), vec![2, 0b1100_1100, 0b0010_0000]].concat();
    let expected = of_packets(&[(18, 20), (14, 15), (9, 9)]);
    assert_eq!(read(&ranges), Ok(expected.clone()));
    assert_eq!(read(&bitmap), Ok(expected));
}

#[test]
fn heavy_loss_can_be_reported_over_four_thousand_numbers() {
    // 30 % loss, regular: 7 of 10 arrive in runs of 2 and 3, so there are 3 ranges per 10 numbers.
    let received = |number: &u64| !matches!(number % 10, 2 | 5 | 9);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in (0..10_000u64).rev().filter(received) {
        match ranges.last_mut() {
            Some((start, _)) if *start == number + 1 => *start = number,
            _ => ranges.push((number, number)),
        }
    }
    let ack = of_packets(&ranges);
    let out = written(&ack, usize::MAX).expect("no limit");
    assert_eq!(out[0], kind::PATH_ACK_BITMAP);
    let read = read(&out).expect("what we wrote");
    let lowest = read.ranges.iter().last().expect("never empty").0;
    assert!((9_998 - 4_096..9_998 - 4_080).contains(&lowest), "{lowest}");
    assert!(read.ranges.iter().eq(ranges.into_iter().take(read.ranges.iter().len())));
}

#[test]
fn the_oldest_ranges_are_dropped_at_the_limit_of_ranges() {
    // Too far apart for a bitmap.
    let ranges: Vec<(u64, u64)> = (0..300).rev().map(|index| (index * 10_000, index * 10_000)).collect();
    let ack = of_packets(&ranges);
    let read = read(&written(&ack, usize::MAX).expect("no limit")).expect("what we wrote");
    assert!(read.ranges.iter().eq(ranges.iter().copied().take(ACK_RANGES_MAX + 1)));
}

proptest! {
    #[test]
    fn a_truncated_ack_keeps_the_newest_packets(ack in any_path_ack(), cut in 0.0..1.0f64) {
        let budget = (ack.encoded_length() as f64 * cut) as usize;
        let top = ack.ranges.iter().next().expect("never empty");
        let newest = AckRanges::from_descending([top]).expect("one range");
        let smallest = PathAck { ranges: newest, ..ack.clone() }.encoded_length();
        let out = written(&ack, budget);
        prop_assert_eq!(out.is_some(), budget >= smallest, "budget {}, smallest {}", budget, smallest);
        let Some(out) = out else { return Ok(()) };
        prop_assert!(out.len() <= budget);
        let cut = read(&out).expect("what we wrote");
        let kept = cut.ranges.iter().len();
        prop_assert!(cut.ranges.iter().eq(ack.ranges.iter().take(kept)));
        prop_assert_eq!(PathAck { ranges: ack.ranges.clone(), ..cut }, ack);
    }

    #[test]
    fn contains_agrees_with_the_ranges(ack in any_path_ack(), below in 0u64..1_000) {
        let number = ack.largest().0.saturating_sub(below);
        let inside = ack.ranges.iter().any(|(start, end)| (start..=end).contains(&number));
        prop_assert_eq!(ack.ranges.contains(PacketNumber(number)), inside);
        prop_assert!(!ack.ranges.contains(ack.largest().next()));
    }
}

#[test]
fn hostile_numbers_are_errors() {
    const MAX: u64 = VARINT_MAX;
    let bitmap = |largest: u64, bytes: &[u8]| {
        let mut out = from_numbers(kind::PATH_ACK_BITMAP, &[0, largest, 0, bytes.len() as u64]);
        out.extend_from_slice(bytes);
        out
    };
    let ranges = |numbers: &[u64]| from_numbers(kind::PATH_ACK_RANGES, numbers);
    let cases = [
        ("path above 255", ranges(&[256, 9, 0, 0, 0])),
        ("length of the first range above the largest", ranges(&[0, 9, 0, 0, 10])),
        ("gap below zero", ranges(&[0, 9, 0, 1, 0, 8, 0])),
        ("gap of 2^62 - 1", ranges(&[0, 9, 0, 1, 0, MAX, 0])),
        ("length below zero", ranges(&[0, 9, 0, 1, 0, 0, 8])),
        ("257 further ranges", {
            let mut numbers = vec![0, 9_999, 0, 257, 0];
            numbers.extend([0; 2 * 257]);
            ranges(&numbers)
        }),
        ("as many ranges as a varint can say", ranges(&[0, 9, 0, MAX, 0])),
        ("bitmap below packet 0", bitmap(7, &[0b0000_0001])),
        ("bitmap of 513 bytes", bitmap(MAX, &[0; 513])),
        ("bitmap that is not there", from_numbers(kind::PATH_ACK_BITMAP, &[0, 9, 0, MAX])),
    ];
    for (what, bytes) in cases {
        assert!(read(&bytes).is_err(), "{what}");
    }
}

#[test]
fn the_largest_values_are_parsed() {
    const MAX: u64 = VARINT_MAX;
    let all = from_numbers(kind::PATH_ACK_RANGES_ECN, &[255, MAX, MAX, 0, MAX, MAX, MAX, MAX]);
    let ack = read(&all).expect("all within bounds");
    assert_eq!(ack.ranges.iter().collect::<Vec<_>>(), [(0, MAX)]);
    let bits = [&from_numbers(kind::PATH_ACK_BITMAP, &[0, MAX, 0, 512])[..], &[0x55; 512]].concat();
    let ack = read(&bits).expect("all within bounds");
    assert_eq!(ack.ranges.iter().len(), 1 + 2048);
    assert_eq!(written(&ack, usize::MAX), Some(bits));
}

#[test]
fn bits_below_packet_zero_may_be_padding() {
    let bytes = [&from_numbers(kind::PATH_ACK_BITMAP, &[0, 3, 0, 1])[..], &[0b1010_0000]].concat();
    assert_eq!(read(&bytes), Ok(of_packets(&[(2, 3), (0, 0)])));
}
