use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::id::PathId;
use crate::wire::{
    AckRanges, COMBINATION_LENGTH_MAX, EcnCounts, MissingInterval, STREAMS_MAX, TOKEN_MAX, VARINT_MAX,
};

/// Types from here on have no meaning.
const FIRST_UNKNOWN: u64 = 0x44;

/// Numbers of all varint lengths, small ones as often as large ones.
pub(crate) fn any_varint() -> impl Strategy<Value = u64> {
    (0u32..=62, any::<u64>()).prop_map(|(bits, noise)| noise & ((1 << bits) - 1))
}

pub(crate) fn any_path_ack() -> impl Strategy<Value = PathAck> {
    (any_received(), any::<u8>(), any_varint(), any_ecn()).prop_map(|(ranges, path, delay, ecn)| PathAck {
        path: PathId(path),
        ranges,
        delay: Duration::from_micros(delay),
        ecn,
    })
}

fn any_ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    let counts = (any_varint(), any_varint(), any_varint());
    prop::option::of(counts.prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }))
}

/// Received numbers that one frame can express: at most 256 gaps.
fn any_received() -> impl Strategy<Value = AckRanges> {
    let step = || prop_oneof![4 => 0u64..4, 1 => 0u64..200_000];
    (any_varint(), prop::collection::vec((step(), step()), 0..=256), step()).prop_map(
        |(largest, steps, first)| {
            let mut start = largest - first.min(largest);
            let mut ranges = vec![(start, largest)];
            for (gap, length) in steps {
                let Some(end) = start.checked_sub(gap + 2) else { break };
                start = end - length.min(end);
                ranges.push((start, end));
            }
            AckRanges::from_descending(ranges).expect("at least one range")
        },
    )
}

pub(crate) fn any_report() -> impl Strategy<Value = DecoderReport> {
    let interval = (0u64..1_000, 1u64..300, 1u64..300);
    let intervals = prop::collection::vec(interval, 0..=32);
    let ends = (0u64..100, 0u64..100, any::<prop::sample::Index>());
    (any_varint(), any_varint(), intervals, ends).prop_map(
        |(number, oldest_undecoded, steps, (reported, known, unseen))| {
            let oldest_undecoded = oldest_undecoded.min(VARINT_MAX - 100_000);
            let mut end = oldest_undecoded;
            let mut intervals = Vec::new();
            for (gap, length, missing) in steps {
                let first = end + gap;
                end = first + length;
                intervals.push(MissingInterval { first, end, missing: missing.min(length) });
            }
            let known_end = end + reported + known;
            DecoderReport {
                number,
                oldest_undecoded,
                oldest_unseen: oldest_undecoded
                    + unseen.index((known_end - oldest_undecoded) as usize + 1) as u64,
                known_end,
                intervals,
                reported_end: end + reported,
            }
        },
    )
}

/// Where a combination lies: first symbol, length and floor.
fn any_range() -> impl Strategy<Value = (u64, u16, u64)> {
    (any_varint(), 1..=COMBINATION_LENGTH_MAX, any_varint()).prop_map(|(first, length, floor)| {
        let first = first.min(VARINT_MAX - u64::from(length));
        (first, length, floor.min(first))
    })
}

/// The number of bytes before and after a segment of its combination.
fn any_place() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![(0u16..100, 0u16..100), (0u16..7_000, 0u16..7_000)]
}

fn any_context() -> impl Strategy<Value = ContextId> {
    prop::sample::select(ContextId::ALL.to_vec())
}

/// A combination whose payload is part of `bytes`.
fn any_combination(bytes: &'static [u8]) -> impl Strategy<Value = Combination<'static>> {
    let payload = (0..=bytes.len()).prop_map(move |length| &bytes[..length]);
    prop_oneof![
        (any_range(), payload.clone()).prop_map(|((index, _, floor), symbol)| Combination::Source {
            index,
            floor,
            symbol
        }),
        (any_range(), 0u8..=15, any::<u16>(), payload.clone()).prop_map(
            |((first, length, floor), density, key, payload)| Combination::Coded {
                first,
                length,
                density,
                key,
                floor,
                payload
            }
        ),
        (any_range(), 0u8..=15, any::<u16>(), payload.clone(), any_place()).prop_map(
            |((first, length, floor), density, key, piece, (offset, behind))| {
                let total = offset + piece.len() as u16 + behind;
                Combination::Segment { first, length, density, key, floor, offset, total, piece }
            }
        ),
        (any_range(), payload).prop_map(|((first, length, floor), payload)| {
            let coefficients = &payload[..payload.len().min(usize::from(length))];
            let coefficients = if coefficients.is_empty() { &[1] } else { coefficients };
            Combination::Recoded { first, coefficients, floor, payload }
        }),
    ]
}

/// A frame whose payload, if any, is part of `bytes`, and whose reason, if any, is `text`.
fn any_frame(bytes: &'static [u8], text: &'static str) -> impl Strategy<Value = Frame<'static>> {
    let payload = (0..=bytes.len()).prop_map(move |length| &bytes[..length]);
    let id = || any_varint().prop_map(StreamId);
    prop_oneof![
        (1usize..300).prop_map(Frame::Padding),
        Just(Frame::Ping),
        any_path_ack().prop_map(Frame::PathAck),
        (any_context(), any_report()).prop_map(|(context, report)| Frame::DecoderReport(context, report)),
        (any_context(), any_combination(bytes))
            .prop_map(|(context, combination)| Frame::Combination(context, combination)),
        any_varint().prop_map(Frame::MaxData),
        (id(), any_varint()).prop_map(|(id, credit)| Frame::MaxStreamData { id, credit }),
        (0..=STREAMS_MAX).prop_map(Frame::MaxStreams),
        (id(), any_varint(), any_varint()).prop_map(|(id, code, final_size)| Frame::ResetStream {
            id,
            code,
            final_size
        }),
        (id(), any_varint()).prop_map(|(id, code)| Frame::StopSending { id, code }),
        any::<[u8; 16]>().prop_map(Frame::ResetToken),
        any::<[u8; 32]>().prop_map(Frame::KeyShare),
        (0..=VARINT_MAX, 0..=VARINT_MAX, any::<[u8; 32]>()).prop_map(|(lifetime, streams, secret)| {
            Frame::NewTicket(NewTicket { lifetime, streams, secret, token: &[7; TOKEN_MAX] })
        }),
        any::<[u8; 8]>().prop_map(Frame::PathChallenge),
        any::<u8>().prop_map(|id| Frame::PathAbandon(PathId(id))),
        any::<u8>().prop_map(Frame::PathPreference),
        (1..=VARINT_MAX, 0..=VARINT_MAX, any::<bool>()).prop_map(|(packets, micros, hurries_at_gaps)| {
            let delay = Duration::from_micros(micros);
            Frame::AckFrequency(AckFrequency { packets, delay, hurries_at_gaps })
        }),
        (any::<u8>(), any_varint())
            .prop_map(|(path, largest)| Frame::Arrived { path: PathId(path), largest }),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 1..=ConnectionId::MAX)).prop_map(|(path, id)| {
            Frame::NewConnectionId { path: PathId(path), id: ConnectionId::new(&id).expect("at most 20") }
        }),
        any::<[u8; 8]>().prop_map(Frame::PathResponse),
        (any::<bool>(), any_varint()).prop_map(move |(by_application, code)| Frame::Close {
            by_application,
            code,
            reason: text
        }),
        (any_varint(), payload)
            .prop_map(|(kind, contents)| Frame::Skippable { kind: kind.max(FIRST_UNKNOWN), contents }),
    ]
}

static BYTES: [u8; 1500] = {
    let mut bytes = [0; 1500];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = (index % 251) as u8 + 1;
        index += 1;
    }
    bytes
};

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.write(&mut out);
    out
}

proptest! {
    #[test]
    fn a_frame_round_trips_and_has_the_stated_length(frame in any_frame(&BYTES, "schlüssig")) {
        let out = written(&frame);
        prop_assert_eq!(out.len(), frame.encoded_length());
        prop_assert_eq!(frames(&out).collect::<Vec<_>>(), [Ok(frame)]);
    }

    #[test]
    fn a_sequence_of_frames_round_trips(row in prop::collection::vec(any_frame(&BYTES, "x"), 0..8)) {
        // A combination ends the packet, and adjacent runs of padding are one run.
        let combination = row.iter().position(Frame::is_combination).map_or(row.len(), |index| index + 1);
        let mut row = row[..combination].to_vec();
        row.dedup_by(|right, left| match (left, right) {
            (Frame::Padding(left), Frame::Padding(right)) => { *left += *right; true }
            _ => false,
        });
        let out: Vec<u8> = row.iter().flat_map(written).collect();
        prop_assert_eq!(frames(&out).collect::<Result<Vec<_>, _>>(), Ok(row));
    }

    #[test]
    fn a_truncated_frame_is_an_error_unless_only_its_payload_is_shorter(frame in any_frame(&BYTES, "end")) {
        let out = written(&frame);
        let head = match &frame {
            Frame::Combination(_, combination) => out.len() - combination.payload().len(),
            Frame::Padding(_) => 0,
            _ => out.len(),
        };
        for length in 1..out.len() {
            let outcome = frames(&out[..length]).collect::<Result<Vec<_>, _>>();
            prop_assert_eq!(outcome.is_err(), length < head, "{} bytes of {}", length, out.len());
        }
    }
}

#[test]
fn padding_acknowledgements_reports_closes_and_unknown_odd_types_are_not_ack_eliciting() {
    let ranges = AckRanges::from_descending([(0, 0)]).expect("one range");
    let ack = PathAck { path: PathId(0), ranges, delay: Duration::ZERO, ecn: None };
    let silent = [
        Frame::Padding(1),
        Frame::PathAck(ack),
        Frame::DecoderReport(ContextId::Streams, DecoderReport::default()),
        Frame::Close { by_application: true, code: 0, reason: "" },
        Frame::Close { by_application: false, code: 0, reason: "" },
        Frame::Skippable { kind: 0x41, contents: &[] },
    ];
    assert!(!silent.iter().any(Frame::is_ack_eliciting));
    let asking = [
        Frame::Ping,
        Frame::Combination(ContextId::Streams, Combination::Source { index: 0, floor: 0, symbol: &[] }),
        Frame::Combination(
            ContextId::Streams,
            Combination::Coded { first: 0, length: 1, density: 15, key: 0, floor: 0, payload: &[] },
        ),
        Frame::Combination(
            ContextId::Streams,
            Combination::Recoded { first: 0, coefficients: &[1], floor: 0, payload: &[] },
        ),
        Frame::Combination(
            ContextId::Streams,
            Combination::Segment {
                first: 0,
                length: 1,
                density: 15,
                key: 0,
                floor: 0,
                offset: 0,
                total: 0,
                piece: &[],
            },
        ),
        Frame::MaxData(0),
        Frame::MaxStreamData { id: StreamId(0), credit: 0 },
        Frame::MaxStreams(0),
        Frame::ResetStream { id: StreamId(0), code: 0, final_size: 0 },
        Frame::StopSending { id: StreamId(0), code: 0 },
        Frame::ResetToken([0; 16]),
        Frame::KeyShare([0; 32]),
        Frame::PathChallenge([0; 8]),
        Frame::PathAbandon(PathId(3)),
        Frame::PathPreference(64),
        Frame::AckFrequency(AckFrequency { packets: 1, delay: Duration::ZERO, hurries_at_gaps: true }),
        Frame::NewConnectionId { path: PathId(1), id: ConnectionId::new(&[1; 8]).expect("8 bytes") },
        Frame::PathResponse([0; 8]),
        Frame::Skippable { kind: 0x40, contents: &[] },
    ];
    assert!(asking.iter().all(Frame::is_ack_eliciting));
}

#[test]
fn unknown_types_below_the_skippable_ones_are_errors() {
    let known = [0..=0x16, 0x18..=0x1a, 0x1c..=0x20];
    for kind in 0..SKIPPABLE_FRAME_MIN as u8 {
        let bytes = [kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let is_unknown = frames(&bytes).next() == Some(Err(Malformed::new("frame of unknown type")));
        assert_eq!(is_unknown, !known.iter().any(|range| range.contains(&kind)), "{kind:#04x}");
    }
}

#[test]
fn a_frame_of_an_unknown_context_or_with_that_of_the_streams_spelled_out_is_an_error() {
    for context in [0, 4, 63] {
        let bytes = [0x09, context, 0, 0, 1];
        assert_eq!(
            frames(&bytes).next(),
            Some(Err(Malformed::new("frame of an unknown context"))),
            "{context}"
        );
    }
}

#[test]
fn a_frame_of_a_skippable_type_is_skipped_by_its_length() {
    let outcome: Vec<_> = frames(&[0x40, 0x59, 2, 0xff, 0xff, 0x01]).collect();
    assert_eq!(outcome, [Ok(Frame::Skippable { kind: 0x59, contents: &[0xff, 0xff] }), Ok(Frame::Ping)]);
    assert_eq!(frames(&[0x40, 0x59, 3, 0xff, 0xff]).next(), Some(Err(Malformed::TRUNCATED)));
}

#[test]
fn a_type_longer_than_necessary_is_an_error() {
    assert_eq!(frames(&[0x40, 0x01]).next(), Some(Err(Malformed::new("number longer than necessary"))));
    assert_eq!(
        frames(&[0x80, 0, 0, 0x59, 0]).next(),
        Some(Err(Malformed::new("number longer than necessary")))
    );
}

#[test]
fn nothing_is_parsed_after_an_error() {
    let outcome: Vec<_> = frames(&[0x01, 0x2f, 0x01]).collect();
    assert_eq!(outcome, [Ok(Frame::Ping), Err(Malformed::new("frame of unknown type"))]);
}

#[test]
fn a_number_may_be_longer_than_necessary() {
    assert_eq!(frames(&[0x10, 0x40, 0x05]).next(), Some(Ok(Frame::MaxData(5))));
    assert_eq!(frames(&[0x10, 0xc0, 0, 0, 0, 0, 0, 0, 5]).next(), Some(Ok(Frame::MaxData(5))));
}

#[test]
fn combinations_out_of_bounds_are_errors() {
    let last = VARINT_MAX.to_be_bytes().map(|byte| byte | if byte == 0x3f { 0xc0 } else { 0 });
    let source = |index: &[u8], distance: u8| [&[0x08], index, &[distance, 9]].concat();
    assert!(frames(&source(&[5], 5)).all(|frame| frame.is_ok()));
    assert!(frames(&source(&[5], 6)).any(|frame| frame.is_err()), "floor below zero");
    assert!(frames(&source(&last, 0)).any(|frame| frame.is_err()), "no symbol after the last");
    let coded = |first: u8, shape: u16| {
        let [high, low] = shape.to_be_bytes();
        [0x0a, first, high, low, 0, 1, 0, 9]
    };
    assert!(frames(&coded(0, 0xf001)).all(|frame| frame.is_ok()));
    assert!(frames(&coded(0, 0xffff)).all(|frame| frame.is_ok()));
    assert!(frames(&coded(0, 0xf000)).any(|frame| frame.is_err()), "no symbol");
    let recoded = |length: u64, coefficients: usize| {
        let mut out = vec![0x0c, 0];
        write_varint(&mut out, length);
        out.resize(out.len() + coefficients + 1, 0);
        out
    };
    assert!(frames(&recoded(4095, 4095)).all(|frame| frame.is_ok()));
    assert!(frames(&recoded(4096, 4096)).any(|frame| frame.is_err()), "too many coefficients");
    assert!(frames(&recoded(0, 1)).any(|frame| frame.is_err()), "no coefficient");
    assert!(frames(&recoded(VARINT_MAX, 1)).any(|frame| frame.is_err()));
}

#[test]
fn segments_beyond_their_combination_are_errors() {
    let segment = |offset: u64, total: u64, piece: usize| {
        let mut out = vec![0x0e, 0, 0xf0, 1, 0, 1, 0];
        write_varint(&mut out, offset);
        write_varint(&mut out, total);
        out.resize(out.len() + piece, 7);
        frames(&out).all(|frame| frame.is_ok())
    };
    assert!(segment(0, 20, 20) && segment(10, 20, 10) && segment(20, 20, 0) && segment(0, 16_384, 1));
    assert!(!segment(0, 20, 21) && !segment(10, 20, 11) && !segment(21, 20, 0));
    assert!(!segment(0, 16_385, 1), "longer than any symbol");
    assert!(!segment(VARINT_MAX, VARINT_MAX, 1) && !segment(65_536, 10, 1) && !segment(0, 65_546, 1));
}

#[test]
fn more_streams_than_ids_are_an_error() {
    let mut out = Vec::new();
    Frame::MaxStreams(STREAMS_MAX).write(&mut out);
    assert_eq!(frames(&out).next(), Some(Ok(Frame::MaxStreams(STREAMS_MAX))));
    let mut out = Vec::new();
    Frame::MaxStreams(STREAMS_MAX + 1).write(&mut out);
    assert!(frames(&out).any(|frame| frame.is_err()));
}

#[test]
fn the_reason_of_a_close_is_cut_at_invalid_text_and_at_the_limit() {
    let broken = [0x1d, 7, 4, b'o', b'k', 0xff, b'x'];
    let close = |reason| Some(Ok(Frame::Close { by_application: true, code: 7, reason }));
    assert_eq!(frames(&broken).next(), close("ok"));
    // Two bytes per character and an even limit: one byte in front moves the limit into a character.
    let long = format!("x{}", "ü".repeat(CLOSE_REASON_MAX));
    let out = written(&Frame::Close { by_application: true, code: 7, reason: &long });
    assert_eq!(frames(&out).next(), close(&long[..CLOSE_REASON_MAX - 1]));
    let mut out = vec![0x1d, 7];
    write_varint(&mut out, 1_000);
    out.resize(out.len() + 1_000, b'y');
    assert_eq!(frames(&out).next(), close(&"y".repeat(CLOSE_REASON_MAX)));
}

#[test]
fn an_acknowledgement_frequency_of_no_packets_or_with_other_fields_is_an_error() {
    let error = |bytes: &[u8]| frames(bytes).next().expect("a frame").is_err();
    assert!(!error(&[0x40, 0x42, 3, 8, 1, 0]));
    for bytes in [[0, 1, 0].as_slice(), &[8, 1, 2], &[8, 1], &[8, 1, 0, 0], &[]] {
        assert!(error(&[&[0x40, 0x42, bytes.len() as u8], bytes].concat()), "{bytes:?}");
    }
}
