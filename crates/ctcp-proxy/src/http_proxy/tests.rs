use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::memory::{self, Stream, connection_pair, stream_pair};
use crate::request::Reply;

mod streams;

/// A proxy that hands the far end of every opened stream to the test.
struct Fake {
    opened: mpsc::UnboundedSender<(String, Stream)>,
    counters: Arc<Counters>,
}

impl Proxy for Fake {
    type Connection = memory::Connection;

    async fn connect(&self, target: &TargetAddress) -> Result<Opened<memory::Connection>, LinkError> {
        let (stream, far) = stream_pair();
        if self.opened.send((target.to_string(), far)).is_err() {
            return Err(LinkError::Refused(Reply::failure(ReplyCode::NotAllowed, "no\x1b \u{202e}way")));
        }
        let reply = Reply::connected("192.0.2.1:1".parse().unwrap());
        Ok(Opened { stream, connection: connection_pair().0, reply })
    }

    fn on_failed(&self, _: &TargetAddress, reason: &str) {
        assert!(!reason.is_empty());
    }

    fn status(&self) -> LocalStatus {
        LocalStatus::default()
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

/// An application, the streams opened for it, and the outcome of serving it.
struct Setup<S = Stream> {
    application: S,
    targets: mpsc::UnboundedReceiver<(String, Stream)>,
    served: JoinHandle<io::Result<&'static str>>,
    counters: Arc<Counters>,
}

const PATIENCE: Duration = Duration::from_secs(10);

fn setup() -> Setup {
    let (application, near) = stream_pair();
    setup_over(application, near)
}

fn setup_over<S: SpliceEnd + Send + 'static>(application: S, near: S) -> Setup<S> {
    let (opened, targets) = mpsc::unbounded_channel();
    let counters = Arc::new(Counters::new("client"));
    let fake = Fake { opened, counters: counters.clone() };
    let served = tokio::spawn(async move {
        let local = "127.0.0.1:8118".parse().unwrap();
        Ok(match serve(near, local, &fake, PATIENCE).await? {
            Served::Done(mut near) => {
                near.shutdown().await.unwrap();
                let _ = timeout(PATIENCE, tokio::io::copy(&mut near, &mut tokio::io::sink())).await;
                "done"
            }
            Served::Tunnel { mut application, early, .. } => {
                application.write_all(&early).await.unwrap();
                application.shutdown().await.unwrap();
                "tunnel"
            }
        })
    });
    Setup { application, targets, served, counters }
}

/// Reads the head of a message and nothing after it.
async fn head(reader: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(reader.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn text(reader: &mut (impl AsyncRead + Unpin), length: usize) -> String {
    let mut text = vec![0; length];
    reader.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

async fn rest(reader: &mut (impl AsyncRead + Unpin)) -> String {
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.unwrap();
    String::from_utf8(rest).unwrap()
}

async fn say(writer: &mut (impl AsyncWrite + Unpin), text: &str) {
    writer.write_all(text.as_bytes()).await.unwrap();
}

/// Sends `input` and ends the application's half; returns the response. No target is available.
async fn ask(input: &[u8]) -> String {
    let Setup { application, targets, .. } = setup();
    drop(targets);
    let (mut reader, mut writer) = tokio::io::split(application);
    let write = async {
        let _ = writer.write_all(input).await;
        let _ = writer.shutdown().await;
    };
    let mut answer = Vec::new();
    let (_, outcome) = timeout(PATIENCE, async { tokio::join!(write, reader.read_to_end(&mut answer)) })
        .await
        .expect("the proxy answers or closes");
    outcome.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Returns the target of a request and its head as the target receives it.
async fn forwarded(request: &str) -> (String, String) {
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, request).await;
    let (target, mut stream) = targets.recv().await.unwrap();
    (target, head(&mut stream).await)
}

#[tokio::test]
async fn requests_of_one_connection_go_to_their_targets_and_a_stream_is_kept_for_the_next() {
    let Setup { mut application, mut targets, counters, served } = setup();
    say(&mut application, "GET http://a/1 HTTP/1.1\r\n\r\n").await;
    let (name, mut a) = targets.recv().await.unwrap();
    for number in 1..=3 {
        assert_eq!(
            (name.as_str(), head(&mut a).await),
            ("a:80", format!("GET /{number} HTTP/1.1\r\nhost: a\r\n\r\n"))
        );
        say(&mut a, &format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}")).await;
        assert_eq!(head(&mut application).await, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
        assert_eq!(text(&mut application, 1).await, number.to_string());
        if number < 3 {
            say(&mut application, &format!("GET http://a/{} HTTP/1.1\r\n\r\n", number + 1)).await;
        }
    }
    say(&mut application, "GET http://b:81/ HTTP/1.1\r\n\r\n").await;
    let (name, mut b) = targets.recv().await.unwrap();
    assert_eq!(
        (name.as_str(), head(&mut b).await),
        ("b:81", "GET / HTTP/1.1\r\nhost: b:81\r\n\r\n".to_owned())
    );
    assert_eq!(rest(&mut a).await, "", "the stream to the first target ends regularly");
    say(&mut b, "HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(head(&mut application).await, "HTTP/1.1 204 No Content\r\n\r\n");
    application.shutdown().await.unwrap();
    assert_eq!((rest(&mut application).await.as_str(), served.await.unwrap().unwrap()), ("", "done"));
    assert_eq!(counters.streams_failed.value(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let Setup { mut application, mut targets, .. } = setup();
    say(
        &mut application,
        "GET http://a/ HTTP/1.1\r\n\r\nPOST http://b/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
    )
    .await;
    application.shutdown().await.unwrap();
    for name in ["a:80", "b:80"] {
        let (target, mut stream) = targets.recv().await.unwrap();
        assert_eq!(target, name);
        let head = head(&mut stream).await;
        if head.starts_with("POST") {
            assert_eq!(text(&mut stream, 2).await, "hi");
        }
        say(&mut stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{name}")).await;
        tokio::spawn(async move { rest(&mut stream).await });
    }
    let answer = rest(&mut application).await;
    assert!(answer.contains("a:80HTTP/1.1 200 OK") && answer.ends_with("b:80"), "{answer}");
}

#[tokio::test]
async fn connect_opens_a_tunnel_and_keeps_data_sent_with_the_request() {
    for (input, to, ahead) in [
        (
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n\x16\x03\x01",
            "example.com:443",
            "\x16\x03\x01",
        ),
        ("CONNECT [::1]:22 HTTP/1.0\r\n\r\n", "[::1]:22", ""),
        (
            "\r\n\r\nCONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\nGET http://h/ HTTP/1.1\r\n\r\n",
            "10.0.0.1:1",
            "GET http://h/ HTTP/1.1\r\n\r\n",
        ),
    ] {
        let Setup { mut application, mut targets, served, .. } = setup();
        say(&mut application, input).await;
        assert_eq!(targets.recv().await.unwrap().0, to);
        let version = if input.contains("HTTP/1.0") { "1.0" } else { "1.1" };
        let said = rest(&mut application).await;
        assert_eq!(said, format!("HTTP/{version} 200 Connection established\r\n\r\n{ahead}"));
        assert_eq!(served.await.unwrap().unwrap(), "tunnel");
    }
}

#[tokio::test]
async fn a_plain_request_is_rewritten_to_origin_form_without_hop_fields() {
    let (target, head) = forwarded(
        "GET http://example.com/a?b=c#d HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nUser-Agent:  curl/8\t\r\nX-eNd: to end\r\nCookie: a\r\nCookie: b\r\n\r\n",
    )
    .await;
    assert_eq!(target, "example.com:80");
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
    assert_eq!(lines.remove(0), "GET /a?b=c HTTP/1.1");
    lines.sort_unstable();
    assert_eq!(lines, ["Cookie: a", "Cookie: b", "Host: example.com", "User-Agent: curl/8", "X-eNd: to end"]);
}

#[tokio::test]
async fn urls_are_split_as_they_are_written() {
    for (url, to, path, host) in [
        ("http://h", "h:80", "/", "h"),
        ("HTTP://h:8080", "h:8080", "/", "h:8080"),
        ("http://h?q", "h:80", "/?q", "h"),
        ("http://[::1]:81/x", "[::1]:81", "/x", "[::1]:81"),
        ("http://[::1]/", "[::1]:80", "/", "[::1]"),
        ("http://10.0.0.1/http://x/", "10.0.0.1:80", "/http://x/", "10.0.0.1"),
        ("http://h/%7b{a}|\"b\"~", "h:80", "/%7b{a}|\"b\"~", "h"),
    ] {
        for version in ["1.0", "1.1"] {
            let (target, head) = forwarded(&format!("GET {url} HTTP/{version}\r\n\r\n")).await;
            assert_eq!(target, to);
            assert_eq!(head, format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"), "{url}");
        }
    }
}

#[tokio::test]
async fn framing_fields_cannot_be_hidden_by_connection_and_two_framings_do_not_reach_a_target() {
    let (_, head) = forwarded(
        "POST http://h/ HTTP/1.1\r\nContent-Length: 4\r\nConnection: content-length, host\r\n\r\nbody",
    )
    .await;
    assert!(head.contains("Content-Length: 4\r\n") && head.contains("host: h\r\n"), "{head}");
    for fields in
        ["Content-Length: 1\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 1"]
    {
        let (_, head) = forwarded(&format!("POST http://h/ HTTP/1.1\r\n{fields}\r\n\r\n0\r\n\r\n")).await;
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("transfer-encoding: chunked\r\n") && !head.contains("content-length"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn invalid_requests_get_the_matching_status() {
    for (input, code) in [
        ("GET\r\n\r\n", 400),
        ("GET http://h/ HTTP/1.1 x\r\n\r\n", 400),
        ("G@T http://h/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://h/ HTTP/2.0\r\n\r\n", 400),
        ("GET http://h/ HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("GET http://h/ HTTP/1.1\r\nName : v\r\n\r\n", 400),
        ("GET http://h/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        ("GET http://h/ HTTP/1.1\r\nA: \0\r\n\r\n", 400),
        ("GET https://h/ HTTP/1.1\r\n\r\n", 501),
        ("GET ftp://h/ HTTP/1.1\r\n\r\n", 501),
        ("GET http:/// HTTP/1.1\r\n\r\n", 400),
        ("GET http://u:p@h/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://h:0/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://h:99999/ HTTP/1.1\r\n\r\n", 400),
        ("GET example.com HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.com HTTP/1.1\r\n\r\n", 400),
        ("CONNECT http://example.com/ HTTP/1.1\r\n\r\n", 400),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST http://h/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST http://h/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        ("POST http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        ("POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01", 400),
        ("\x05\x01\x00", 400),
        ("GET http://h/ HTTP/1.1\r\n\r\n", 403),
        ("CONNECT h:443 HTTP/1.1\r\n\r\nnot a request", 403),
    ] {
        let answer = ask(input.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} "))
                || answer.starts_with(&format!("HTTP/1.0 {code} ")),
            "{input:?} -> {answer:?}"
        );
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{answer}");
    }
    assert!(ask(b"GET http://h/ HTTP/1.1\r\n\r\n").await.ends_with("\r\n\r\nctcp: no\\u{1b} \\u{202e}way\n"));
}

#[tokio::test]
async fn heads_are_bounded() {
    let long = |length| format!("GET http://h/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(length));
    assert!(ask(long(2 * HEAD_BYTES_MAX).as_bytes()).await.starts_with("HTTP/1.1 431 "));
    assert!(ask(long(HEAD_BYTES_MAX - 100).as_bytes()).await.starts_with("HTTP/1.1 403 "));
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut target) = targets.recv().await.unwrap();
    let head_of_target = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(2 * HEAD_BYTES_MAX));
    let _ = target.write_all(head_of_target.as_bytes()).await;
    assert!(head(&mut application).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_is_closed_soon_and_an_idle_one_later() {
    let Setup { mut application, served, .. } = setup();
    let begun = tokio::time::Instant::now();
    assert_eq!(rest(&mut application).await, "");
    assert_eq!((begun.elapsed(), served.await.unwrap().unwrap()), (PATIENCE, "done"));

    let Setup { mut application, mut targets, served, .. } = setup();
    say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
    let (_, mut target) = targets.recv().await.unwrap();
    sleep(Duration::from_secs(600)).await; // a target may take long
    say(&mut target, "HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(head(&mut application).await, "HTTP/1.1 204 No Content\r\n\r\n");
    let idle = tokio::time::Instant::now();
    assert_eq!(rest(&mut application).await, "");
    assert_eq!((idle.elapsed(), served.await.unwrap().unwrap()), (IDLE_TIME, "done"));
}

/// Returns what an application reads of a response that arrives in pieces of `step` bytes, after which the target
/// closes.
async fn respond(request: &str, response: &str, step: usize) -> String {
    let Setup { mut application, mut targets, .. } = setup();
    say(&mut application, request).await;
    application.shutdown().await.unwrap();
    let (_, mut target) = targets.recv().await.unwrap();
    head(&mut target).await;
    let write = async {
        for part in response.as_bytes().chunks(step) {
            target.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        target.shutdown().await.unwrap();
    };
    let (_, read) = timeout(PATIENCE, async { tokio::join!(write, rest(&mut application)) }).await.unwrap();
    read
}

#[tokio::test]
async fn responses_lose_hop_by_hop_fields_and_are_framed_anew() {
    for (response, read) in [
        (
            "HTTP/1.1 200 Fine\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\nhi",
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
        ),
        ("HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        (
            "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        for step in [7, 1000] {
            let said = respond("GET http://h/ HTTP/1.1\r\n\r\n", response, step).await;
            let said = if step == 7 { said.replace("1\r\na\r\n2\r\nbc\r\n", "3\r\nabc\r\n") } else { said };
            let said = said.replace("2\r\nab\r\n1\r\nc\r\n", "3\r\nabc\r\n");
            assert_eq!(said, read, "{response:?} in steps of {step}");
        }
    }
    // For an application that does not support chunks, the end of the connection is the end of the body.
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(respond("GET http://h/ HTTP/1.0\r\n\r\n", chunked, 1000).await, "HTTP/1.0 200 OK\r\n\r\nabc");
    // The length in a response to HEAD belongs to no body.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    assert_eq!(respond("HEAD http://h/ HTTP/1.1\r\n\r\n", head, 1000).await, head);
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_a_bad_gateway_with_the_reason() {
    for (response, reason) in [
        ("", "h:80 closed the connection before it had answered"),
        ("HTTP/1.1 200 OK\r\nbroken", "h:80 closed the connection before it had answered"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\nbody", "h:80 answered with something that is no HTTP response"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "does not pass on"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "does not pass on"),
    ] {
        let said = respond("GET http://h/ HTTP/1.1\r\n\r\n", response, 1000).await;
        assert!(
            said.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && said.contains(reason),
            "{response:?} -> {said}"
        );
    }
    // A response of HTTP/0.9 has no head and is passed on.
    let said = respond("GET http://h/ HTTP/1.0\r\n\r\n", "<html>HTTP/0.9</html>", 1000).await;
    assert!(said.ends_with("\r\n\r\n<html>HTTP/0.9</html>"), "{said}");
}

proptest! {
    #[test]
    fn random_input_is_answered_or_closed_and_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200), headed in 0..3usize) {
        let start = ["GET http://h/ HTTP/1.1\r\n", "CONNECT h:1 HTTP/1.1\r\n", ""][headed].as_bytes();
        let input = [start, &noise, b"\r\n\r\n"].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let _ = ask(&input).await;
            let Setup { mut application, mut targets, .. } = setup();
            say(&mut application, "GET http://h/ HTTP/1.1\r\n\r\n").await;
            let (_, mut target) = targets.recv().await.unwrap();
            head(&mut target).await;
            let _ = target.write_all(&noise).await;
            drop(target);
            let _ = application.read_to_end(&mut Vec::new()).await;
        });
    }
}
