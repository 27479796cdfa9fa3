use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};

use super::*;

/// Writes all input, then reads what the proxy sends until it has finished or waits for more.
async fn talk(input: &[u8]) -> (Result<Asked, Socks5Error>, Vec<u8>, DuplexStream) {
    let (mut application, mut proxy) = duplex(1024);
    application.write_all(input).await.unwrap();
    let outcome = tokio::time::timeout(core::time::Duration::from_millis(200), handshake(&mut proxy)).await;
    let outcome = outcome.unwrap_or_else(|_| Err(Socks5Error::Stream(io::ErrorKind::TimedOut.into())));
    let mut said = vec![0; 1024];
    proxy.write_all(b"!").await.unwrap();
    let count = application.read(&mut said).await.unwrap();
    said.truncate(count - 1);
    (outcome, said, proxy)
}

fn target(outcome: Result<Asked, Socks5Error>) -> String {
    match outcome.unwrap() {
        Asked::Connect(target) => target.to_string(),
        Asked::Associate { .. } => panic!("a target is expected"),
    }
}

const GREETING: &[u8] = &[5, 1, 0];

fn with_request(request: &[u8]) -> Vec<u8> {
    [GREETING, request].concat()
}

#[tokio::test]
async fn connect_accepts_ipv4_ipv6_and_names() {
    for (request, target) in [
        (&b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"[..], "192.0.2.1:80"),
        (b"\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb", "[2001:db8::1]:443"),
        (b"\x05\x01\x00\x03\x0bexample.com\x1f\x90", "example.com:8080"),
        (b"\x05\x01\x00\x03\x09127.0.0.1\x00\x50", "127.0.0.1:80"),
    ] {
        let (outcome, said, _) = talk(&with_request(request)).await;
        assert_eq!(self::target(outcome), target);
        assert_eq!(said, [5, 0]);
    }
}

#[tokio::test]
async fn bytes_sent_early_are_kept_for_the_target() {
    let request = with_request(b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50GET / HTTP/1.0\r\n\r\n");
    let (outcome, _, mut proxy) = talk(&request).await;
    outcome.unwrap();
    let mut ahead = [0; 18];
    proxy.read_exact(&mut ahead).await.unwrap();
    assert_eq!(&ahead, b"GET / HTTP/1.0\r\n\r\n");
}

#[tokio::test]
async fn no_authentication_is_chosen_among_several_methods() {
    let input = b"\x05\x03\x02\x01\x00\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50";
    let (outcome, said, _) = talk(input).await;
    assert_eq!(target(outcome), "1.2.3.4:80");
    assert_eq!(said, [5, 0]);
}

#[tokio::test]
async fn without_an_acceptable_method_the_answer_is_ff() {
    for greeting in [&[5, 1, 2][..], &[5, 0], &[5, 2, 1, 2]] {
        let (outcome, said, _) = talk(greeting).await;
        assert!(matches!(outcome, Err(Socks5Error::NoAcceptableMethod)));
        assert_eq!(said, [5, 0xff]);
    }
}

#[tokio::test]
async fn udp_associate_has_a_port_and_any_address() {
    for (address, expected) in [
        (&b"\x01\0\0\0\0\0\0"[..], 0),
        (b"\x01\x7f\0\0\x01\x10\x92", 4242),
        (b"\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07", 7),
        (b"\x03\x00\0\0", 0),
    ] {
        let (outcome, said, _) = talk(&with_request(&[&[5, 3, 0], address].concat())).await;
        assert!(matches!(outcome, Ok(Asked::Associate { port }) if port == expected), "{address:?}");
        assert_eq!(said, [5, 0]);
    }
}

#[tokio::test]
async fn bind_and_unknown_commands_get_command_not_supported() {
    for command in [2, 0, 9, 255] {
        let (outcome, said, _) = talk(&with_request(&[5, command, 0, 1, 1, 2, 3, 4, 0, 80])).await;
        assert!(matches!(outcome, Err(Socks5Error::Command(got)) if got == command));
        assert_eq!(said, [5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn unknown_address_types_get_their_own_code() {
    for kind in [0, 2, 5, 255] {
        let (outcome, said, _) = talk(&with_request(&[5, 1, 0, kind])).await;
        assert!(matches!(outcome, Err(Socks5Error::AddressType(got)) if got == kind));
        assert_eq!(said, [5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn invalid_targets_get_general_failure() {
    for request in [
        &b"\x05\x01\x00\x03\x00\x00\x50"[..],
        b"\x05\x01\x00\x03\x03a\0b\x00\x50",
        b"\x05\x01\x00\x03\x02\xff\xfe\x00\x50",
        b"\x05\x01\x00\x03\x01a\x00\x00",
        b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x00",
    ] {
        let (outcome, said, _) = talk(&with_request(request)).await;
        assert!(matches!(outcome, Err(Socks5Error::Target(_))), "{request:?}");
        assert_eq!(said, [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn other_protocols_are_recognized_and_get_no_reply() {
    for (input, first) in
        [(&b"GET / HTTP/1.1\r\n"[..], b'G'), (b"\x04\x01\x00\x50", 4), (b"\x16\x03\x01", 0x16)]
    {
        let (outcome, said, _) = talk(input).await;
        assert!(matches!(outcome, Err(Socks5Error::Version(got)) if got == first));
        assert!(said.is_empty());
    }
    let (outcome, _, _) = talk(&with_request(&[4, 1, 0, 1])).await;
    assert!(matches!(outcome, Err(Socks5Error::Version(4))));
}

#[tokio::test]
async fn a_truncated_request_is_an_error_and_does_not_hang() {
    let whole = with_request(b"\x05\x01\x00\x03\x0bexample.com\x1f\x90");
    for length in 0..whole.len() {
        let (mut application, mut proxy) = duplex(1024);
        application.write_all(&whole[..length]).await.unwrap();
        application.shutdown().await.unwrap();
        assert!(matches!(handshake(&mut proxy).await, Err(Socks5Error::Stream(_))), "{length}");
    }
}

#[tokio::test]
async fn replies_carry_the_code_and_the_bound_address() {
    let mut said = Vec::new();
    write_reply(&mut said, ReplyCode::Succeeded, "192.0.2.9:4242".parse().unwrap()).await.unwrap();
    assert_eq!(said, [5, 0, 0, 1, 192, 0, 2, 9, 0x10, 0x92]);
    said.clear();
    write_reply(&mut said, ReplyCode::TooManyStreams, "[::1]:1".parse().unwrap()).await.unwrap();
    assert_eq!(said, [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 1]].concat());
}

proptest! {
    #[test]
    fn random_input_yields_a_target_or_an_error(
        noise in proptest::collection::vec(any::<u8>(), 0..300), is_greeted: bool,
    ) {
        let input = if is_greeted { [&[5, 1, 0, 5, 1, 0][..], &noise].concat() } else { noise };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut application, mut proxy) = duplex(1024);
            application.write_all(&input).await.unwrap();
            application.shutdown().await.unwrap();
            let _ = handshake(&mut proxy).await;
        });
    }
}
