use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::*;

fn connect(text: &str) -> Request {
    Request::Connect(text.parse().unwrap())
}

#[test]
fn a_connect_head_has_the_documented_bytes() {
    let name = connect("a.example:443").encode();
    assert_eq!(name, b"\x01\x01\x00\x0d\x03\x09a.example\x01\xbb");
    let ipv4 = connect("192.0.2.1:80").encode();
    assert_eq!(ipv4, b"\x01\x01\x00\x07\x01\xc0\x00\x02\x01\x00\x50");
    let ipv6 = connect("[2001:db8::1]:80").encode();
    assert_eq!(ipv6, b"\x01\x01\x00\x13\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50");
}

#[test]
fn file_heads_have_the_documented_bytes() {
    let identity = FileIdentity { size: 0x0102, modified: -1 };
    let get = Request::Get(GetRequest { name: "a/b".into(), have: 7, identity }).encode();
    let numbers = b"\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(get, [&b"\x01\x02\x00\x1d\x00\x03a/b"[..], numbers].concat());
    let put = Request::Put(PutRequest { name: "a/b".into(), identity }).encode();
    assert_eq!(put, [&b"\x01\x03\x00\x15\x00\x03a/b"[..], &numbers[8..]].concat());
    let reply = GetAccepted { identity, start: 7 }.reply();
    assert_eq!(reply.encode(), [&b"\x01\x00\x00\x18"[..], &numbers[8..], &numbers[..8]].concat());
    assert_eq!(GetAccepted::from_reply(&reply).unwrap(), GetAccepted { identity, start: 7 });
}

#[tokio::test]
async fn a_request_is_read_without_the_bytes_after_it() {
    let request = connect("example.com:80");
    let bytes = [request.encode(), b"GET / HTTP/1.1".to_vec()].concat();
    let mut reader = &bytes[..];
    assert_eq!(Request::read(&mut reader).await.unwrap(), request);
    assert_eq!(reader, b"GET / HTTP/1.1");
}

#[tokio::test]
async fn unknown_versions_kinds_and_lengths_are_refused_with_their_code() {
    for (bytes, code) in [
        (&b"\x02\x01\x00\x00"[..], ReplyCode::UnsupportedVersion),
        (b"\x01\x09\x00\x00", ReplyCode::CommandNotSupported),
        (b"\x01\x01\xff\xff", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x00", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x02\x01\x7f", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x08\x01\x7f\0\0\x01\x00\x50!", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x07\x01\x7f\0\0\x01\x00\x00", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x04\x03\x00\x00\x50", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x05\x03\x01\x00\x00\x50", ReplyCode::BadRequest),
        (b"\x01\x02\x00\x02\x00\xff", ReplyCode::BadRequest),
    ] {
        let error = Request::read(&mut &bytes[..]).await.expect_err("refused");
        assert_eq!(error.reply_code(), code, "{bytes:?}: {error}");
    }
}

#[test]
fn every_code_has_one_number_and_unknown_numbers_are_preserved() {
    for number in 0..=u8::MAX {
        assert_eq!(ReplyCode::from_number(number).number(), number);
    }
    assert_eq!(ReplyCode::NotAllowed.socks5(), 2);
    assert_eq!(ReplyCode::TooManyStreams.socks5(), 1);
    assert_eq!(ReplyCode::Unknown(0x99).socks5(), 1);
}

#[test]
fn texts_are_truncated_at_a_character_and_shown_without_control_characters() {
    let reply = Reply::failure(ReplyCode::GeneralFailure, &"ä".repeat(400));
    assert_eq!(reply.text(), "ä".repeat(256));
    let reply = Reply::failure(ReplyCode::GeneralFailure, "one\r\n\x1b[31mtwo");
    assert_eq!(reply.text(), "one\\r\\n\\u{1b}[31mtwo");
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_a_parsed_request_encodes_to_the_same_bytes(
        kind in 0u8..5, body in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Ok(request) = Request::decode(kind, &body) {
            let again = request.encode();
            let parsed = Request::decode(again[1], &again[4..]).unwrap();
            prop_assert_eq!(parsed, request);
        }
        let reply = Reply { code: ReplyCode::Succeeded, body };
        let _ = (reply.bound().is_ok(), GetAccepted::from_reply(&reply).is_ok(), PutAccepted::from_reply(&reply).is_ok());
        let _ = reply.text();
    }

    #[test]
    fn requests_survive_the_wire(
        name in "[a-z0-9/.]{0,300}", have: u64, size: u64, modified: i64, address: [u8; 16], port in 1u16..,
    ) {
        let identity = FileIdentity { size, modified };
        let target = TargetAddress::from(SocketAddr::new(IpAddr::from(address), port));
        for request in [
            Request::Get(GetRequest { name: name.clone(), have, identity }),
            Request::Put(PutRequest { name: name.clone(), identity }),
            Request::ConnectLowLatency(target.clone()),
            Request::Connect(target),
        ] {
            let bytes = request.encode();
            prop_assert_eq!(Request::decode(bytes[1], &bytes[4..]).unwrap(), request);
        }
        let bound = SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(port.into())), port);
        prop_assert_eq!(Reply::connected(bound).bound().unwrap(), bound);
    }
}

#[test]
fn a_way_that_no_request_can_hold_is_noticed_before_it_is_sent() {
    let way = |count: usize, name: &str| Carry {
        repair: ctcp::HopRepair::Combinations,
        stops: vec![format!("{name}:1={}", ctcp::PublicKey([7; 32])).parse().unwrap(); count],
    };
    let long = vec!["a".repeat(60); 4].join(".");
    assert!(way(0, "a").fits() && way(STOPS_MAX, "relay.example").fits() && way(5, &long).fits());
    assert!(!way(STOPS_MAX + 1, "a").fits() && !way(300, "a").fits() && !way(STOPS_MAX, &long).fits());
    let carry = way(STOPS_MAX, "relay.example");
    let encoded = Request::Carry(carry.clone()).encode();
    assert_eq!(Request::decode(encoded[1], &encoded[4..]).unwrap(), Request::Carry(carry));
}

#[test]
fn a_relay_grants_repair_or_a_port() {
    let port = core::num::NonZeroU16::new(0x1234).unwrap();
    let cases: [(Granted, &[u8]); 3] = [
        (Granted::Repair(ctcp::HopRepair::Combinations), &[1]),
        (Granted::Repair(ctcp::HopRepair::Repetitions), &[2]),
        (Granted::Forward { port }, &[3, 0x12, 0x34]),
    ];
    for (granted, body) in cases {
        let reply = Carry::reply(granted);
        assert_eq!((&*reply.body, Carry::granted(&reply).unwrap()), (body, granted));
    }
    let wrong: [&[u8]; 7] = [&[], &[0], &[4], &[1, 0], &[3], &[3, 0, 0], &[3, 0, 1, 0]];
    for body in wrong {
        let reply = Reply { code: ReplyCode::Succeeded, body: body.to_vec() };
        assert!(Carry::granted(&reply).is_err(), "{body:?}");
    }
}
