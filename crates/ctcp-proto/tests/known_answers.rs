//! The test vectors of the wire format: what docs/test-vectors.txt says is what is parsed and written.

use std::time::Duration;

use ctcp_proto::crypto::FirstPacketKey;
use ctcp_proto::wire::{
    AckFrequency, AckRanges, Combination, DecoderReport, EcnCounts, Fragment, FragmentBuilder, Frame,
    LongHeader, LongPacket, MissingInterval, NewTicket, PART_LENGTH, Parameters, PathAck, ProfileParameter,
    Refusal, RejectReason, ServerAnswer, StreamFrame, SymbolBuilder, VERSION, VersionNegotiation,
    fragments_in_symbol, frames, frames_in_symbol,
};
use ctcp_proto::{ConnectionId, ContextId, PathId, SecretKey, StreamId};

const INITIAL_ID: &str = "8394c8f03e515708";
const CLIENT_ID: &str = "c1c2c3c4c5c6c7c8";
const SERVER_ID: &str = "5152535455565758";

/// The bytes of a hexadecimal text that must be on the page, after `name`.
fn on_page(name: &str, hexadecimal: &str) -> Vec<u8> {
    let page: String = include_str!("../../../docs/test-vectors.txt").split_whitespace().collect();
    let digits: String = hexadecimal.split_whitespace().collect();
    let name: String = name.split_whitespace().collect();
    assert!(page.contains(&format!("{name}{digits}")), "docs/test-vectors.txt does not say {name} {digits}");
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

fn id(hexadecimal: &str) -> ConnectionId {
    let number = u64::from_str_radix(hexadecimal, 16).expect("digits");
    ConnectionId::new(&number.to_be_bytes()).expect("8 bytes")
}

fn header(destination: &str, source: &str) -> LongHeader {
    LongHeader { destination: id(destination), source: id(source) }
}

#[test]
fn packets_of_the_handshake_are_as_on_the_page() {
    let answer = header(CLIENT_ID, INITIAL_ID);
    let cases = [
        (
            "INITIATE",
            "c0 43540004 08 8394c8f03e515708 08 c1c2c3c4c5c6c7c8 02 aabb 03 010203",
            LongPacket::Initiate {
                header: header(INITIAL_ID, CLIENT_ID),
                token: &[0xaa, 0xbb],
                message: &[1, 2, 3],
            },
        ),
        (
            "RESPONSE",
            "d0 43540004 08 c1c2c3c4c5c6c7c8 08 5152535455565758 03 010203",
            LongPacket::Response { header: header(CLIENT_ID, SERVER_ID), message: &[1, 2, 3] },
        ),
        (
            "COOKIE",
            "e0 43540004 08 c1c2c3c4c5c6c7c8 08 8394c8f03e515708 02 aabb",
            LongPacket::Cookie { header: answer, token: &[0xaa, 0xbb] },
        ),
        (
            "REJECT, busy",
            "f0 43540004 08 c1c2c3c4c5c6c7c8 08 8394c8f03e515708 02",
            LongPacket::Reject { header: answer, reason: RejectReason::Busy },
        ),
    ];
    let sealed = on_page("sealed, index 1", "5f09408b3125ab08eb838f3e66bd9b5eefb1384f5bfa49");
    let early = LongPacket::Early { header: header(INITIAL_ID, CLIENT_ID), index: 1, sealed: &sealed };
    let mut out = Vec::new();
    early.write(&mut out);
    FirstPacketKey::new(&SecretKey::from_bytes([2; 32]).public_key()).write_tag(&mut out);
    let head = "c2 43540004 08 8394c8f03e515708 08 c1c2c3c4c5c6c7c8 01 5f09408b3125ab08eb838f3e66bd9b5eefb1384f5bfa49";
    let tag = on_page("then the tag", "b1bbc47ee6e0135670eb91e3abaf8e44");
    assert_eq!(out, [on_page("EARLY 1", head), tag].concat());
    assert_eq!(LongPacket::parse(&out), Ok(early));
    for (name, hexadecimal, packet) in cases {
        let mut bytes = on_page(name, hexadecimal);
        if matches!(packet, LongPacket::Initiate { .. }) {
            bytes.resize(1200, 0);
        }
        let mut out = Vec::new();
        packet.write(&mut out);
        assert_eq!(out, bytes, "{name}");
        assert_eq!(LongPacket::parse(&bytes), Ok(packet), "{name}");
    }
}

#[test]
fn the_tag_of_the_first_packet_is_as_on_the_page() {
    let mut datagram =
        on_page("INITIATE", "c0 43540004 08 8394c8f03e515708 08 c1c2c3c4c5c6c7c8 02 aabb 03 010203");
    datagram.resize(1200, 0);
    FirstPacketKey::new(&SecretKey::from_bytes([2; 32]).public_key()).write_tag(&mut datagram);
    let tag = on_page("then zeros up to 1184 bytes, then the tag", "ae2e895b70ca3189739582d0ae2c12cd");
    assert_eq!(datagram[1184..], tag);

    let mut part = on_page("its part", "c1 43540004 08 8394c8f03e515708 08 c1c2c3c4c5c6c7c8");
    part.resize(part.len() + PART_LENGTH, 0xaa);
    part.extend(on_page("then 1088 bytes 0xaa, then the tag", "d482cfc9341233a7453d0e6846ace8a2"));
    let mut out = Vec::new();
    LongPacket::InitiatePart { header: header(INITIAL_ID, CLIENT_ID), part: &[0xaa; PART_LENGTH] }
        .write(&mut out);
    FirstPacketKey::new(&SecretKey::from_bytes([2; 32]).public_key()).write_tag(&mut out);
    assert_eq!(out, part);
}

#[test]
fn a_version_negotiation_is_as_on_the_page() {
    let hexadecimal = "c0 00000000 08 c1c2c3c4c5c6c7c8 08 8394c8f03e515708 43540004";
    let mut out = Vec::new();
    VersionNegotiation::write(&mut out, id(CLIENT_ID).as_bytes(), id(INITIAL_ID).as_bytes());
    assert_eq!(out, on_page("Version Negotiation", hexadecimal));
}

#[test]
fn parameters_are_as_on_the_page() {
    let bytes = on_page(
        "client",
        "0108 0102030405060708 0202 4482 0302 5000 0404 81000000 0504 80100000 0602 43e8 0704 80007530 0804 800061a8
         0902 45dc 0b02 0102 0c08 01 00 01 02 0010c8e0 0d02 4080 0e02 4040 1104 43540004 1202 4400",
    );
    let profile = ProfileParameter {
        profile: 1,
        code: 0,
        congestion: 1,
        redundancy: 2,
        redundancy_parameter: 1_100_000,
    };
    let parameters = Parameters {
        connection_id: id("0102030405060708"),
        symbol_size_max: 1154,
        symbol_window: 4096,
        max_data: 1 << 24,
        max_stream_data: 1 << 20,
        max_streams: 1000,
        idle_timeout: Some(Duration::from_secs(30)),
        max_ack_delay: Duration::from_millis(25),
        datagram_size_max: 1500,
        reset_token: None,
        aead_suites: vec![1, 2],
        profile,
        block_size: 128,
        blocks: 64,
        hybrid: None,
        versions: vec![VERSION],
        context_window: 1024,
        tickets: false,
        paths: 1,
        path_mode: 0,
        path_ids: Vec::new(),
        addresses: Vec::new(),
    };
    let mut out = Vec::new();
    parameters.write(&mut out);
    assert_eq!(out, bytes);
    assert_eq!(Parameters::parse_from_client(&bytes), Ok(parameters));

    let bytes = on_page("refusal", "0108 5152535455565758 0f05 02 66756c6c");
    let refusal = Refusal { connection_id: id(SERVER_ID), code: 2, reason: "full".to_owned() };
    let mut out = Vec::new();
    refusal.write(&mut out);
    assert_eq!(out, bytes);
    assert_eq!(Parameters::parse_from_server(&bytes), Ok(ServerAnswer::Refused(refusal)));
}

/// An acknowledgement of packets.
fn of_packets(path: u8, ranges: &[(u64, u64)], ecn: Option<EcnCounts>) -> PathAck {
    PathAck {
        path: PathId(path),
        ranges: AckRanges::from_descending(ranges.iter().copied()).expect("at least one range"),
        delay: Duration::ZERO,
        ecn,
    }
}

#[test]
fn acknowledgements_are_as_on_the_page() {
    let full =
        PathAck { delay: Duration::from_micros(400), ..of_packets(0, &[(18, 20), (14, 15), (9, 9)], None) };
    let as_ranges = on_page("after 400 us", "02 00 14 4190 02 02 0101 0300");
    assert_eq!(frames(&as_ranges).collect::<Vec<_>>(), [Ok(Frame::PathAck(full.clone()))]);
    let ecn = |ect0, ce| Some(EcnCounts { ect0, ect1: 0, ce });
    check_frames([
        ("bitmap", "03 00 14 4190 02 cc20", Frame::PathAck(full)),
        (
            "ECT(0) 5, CE 1",
            "04 01 412b 00 00 412b 05 00 01",
            Frame::PathAck(of_packets(1, &[(0, 299)], ecn(5, 1))),
        ),
        ("ECT(0) 10", "05 00 09 00 00 0a 00 00", Frame::PathAck(of_packets(0, &[(9, 9)], ecn(10, 0)))),
    ]);
}

#[test]
fn reports_are_as_on_the_page() {
    let report = DecoderReport {
        number: 21,
        oldest_undecoded: 100,
        oldest_unseen: 102,
        known_end: 110,
        intervals: vec![
            MissingInterval { first: 100, end: 103, missing: 1 },
            MissingInterval { first: 105, end: 107, missing: 2 },
        ],
        reported_end: 110,
    };
    check_frames([(
        "reported end 110",
        "06 15 4064 02 0a 02 000301 020202 0a",
        Frame::DecoderReport(ContextId::Streams, report),
    )]);
}

#[test]
fn frames_of_unknown_types_are_as_on_the_page() {
    let frame = Frame::Skippable { kind: 89, contents: &[0xab, 0xcd] };
    check_frames([("two bytes", "4059 02 abcd", frame)]);
}

#[test]
fn combinations_are_as_on_the_page() {
    let payload = &[0xc0, 0xff, 0xee];
    let symbol = &[0, 5, 0x0a, 4, 2, b'h', b'i'];
    check_frames([
        (
            "the symbol below",
            "08 43e8 0a 0005 0a 04 02 6869",
            Frame::Combination(ContextId::Streams, Combination::Source { index: 1000, floor: 990, symbol }),
        ),
        (
            "floor 990",
            "0a 43e5 f004 0007 07 c0ffee",
            Frame::Combination(
                ContextId::Streams,
                Combination::Coded { first: 997, length: 4, density: 15, key: 7, floor: 990, payload },
            ),
        ),
        (
            "floor 997",
            "0c 43e5 03 010203 00 c0ffee",
            Frame::Combination(
                ContextId::Streams,
                Combination::Recoded { first: 997, coefficients: &[1, 2, 3], floor: 997, payload },
            ),
        ),
        (
            "to 1203 of 1428",
            "0e 43e5 f004 0007 07 44b0 4594 c0ffee",
            Frame::Combination(
                ContextId::Streams,
                Combination::Segment {
                    first: 997,
                    length: 4,
                    density: 15,
                    key: 7,
                    floor: 990,
                    offset: 1200,
                    total: 1428,
                    piece: payload,
                },
            ),
        ),
        (
            "the same of context 1",
            "0b 01 43e5 f004 0007 07 c0ffee",
            Frame::Combination(
                ContextId::Messages,
                Combination::Coded { first: 997, length: 4, density: 15, key: 7, floor: 990, payload },
            ),
        ),
    ]);
}

#[test]
fn control_frames_are_as_on_the_page() {
    let data = [1, 2, 3, 4, 5, 6, 7, 8];
    let close = |by_application, code, reason| Frame::Close { by_application, code, reason };
    check_frames([
        ("PADDING, three", "000000", Frame::Padding(3)),
        ("PING", "01", Frame::Ping),
        ("MAX_DATA 2^20", "10 80100000", Frame::MaxData(1 << 20)),
        ("2^16", "11 04 80010000", Frame::MaxStreamData { id: StreamId(4), credit: 1 << 16 }),
        ("MAX_STREAMS 100", "12 4064", Frame::MaxStreams(100)),
        (
            "final size 5000",
            "13 04 01 5388",
            Frame::ResetStream { id: StreamId(4), code: 1, final_size: 5000 },
        ),
        ("STOP_SENDING stream 5, code 0", "14 05 00", Frame::StopSending { id: StreamId(5), code: 0 }),
        ("PATH_CHALLENGE", "18 0102030405060708", Frame::PathChallenge(data)),
        ("PATH_ABANDON path 3", "1f 03", Frame::PathAbandon(PathId(3))),
        (
            "NEW_CONNECTION_ID path 2",
            "1a 02 08 e1e2e3e4e5e6e7e8",
            Frame::NewConnectionId {
                path: PathId(2),
                id: ConnectionId::new(&[0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8]).expect("8 bytes"),
            },
        ),
        ("PATH_PREFERENCE 64", "20 40", Frame::PathPreference(64)),
        (
            "ACK_FREQUENCY 8 packets, 10 ms, gaps wait",
            "4042 04 08 6710 00",
            Frame::AckFrequency(AckFrequency {
                packets: 8,
                delay: Duration::from_millis(10),
                hurries_at_gaps: false,
            }),
        ),
        ("ARRIVED packet 300 of path 2", "4043 03 02 412c", Frame::Arrived { path: PathId(2), largest: 300 }),
        (
            "RESET_TOKEN",
            "15 000102030405060708090a0b0c0d0e0f",
            Frame::ResetToken(core::array::from_fn(|i| i as u8)),
        ),
        (
            "KEY_SHARE",
            "16 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            Frame::KeyShare(core::array::from_fn(|index| index as u8)),
        ),
        (
            "token 0bad",
            "1e 80005460 04 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a 02 0bad",
            Frame::NewTicket(NewTicket {
                lifetime: 21_600,
                streams: 4,
                secret: [10; 32],
                token: &[0x0b, 0xad],
            }),
        ),
        ("PATH_RESPONSE", "19 0102030405060708", Frame::PathResponse(data)),
        ("FLOW_CONTROL_ERROR", "1c 04 00", close(false, 4, "")),
        ("code 300, \"bye\"", "1d 412c 03 627965", close(true, 300, "bye")),
    ]);
}

fn check_frames<const N: usize>(cases: [(&str, &str, Frame<'_>); N]) {
    for (name, hexadecimal, frame) in cases {
        let bytes = on_page(name, hexadecimal);
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(out, bytes, "{name}");
        assert_eq!(frames(&bytes).collect::<Vec<_>>(), [Ok(frame)], "{name}");
    }
}

#[test]
fn symbols_are_as_on_the_page() {
    let frame = |id, offset, data, fin| StreamFrame { id: StreamId(id), offset, data, fin };
    let two = [frame(4, 0, &b"abc"[..], false), frame(8, 70, &b"wxyz"[..], true)];
    let cases = [
        ("\"hi\" from 0", "0005 0a 04 02 6869", 100, &[frame(4, 0, &b"hi"[..], false)][..]),
        ("from 70, the end", "000e 0a 04 03 616263 0d 08 4046 7778797a", 16, &two[..]),
    ];
    for (name, hexadecimal, capacity, content) in cases {
        let bytes = on_page(name, hexadecimal);
        let mut builder = SymbolBuilder::new(capacity);
        content.iter().for_each(|frame| builder.push(*frame));
        assert_eq!(builder.finish(), bytes, "{name}");
        let read: Result<Vec<_>, _> = frames_in_symbol(&bytes).expect("whole").collect();
        assert_eq!(read.as_deref(), Ok(content), "{name}");
    }
}

#[test]
fn symbols_of_messages_are_as_on_the_page() {
    let bytes = on_page("\"abc\" from 1200", "000f 10 03 02 6869 11 04 4594 44b0 03 616263");
    let whole = Fragment { message: 3, total: 2, offset: 0, data: b"hi" };
    let part = Fragment { message: 4, total: 1428, offset: 1200, data: b"abc" };
    let mut builder = FragmentBuilder::reusing(Vec::new(), 100);
    [whole, part].into_iter().for_each(|fragment| builder.push(fragment));
    assert_eq!(builder.finish(), bytes);
    let read: Result<Vec<_>, _> = fragments_in_symbol(&bytes).expect("whole").collect();
    assert_eq!(read, Ok(vec![whole, part]));
}
