//! Every parser of the wire format on random and on damaged input: no panic, no contradiction, and everything accepted round-trips.

use std::time::Duration;

use ctcp_base::Prng;
use ctcp_proto::wire::{
    AckRanges, COMBINATION_LENGTH_MAX, Combination, DATAGRAM_SIZE_MIN, DecoderReport, EcnCounts, Frame,
    HybridParameter, LongHeader, LongPacket, MissingInterval, NewTicket, PART_LENGTH, Parameters, PathAck,
    Peek, ProfileParameter, REPORT_INTERVALS_MAX, Reader, Refusal, RejectReason, ServerAnswer, ShortHeader,
    StreamFrame, SymbolBuilder, VARINT_MAX, VERSION, VersionNegotiation, frames, frames_in_symbol, peek,
    write_varint,
};
use ctcp_proto::{ConnectionId, ContextId, PathId, StreamId};

/// Inputs of each kind; `CTCP_NOISE` multiplies them.
const INPUTS: u64 = 100_000;

fn inputs() -> u64 {
    let factor = std::env::var("CTCP_NOISE").ok().and_then(|text| text.parse::<u64>().ok());
    INPUTS * factor.unwrap_or(1)
}

/// How often each parser accepted its input. A test whose parsers reject everything shows nothing.
#[derive(Default, Debug)]
struct Accepted {
    peek: u64,
    handshake: u64,
    negotiation: u64,
    short: u64,
    frames: u64,
    symbols: u64,
    parameters: u64,
}

#[test]
fn parsers_handle_random_bytes() {
    let mut prng = Prng::new(0x0ff);
    let mut accepted = Accepted::default();
    for _ in 0..inputs() {
        let mut bytes = random_bytes(&mut prng);
        // Otherwise nearly all would fail at their first byte.
        if let Some(first) = bytes.first_mut() {
            *first = match prng.below(3) {
                0 => *first,
                1 => prng.below(0x20) as u8,
                _ => 0x40 | *first & 0x23,
            };
        }
        parse_with_all(&bytes, &mut accepted);
    }
    assert!(accepted.peek > 1_000 && accepted.frames > 1_000 && accepted.short > 1_000, "{accepted:?}");
}

#[test]
fn parsers_handle_damaged_input() {
    let mut prng = Prng::new(0xdad);
    let mut accepted = Accepted::default();
    let samples = samples();
    for sample in &samples {
        parse_with_all(sample, &mut accepted);
    }
    for _ in 0..inputs() {
        let index = prng.below(samples.len() as u64) as usize;
        let mut bytes = samples[index].clone();
        for _ in 0..=prng.below(3) {
            damage(&mut bytes, &samples, &mut prng);
        }
        parse_with_all(&bytes, &mut accepted);
    }
    let Accepted { peek, handshake, negotiation, short, frames, symbols, parameters } = accepted;
    let least = [peek, handshake, negotiation, short, frames, symbols, parameters].into_iter().min();
    assert!(least > Some(100), "{accepted:?}");
}

/// Mostly short, sometimes a whole datagram; often with long runs of one value.
fn random_bytes(prng: &mut Prng) -> Vec<u8> {
    let longest = [8, 40, 200, 1_500][prng.below(4) as usize];
    let mut bytes = vec![0; prng.below(longest + 1) as usize];
    match prng.below(4) {
        0 => bytes.iter_mut().for_each(|byte| *byte = prng.below(4) as u8),
        1 => bytes.fill(prng.next_u64() as u8),
        _ => prng.fill(&mut bytes),
    }
    bytes
}

/// One change: a bit, a byte, a number at a limit, a truncation, an insertion, or the tail of another sample.
fn damage(bytes: &mut Vec<u8>, samples: &[Vec<u8>], prng: &mut Prng) {
    let position = prng.below(bytes.len() as u64 + 1) as usize;
    match prng.below(7) {
        0 => bytes.iter_mut().skip(position).take(1).for_each(|byte| *byte ^= 1 << prng.below(8)),
        1 => bytes.iter_mut().skip(position).take(1).for_each(|byte| *byte = prng.next_u64() as u8),
        2 => {
            let edges = [0, 1, 63, 64, 16_383, 16_384, 1 << 30, VARINT_MAX - 1, VARINT_MAX];
            let mut number = Vec::new();
            write_varint(&mut number, edges[prng.below(edges.len() as u64) as usize]);
            let end = (position + number.len()).min(bytes.len());
            bytes.splice(position..end, number);
        }
        3 => bytes.truncate(position),
        4 => bytes.insert(position, prng.next_u64() as u8),
        5 => {
            let end = (position + 1 + prng.below(8) as usize).min(bytes.len());
            bytes.drain(position..end);
        }
        _ => {
            let other = &samples[prng.below(samples.len() as u64) as usize];
            let from = prng.below(other.len() as u64 + 1) as usize;
            bytes.truncate(position);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

fn parse_with_all(bytes: &[u8], accepted: &mut Accepted) {
    parse_numbers(bytes);
    parse_peek(bytes, accepted);
    parse_long(bytes, accepted);
    parse_short(bytes, accepted);
    parse_frames(bytes, accepted);
    parse_symbol(bytes, accepted);
    parse_parameters(bytes, accepted);
}

fn parse_numbers(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut left = reader.remaining();
    while let Ok(number) = reader.varint() {
        assert!(number <= VARINT_MAX && reader.remaining() < left);
        left = reader.remaining();
    }
}

fn parse_peek(bytes: &[u8], accepted: &mut Accepted) {
    for local_id_length in [0, ConnectionId::LOCAL, ConnectionId::MAX, ConnectionId::MAX + 1] {
        match peek(bytes, local_id_length) {
            Ok(Peek::Long { destination, source, .. }) => {
                accepted.peek += 1;
                assert!(bytes.len() >= 7 + destination.len() + source.len());
            }
            Ok(Peek::Short { destination }) => {
                accepted.peek += 1;
                assert_eq!(destination.as_bytes(), &bytes[1..=local_id_length]);
            }
            Err(_) => {}
        }
    }
}

fn parse_long(bytes: &[u8], accepted: &mut Accepted) {
    if let Ok(packet) = VersionNegotiation::parse(bytes) {
        accepted.negotiation += 1;
        assert!(packet.versions().count() > 0);
    }
    let Ok(packet) = LongPacket::parse(bytes) else { return };
    accepted.handshake += 1;
    let mut out = Vec::new();
    packet.write(&mut out);
    assert_eq!(LongPacket::parse(&out), Ok(packet));
    assert!(out.len() <= bytes.len().max(DATAGRAM_SIZE_MIN));
}

fn parse_short(bytes: &[u8], accepted: &mut Accepted) {
    for destination_length in [0, ConnectionId::LOCAL, ConnectionId::MAX, usize::MAX] {
        let Ok(header) = ShortHeader::parse(bytes, destination_length) else { continue };
        accepted.short += 1;
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(out, &bytes[..header.length()]);
    }
}

fn parse_frames(bytes: &[u8], accepted: &mut Accepted) {
    let mut total = 0;
    for frame in frames(bytes) {
        let Ok(frame) = frame else { break };
        accepted.frames += 1;
        check_frame(&frame);
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(out.len(), frame.encoded_length());
        total += out.len();
        assert_eq!(frames(&out).collect::<Vec<_>>(), [Ok(frame)]);
    }
    assert!(total <= bytes.len(), "the written form is the shortest");
}

/// Checks the invariants that the rest of the protocol relies on.
fn check_frame(frame: &Frame<'_>) {
    assert!(!frame.to_string().contains('\n'));
    match frame {
        Frame::PathAck(ack) => check_ack(ack),
        Frame::DecoderReport(_, report) => check_report(report),
        Frame::Combination(_, Combination::Source { index, floor, .. }) => {
            assert!(floor <= index && *index < VARINT_MAX);
        }
        Frame::Combination(_, Combination::Coded { first, length, density, floor, .. }) => {
            assert!(floor <= first && (1..=COMBINATION_LENGTH_MAX).contains(length) && *density <= 15);
            assert!(first + u64::from(*length) <= VARINT_MAX);
        }
        Frame::Combination(
            _,
            Combination::Segment { first, length, density, floor, offset, total, piece, .. },
        ) => {
            assert!(floor <= first && (1..=COMBINATION_LENGTH_MAX).contains(length) && *density <= 15);
            assert!(first + u64::from(*length) <= VARINT_MAX);
            assert!(usize::from(*offset) + piece.len() <= usize::from(*total) && *total <= 16_384);
        }
        Frame::Combination(_, Combination::Recoded { first, coefficients, floor, .. }) => {
            assert!(
                floor <= first && (1..=usize::from(COMBINATION_LENGTH_MAX)).contains(&coefficients.len())
            );
            assert!(first + coefficients.len() as u64 <= VARINT_MAX);
        }
        _ => {}
    }
}

fn check_report(report: &DecoderReport) {
    assert!(report.oldest_undecoded <= report.oldest_unseen && report.oldest_unseen <= report.known_end);
    assert!(report.reported_end <= report.known_end && report.known_end <= VARINT_MAX);
    assert!(report.intervals.len() <= REPORT_INTERVALS_MAX);
    let mut previous = report.oldest_undecoded;
    for interval in &report.intervals {
        assert!(previous <= interval.first && interval.first < interval.end);
        assert!(interval.missing <= interval.end - interval.first);
        previous = interval.end;
    }
    assert!(previous <= report.reported_end);
    check_budgets(|out, budget| report.write_within(ContextId::Streams, out, budget));
}

fn check_ack(ack: &PathAck) {
    let mut above = None;
    for (start, end) in ack.ranges.iter() {
        assert!(start <= end && above.is_none_or(|above| end + 1 < above));
        above = Some(start);
    }
    check_budgets(|out, budget| ack.write_within(out, budget));
}

/// With any budget there is a frame within it, or none.
fn check_budgets(write: impl Fn(&mut Vec<u8>, usize) -> bool) {
    for budget in [0, 4, 8, 12, 20, 40] {
        let mut out = Vec::new();
        let fits = write(&mut out, budget);
        assert!(out.len() <= budget && fits != out.is_empty());
    }
}

fn parse_symbol(bytes: &[u8], accepted: &mut Accepted) {
    let Ok(content) = frames_in_symbol(bytes) else { return };
    let Ok(content) = content.collect::<Result<Vec<_>, _>>() else { return };
    accepted.symbols += 1;
    // The length of the last frame may be omitted or added when it is written.
    let mut builder = SymbolBuilder::new(bytes.len() + 9);
    for frame in &content {
        assert!(frame.offset + frame.data.len() as u64 <= VARINT_MAX);
        builder.push(*frame);
    }
    let symbol = builder.finish();
    let again: Result<Vec<_>, _> = frames_in_symbol(&symbol).expect("what we wrote").collect();
    assert_eq!(again, Ok(content));
}

fn parse_parameters(bytes: &[u8], accepted: &mut Accepted) {
    let mut out = Vec::new();
    if let Ok(parameters) = Parameters::parse_from_client(bytes) {
        accepted.parameters += 1;
        parameters.write(&mut out);
        assert_eq!(Parameters::parse_from_client(&out), Ok(parameters));
    }
    out.clear();
    if let Ok(answer) = Parameters::parse_from_server(bytes) {
        accepted.parameters += 1;
        match &answer {
            ServerAnswer::Accepted(parameters) => parameters.write(&mut out),
            ServerAnswer::Refused(refusal) => refusal.write(&mut out),
        }
        assert_eq!(Parameters::parse_from_server(&out), Ok(answer));
    }
}

/// Valid input of every kind.
fn samples() -> Vec<Vec<u8>> {
    let mut samples = Vec::new();
    sample_packets(&mut samples);
    sample_frames(&mut samples);
    sample_parameters(&mut samples);
    let mut builder = SymbolBuilder::new(60);
    for (id, offset, data, fin) in
        [(0, 0, &b"first"[..], false), (5, 1 << 40, b"", true), (4, 70, b"last", false)]
    {
        builder.push(StreamFrame { id: StreamId(id), offset, data, fin });
    }
    let mut symbol = builder.finish();
    samples.push(symbol.clone());
    symbol.resize(60, 0);
    samples.push(symbol);
    samples
}

fn sample_packets(samples: &mut Vec<Vec<u8>>) {
    let id = |byte| ConnectionId::new(&[byte; ConnectionId::LOCAL]).expect("8 bytes");
    let header = LongHeader { destination: id(1), source: id(2) };
    let message = &[3; 100];
    let packets = [
        LongPacket::Initiate { header, token: &[4; 24], message },
        LongPacket::InitiatePart { header, part: &[5; PART_LENGTH] },
        LongPacket::Response { header, message },
        LongPacket::ResponsePart { header, part: &[6; PART_LENGTH] },
        LongPacket::Cookie { header, token: &[5; 24] },
        LongPacket::Reject { header, reason: RejectReason::Unopened },
    ];
    for packet in packets {
        let mut out = Vec::new();
        packet.write(&mut out);
        samples.push(out);
    }
    let mut out = Vec::new();
    VersionNegotiation::write(&mut out, &[1; 8], &[2; 20]);
    samples.push(out);
    samples.push([&[0x42][..], &[6; 8], &[0, 1, 2], &[0x55; 30]].concat());
}

/// A combination of each kind.
const SAMPLES: [Combination<'_>; 4] = [
    Combination::Source { index: 1_000, floor: 990, symbol: &[7; 50] },
    Combination::Coded { first: 997, length: 4, density: 15, key: 7, floor: 990, payload: &[8; 50] },
    Combination::Recoded { first: 997, coefficients: &[1, 2, 3], floor: 990, payload: &[9; 50] },
    Combination::Segment {
        first: 997,
        length: 4,
        density: 15,
        key: 7,
        floor: 990,
        offset: 1_200,
        total: 1_428,
        piece: &[10; 50],
    },
];

fn sample_frames(samples: &mut Vec<Vec<u8>>) {
    let id = StreamId(4);
    let ack = |ranges: &[(u64, u64)], ecn| PathAck {
        path: PathId(0),
        ranges: AckRanges::from_descending(ranges.iter().copied()).expect("at least one range"),
        delay: Duration::from_micros(400),
        ecn,
    };
    let report = DecoderReport {
        number: 1_200,
        oldest_undecoded: 1_000,
        oldest_unseen: 1_002,
        known_end: 1_100,
        intervals: vec![
            MissingInterval { first: 1_000, end: 1_003, missing: 1 },
            MissingInterval { first: 1_050, end: 1_070, missing: 20 },
        ],
        reported_end: 1_100,
    };
    let marks = Some(EcnCounts { ect0: 1_000, ect1: 0, ce: 3 });
    let all = [
        Frame::Padding(5),
        Frame::Ping,
        Frame::PathAck(ack(&[(900, 1_000), (10, 500)], None)),
        Frame::PathAck(ack(&[(900, 1_000), (897, 897), (890, 895)], marks)),
        Frame::DecoderReport(ContextId::Messages, report),
        Frame::Skippable { kind: 89, contents: &[11; 5] },
        Frame::MaxData(1 << 20),
        Frame::MaxStreamData { id, credit: 1 << 16 },
        Frame::MaxStreams(100),
        Frame::ResetStream { id, code: 1, final_size: 5_000 },
        Frame::StopSending { id, code: 0 },
        Frame::PathChallenge([1; 8]),
        Frame::PathResponse([2; 8]),
        Frame::ResetToken([3; 16]),
        Frame::NewTicket(NewTicket { lifetime: 60, streams: 4, secret: [5; 32], token: &[6; 108] }),
        Frame::KeyShare([4; 32]),
        Frame::Close { by_application: true, code: 300, reason: "grüße" },
    ];
    let mut row = Vec::new();
    let combinations = SAMPLES.map(|combination| Frame::Combination(ContextId::Interactive, combination));
    for frame in all.into_iter().chain(combinations) {
        let mut out = Vec::new();
        frame.write(&mut out);
        if !frame.is_combination() {
            row.extend_from_slice(&out);
        }
        samples.push(out);
    }
    samples.push(row);
}

fn sample_parameters(samples: &mut Vec<Vec<u8>>) {
    let connection_id = ConnectionId::new(&[1; 8]).expect("8 bytes");
    let client = Parameters {
        connection_id,
        symbol_size_max: 1_154,
        symbol_window: 4_096,
        max_data: 1 << 24,
        max_stream_data: 1 << 20,
        max_streams: 1_000,
        idle_timeout: Some(Duration::from_secs(30)),
        max_ack_delay: Duration::from_millis(25),
        datagram_size_max: 1_500,
        reset_token: None,
        aead_suites: vec![1, 2],
        profile: ProfileParameter::default(),
        block_size: 128,
        blocks: 64,
        hybrid: Some(HybridParameter::of_key(&[8; 1184]).0),
        versions: vec![VERSION],
        context_window: 1024,
        tickets: false,
        paths: 1,
        path_mode: 0,
        path_ids: Vec::new(),
        addresses: Vec::new(),
    };
    let wants_tickets = Parameters { tickets: true, ..client.clone() };
    let server = Parameters {
        reset_token: Some([7; 16]),
        aead_suites: vec![1],
        hybrid: Some(HybridParameter::of_ciphertext(&[9; PART_LENGTH])),
        ..client.clone()
    };
    for parameters in [client, wants_tickets, server] {
        let mut out = Vec::new();
        parameters.write(&mut out);
        samples.push(out);
    }
    let mut out = Vec::new();
    Refusal { connection_id, code: 1, reason: "unlisted".to_owned() }.write(&mut out);
    samples.push(out);
}
