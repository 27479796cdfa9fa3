use proptest::prelude::*;
use tokio::io::duplex;

use super::*;
use crate::memory::stream_pair;

async fn ask(input: &[u8]) -> Result<HttpRequest, HttpError> {
    let (mut application, mut proxy) = duplex(256 * 1024);
    application.write_all(input).await.unwrap();
    application.shutdown().await.unwrap();
    read_request(&mut proxy).await
}

/// Target, rewritten head with the beginning of the body, and framing.
async fn plain(input: &str) -> (String, String, Framing) {
    match ask(input.as_bytes()).await.unwrap() {
        HttpRequest::Plain { target, early, framing } => {
            (target.to_string(), String::from_utf8(early).unwrap(), framing)
        }
        other => panic!("{other:?}"),
    }
}

async fn status(input: &[u8]) -> u16 {
    match ask(input).await {
        Err(HttpError::Status((code, _), text)) => {
            assert!(!text.is_empty());
            code
        }
        other => panic!("{:?} -> {other:?}", String::from_utf8_lossy(input)),
    }
}

#[tokio::test]
async fn connect_opens_a_tunnel_and_keeps_what_came_with_it() {
    for (input, to, ahead) in [
        (
            &b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n\x16\x03\x01"[..],
            "example.com:443",
            &b"\x16\x03\x01"[..],
        ),
        (b"CONNECT [::1]:22 HTTP/1.0\r\n\r\n", "[::1]:22", b""),
        (b"\r\n\r\nCONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\n", "10.0.0.1:1", b""),
    ] {
        let HttpRequest::Tunnel { target, early } = ask(input).await.unwrap() else { panic!() };
        assert_eq!((target.to_string().as_str(), &early[..]), (to, ahead));
    }
}

#[tokio::test]
async fn a_plain_request_is_rewritten_to_origin_form_without_hop_fields() {
    let (target, head, framing) = plain(
        "GET http://example.com/a?b=c#d HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nUser-Agent:  curl/8\t\r\nX-End: to end\r\n\r\n",
    )
    .await;
    assert_eq!(target, "example.com:80");
    assert_eq!(
        head,
        "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nUser-Agent: curl/8\r\nX-End: to end\r\nConnection: close\r\n\r\n"
    );
    assert!(framing.is_done());
}

#[tokio::test]
async fn urls_are_split_as_they_are_written() {
    for (url, to, line) in [
        ("http://h", "h:80", "GET / HTTP/1.1\r\nHost: h\r\n"),
        ("HTTP://h:8080", "h:8080", "GET / HTTP/1.1\r\nHost: h:8080\r\n"),
        ("http://h?q", "h:80", "GET /?q HTTP/1.1\r\nHost: h\r\n"),
        ("http://[::1]:81/x", "[::1]:81", "GET /x HTTP/1.1\r\nHost: [::1]:81\r\n"),
        ("http://[::1]/", "[::1]:80", "GET / HTTP/1.1\r\nHost: [::1]\r\n"),
        ("http://10.0.0.1/http://x/", "10.0.0.1:80", "GET /http://x/ HTTP/1.1\r\nHost: 10.0.0.1\r\n"),
    ] {
        let (target, head, _) = plain(&format!("GET {url} HTTP/1.1\r\n\r\n")).await;
        assert_eq!(target, to);
        assert_eq!(head, format!("{line}Connection: close\r\n\r\n"), "{url}");
    }
    let (_, head, _) = plain("OPTIONS http://h HTTP/1.1\r\n\r\n").await;
    assert!(head.starts_with("OPTIONS * HTTP/1.1\r\n"));
    let (_, head, _) = plain("GET http://h/ HTTP/1.0\r\n\r\n").await;
    assert!(head.starts_with("GET / HTTP/1.0\r\n"));
}

#[tokio::test]
async fn a_body_goes_on_and_what_follows_it_does_not() {
    let (_, head, framing) =
        plain("POST http://h/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET http://victim/ HTTP/1.1\r\n\r\n")
            .await;
    assert!(head.ends_with("\r\n\r\nbody"));
    assert!(framing.is_done());
    let (_, head, framing) =
        plain("POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET /").await;
    assert!(head.ends_with("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n"));
    assert!(framing.is_done());
    let (_, _, framing) = plain("POST http://h/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody").await;
    assert_eq!(framing, Framing::Length(5));
}

#[tokio::test]
async fn framing_fields_cannot_be_hidden_by_connection() {
    let (_, head, _) =
        plain("POST http://h/ HTTP/1.1\r\nContent-Length: 4\r\nConnection: content-length, host\r\n\r\nbody")
            .await;
    assert!(head.contains("Content-Length: 4\r\n") && head.contains("Host: h\r\n"));
}

#[tokio::test]
async fn what_is_no_request_gets_the_status_that_says_so() {
    for (input, code) in [
        (&b"GET\r\n\r\n"[..], 400),
        (b"GET http://h/ HTTP/1.1 x\r\n\r\n", 400),
        (b"GET  http://h/ HTTP/1.1\r\n\r\n", 400),
        (b"G@T http://h/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://h/ HTTP/2.0\r\n\r\n", 505),
        (b"GET http://h/ HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET http://h/ HTTP/1.1\r\nName : v\r\n\r\n", 400),
        (b"GET http://h/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        (b"GET http://h/ HTTP/1.1\r\nA: b\nB: c\r\n\r\n", 400),
        (b"GET http://h/ HTTP/1.1\r\nA: \0\r\n\r\n", 400),
        (b"GET https://h/ HTTP/1.1\r\n\r\n", 501),
        (b"GET ftp://h/ HTTP/1.1\r\n\r\n", 501),
        (b"GET http:/// HTTP/1.1\r\n\r\n", 400),
        (b"GET http://u:p@h/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://h:0/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://h:99999/ HTTP/1.1\r\n\r\n", 400),
        (b"GET example.com HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT example.com HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT http://example.com/ HTTP/1.1\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxx", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"\x05\x01\x00", 400),
    ] {
        assert_eq!(status(input).await, code, "{:?}", String::from_utf8_lossy(input));
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let line = format!("GET http://h/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
    assert_eq!(status(line.as_bytes()).await, 431);
    assert_eq!(status("x".repeat(HEAD_BYTES_MAX + 1).as_bytes()).await, 431);
    let fits = format!("GET http://h/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX - 100));
    ask(fits.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_head_that_ends_early_is_an_end_and_not_a_hang() {
    for input in [&b""[..], b"\r\n", b"GET http://h/ HTTP/1.1\r\nA: b\r\n"] {
        assert!(matches!(ask(input).await, Err(HttpError::Stream(_))));
    }
}

#[tokio::test]
async fn the_pac_file_names_the_proxy_as_the_browser_calls_it() {
    let local = "127.0.0.1:3128".parse().unwrap();
    let known = LocalStatus { socks5: Some("127.0.0.1:1080".parse().unwrap()), ..LocalStatus::default() };
    for (host, written) in [
        ("Host: proxy.lan:3128\r\n", "\"PROXY proxy.lan:3128; SOCKS5 127.0.0.1:1080\""),
        ("", "\"PROXY 127.0.0.1:3128; SOCKS5 127.0.0.1:1080\""),
        ("Host: \"; evil();\"\r\n", "\"PROXY 127.0.0.1:3128; SOCKS5 127.0.0.1:1080\""),
    ] {
        let request = ask(format!("GET /proxy.pac HTTP/1.1\r\n{host}\r\n").as_bytes()).await.unwrap();
        let HttpRequest::Local(page) = request else { panic!() };
        let (status, kind, body) = page.answer(local, &known);
        assert_eq!((status, kind), (OK, "application/x-ns-proxy-autoconfig"));
        assert!(body.contains(written), "{body}");
    }
}

#[tokio::test]
async fn the_status_page_escapes_and_others_are_not_found() {
    let local = "127.0.0.1:3128".parse().unwrap();
    let known = LocalStatus { link: "<b>&".into(), numbers: vec![("streams", 3)], ..LocalStatus::default() };
    let page = |method, path| LocalPage::new(method, path, None).answer(local, &known);
    let (status, kind, body) = page("GET", "/?x");
    assert_eq!((status, kind), (OK, "text/html; charset=utf-8"));
    assert!(body.contains("&lt;b&gt;&amp;") && body.contains("<td>streams</td><td>3</td>"));
    assert_eq!(page("GET", "/other").0, NOT_FOUND);
    assert_eq!(page("POST", "/").0, METHOD_NOT_ALLOWED);
    assert!(!LocalPage::new("HEAD", "/", None).with_body());
}

#[tokio::test]
async fn failures_are_complete_responses() {
    let mut said = Vec::new();
    write_failure(&mut said, status_of(ReplyCode::NotAllowed), "no").await.unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("HTTP/1.1 403 Forbidden\r\n") && said.ends_with("\r\n\r\nctcp: no\n"));
    assert!(said.contains("Content-Length: 9\r\n") && said.contains("Connection: close\r\n"));
    assert_eq!(status_of(ReplyCode::TimedOut), GATEWAY_TIMEOUT);
    assert_eq!(status_of(ReplyCode::ConnectionRefused), BAD_GATEWAY);
    assert_eq!(status_of(ReplyCode::NetworkUnreachable), BAD_GATEWAY);
    assert_eq!(status_of(ReplyCode::TooManyStreams), UNAVAILABLE);
}

/// What an application reads of a response that comes in pieces of `step` bytes.
async fn respond(response: &[u8], step: usize) -> String {
    let (near, mut far) = stream_pair();
    let mut reader = ResponseHead::new(near);
    let mut read = Vec::new();
    let write = async {
        for part in response.chunks(step) {
            far.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        far.shutdown().await.unwrap();
    };
    let (_, outcome) = tokio::join!(write, reader.read_to_end(&mut read));
    outcome.unwrap();
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn responses_say_that_the_connection_closes() {
    for (response, read) in [
        (
            "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
        ("HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n"),
        ("<html>HTTP/0.9</html>", "<html>HTTP/0.9</html>"),
        ("HTTP/1.1 200 OK\r\nbroken\r\n\r\nbody", "HTTP/1.1 200 OK\r\nbroken\r\n\r\nbody"),
        ("HTTP/1.1 200 OK\r\nCut", "HTTP/1.1 200 OK\r\nCut"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTT", "HTTP/1.1 100 Continue\r\n\r\nHTT"),
        ("H", "H"),
        ("", ""),
    ] {
        for step in [1, 7, 1000] {
            assert_eq!(respond(response.as_bytes(), step).await, read, "{response:?} in steps of {step}");
        }
    }
}

#[tokio::test]
async fn a_request_body_ends_where_its_framing_says() {
    let (application, mut far) = stream_pair();
    let mut body = RequestBody::new(application, Framing::Length(4));
    far.write_all(b"bodyGET http://victim/").await.unwrap();
    far.shutdown().await.unwrap();
    let mut read = Vec::new();
    body.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"body");
}

proptest! {
    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200), is_headed: bool) {
        let start: &[u8] = if is_headed { b"GET http://h/ HTTP/1.1\r\n" } else { b"" };
        let input = [start, &noise, b"\r\n\r\n"].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let _ = ask(&input).await;
            let _ = respond_raw(&input).await;
        });
    }
}

async fn respond_raw(response: &[u8]) -> usize {
    let (near, mut far) = stream_pair();
    far.write_all(response).await.unwrap();
    far.shutdown().await.unwrap();
    let mut read = Vec::new();
    ResponseHead::new(near).read_to_end(&mut read).await.unwrap()
}
