use tokio::io::duplex;
use tokio::task::JoinHandle;

use super::*;
use crate::counters::Counters;
use crate::dial::Dialer;
use crate::link::LinkTimes;
use crate::memory::InMemory;
use crate::server::{ReverseProxy, ServerLimits};
use crate::target_policy::TargetPolicy;

fn in_memory(allow: &[&str]) -> InMemory {
    let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    let dialer = Dialer::new(TargetPolicy::new(allow, Vec::new()).unwrap());
    InMemory::new(ReverseProxy::new(dialer, None, ServerLimits::default()))
}

/// Everything between an application and a target, on loopback.
struct Setup {
    proxy: Arc<ForwardProxy<InMemory>>,
    connector: InMemory,
    socks5: SocketAddr,
    http: SocketAddr,
    _tasks: [JoinHandle<()>; 2],
}

impl Drop for Setup {
    fn drop(&mut self) {
        for task in &self._tasks {
            task.abort();
        }
    }
}

async fn setup(allow: &[&str]) -> Setup {
    setup_with(allow, Greeting::AtOnce).await
}

async fn setup_with(allow: &[&str], greeting: Greeting) -> Setup {
    let connector = in_memory(allow);
    let counters = Arc::new(Counters::new("client"));
    let link = ServerLink::start(connector.clone(), LinkTimes::default(), counters);
    link.connected(Duration::from_secs(1)).await.unwrap();
    let proxy = ForwardProxy::with_greeting(link, ClientLimits::default(), greeting);
    let any = "127.0.0.1:0".parse().unwrap();
    let (socks5, http) = (listen(any).unwrap(), listen(any).unwrap());
    let addresses = (socks5.local_addr().unwrap(), http.local_addr().unwrap());
    let (one, two) = (proxy.clone(), proxy.clone());
    let tasks = [
        tokio::spawn(async move { one.serve_socks5(socks5).await }),
        tokio::spawn(async move { two.serve_http(http).await }),
    ];
    Setup { proxy, connector, socks5: addresses.0, http: addresses.1, _tasks: tasks }
}

/// A target that echoes what it receives until the end.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

/// A target that answers the first bytes with a fixed text and closes. The handle returns what it received.
async fn respond(response: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = vec![0; 4096];
        let count = stream.read(&mut got).await.unwrap();
        stream.write_all(response.as_bytes()).await.unwrap();
        got.truncate(count);
        String::from_utf8(got).unwrap()
    });
    (address, task)
}

/// Performs the SOCKS5 handshake and returns the code of the reply.
async fn socks5(proxy: SocketAddr, target: SocketAddr) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let SocketAddr::V4(target) = target else { panic!() };
    let [high, low] = target.port().to_be_bytes();
    let request = [&[5, 1, 0, 5, 1, 0, 1][..], &target.ip().octets(), &[high, low]].concat();
    stream.write_all(&request).await.unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!((reply[0], reply[1], reply[2]), (5, 0, 5));
    (stream, reply[3])
}

/// Sends a request to the HTTP proxy and reads the whole response.
async fn http(proxy: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

// Requirement: C7
#[tokio::test]
async fn an_application_reaches_an_echo_server_through_socks5() {
    let (setup, echo) = (setup(&["127.0.0.0/8"]).await, echo().await);
    let (mut stream, code) = socks5(setup.socks5, echo).await;
    assert_eq!(code, 0);
    stream.write_all(b"hello").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    assert_eq!(back, b"hello");
    let counters = setup.proxy.link().counters();
    assert_eq!((counters.upstream.value(), counters.downstream.value()), (5, 5));
}

#[tokio::test]
async fn socks5_replies_say_what_happened_at_the_server() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let allowed = setup_with(&["127.0.0.0/8"], Greeting::WhenConnected).await;
    assert_eq!(socks5(allowed.socks5, closed).await.1, 5);
    let strict = setup_with(&[], Greeting::WhenConnected).await;
    assert_eq!(socks5(strict.socks5, closed).await.1, 2);
    assert_eq!(strict.connector.server().counters().targets_refused.value(), 1);
    let refused = |setup: &Setup| setup.proxy.link().counters().targets_refused.value();
    assert_eq!((refused(&allowed), refused(&strict)), (0, 1));
}

#[tokio::test]
async fn a_lost_connection_resets_applications_at_once_and_new_ones_work() {
    let (setup, echo) = (setup(&["127.0.0.0/8"]).await, echo().await);
    let (mut before, _) = socks5(setup.socks5, echo).await;
    let (mut half_closed, _) = socks5(setup.socks5, echo).await;
    half_closed.write_all(b"x").await.unwrap();
    half_closed.read_u8().await.unwrap();
    setup.connector.lose();
    for stream in [&mut before, &mut half_closed] {
        let error =
            timeout(Duration::from_secs(1), stream.read_u8()).await.unwrap().expect_err("no clean end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    let (mut after, code) = timeout(Duration::from_secs(1), socks5(setup.socks5, echo)).await.unwrap();
    assert_eq!(code, 0);
    after.write_all(b"y").await.unwrap();
    assert_eq!(after.read_u8().await.unwrap(), b'y');
}

#[tokio::test]
async fn invalid_requests_on_the_socks5_port_are_answered_or_closed_in_bounded_time() {
    let setup = setup(&[]).await;
    let mut stream = TcpStream::connect(setup.socks5).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("SOCKS5 port"));
    for noise in [
        &b"\0\0\0\0"[..],
        b"\x04\x01\0\x50\x7f\0\0\x01\0",
        b"\x05\x01\x02",
        b"\x05\x01\0\x05\x02\0\x01\0\0\0\0\0\x50",
    ] {
        let mut stream = TcpStream::connect(setup.socks5).await.unwrap();
        stream.write_all(noise).await.unwrap();
        let mut answer = Vec::new();
        timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await.expect("closed").ok();
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_that_sends_nothing_is_closed() {
    let connector = in_memory(&[]);
    let link = ServerLink::start(connector, LinkTimes::default(), Arc::new(Counters::new("client")));
    let proxy = ForwardProxy::new(link, ClientLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (mut application, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let outcome = proxy.handle(accepted.unwrap().0, Service::Socks5).await;
    assert_eq!(outcome.expect_err("too slow").kind(), io::ErrorKind::TimedOut);
    assert_eq!(application.as_mut().unwrap().read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn applications_are_greeted_before_the_target_is_connected() {
    let setup = setup(&["127.0.0.0/8"]).await;
    setup.connector.hold(true);
    let echo = echo().await;
    let (mut by_socks, code) = timeout(Duration::from_secs(1), socks5(setup.socks5, echo)).await.unwrap();
    assert_eq!(code, 0);
    let mut by_http = TcpStream::connect(setup.http).await.unwrap();
    by_http.write_all(format!("CONNECT {echo} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 39];
    timeout(Duration::from_secs(1), by_http.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 Connection established\r\n\r\n");
    for stream in [&mut by_socks, &mut by_http] {
        stream.write_all(b"first").await.unwrap();
    }
    setup.connector.hold(false);
    for stream in [&mut by_socks, &mut by_http] {
        stream.shutdown().await.unwrap();
        let mut back = Vec::new();
        timeout(Duration::from_secs(5), stream.read_to_end(&mut back)).await.unwrap().unwrap();
        assert_eq!(back, b"first");
    }
}

#[tokio::test]
async fn a_target_out_of_reach_resets_the_first_connection_and_the_next_one_gets_the_reply() {
    let setup = setup(&[]).await;
    let target = "10.1.2.3:80".parse().unwrap();
    let (mut stream, code) = socks5(setup.socks5, target).await;
    assert_eq!(code, 0);
    let error = timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap().expect_err("no clean end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(socks5(setup.socks5, target).await.1, 2);
    let tunnel = http(setup.http, "CONNECT 10.1.2.3:80 HTTP/1.1\r\n\r\n").await;
    assert!(tunnel.starts_with("HTTP/1.1 403 "), "{tunnel}");
    let counters = setup.proxy.link().counters();
    assert_eq!((counters.targets_refused.value(), counters.streams_failed.value()), (3, 3));
}

#[tokio::test]
async fn connect_tunnels_carry_data_that_follows_the_request() {
    let (setup, echo) = (setup(&["127.0.0.0/8"]).await, echo().await);
    let mut stream = TcpStream::connect(setup.http).await.unwrap();
    stream.write_all(format!("CONNECT {echo} HTTP/1.1\r\n\r\nearly").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nearly");
}

#[tokio::test]
async fn a_plain_request_is_rewritten_and_its_connection_kept() {
    let setup = setup(&["127.0.0.0/8"]).await;
    let (target, got) =
        respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi").await;
    let request =
        format!("GET http://{target}/x HTTP/1.1\r\nHost: h\r\nProxy-Connection: keep-alive\r\n\r\n");
    let mut stream = TcpStream::connect(setup.http).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 40];
    timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(got.await.unwrap(), format!("GET /x HTTP/1.1\r\nHost: {target}\r\n\r\n"));

    let (target, got) = respond("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain").await;
    stream.write_all(format!("GET http://{target}/ HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("\r\n\r\nagain"), "{answer}");
    got.await.unwrap();
}

/// Waits until the server has finished all streams, and returns how many failed.
async fn failed_at_server(setup: &Setup) -> u64 {
    let counters = setup.connector.server().counters();
    while counters.streams_open.value() > 0 {
        tokio::task::yield_now().await;
    }
    counters.streams_failed.value()
}

#[tokio::test]
async fn a_stream_that_ends_with_its_response_counts_as_failed_on_neither_side() {
    let setup = setup(&["127.0.0.0/8"]).await;
    let (target, _got) = respond("HTTP/1.1 200 OK\r\n\r\nhello").await;
    let answer = http(setup.http, &format!("GET http://{target}/ HTTP/1.1\r\nHost: h\r\n\r\n")).await;
    assert!(answer.contains("5\r\nhello\r\n0\r\n\r\n"), "{answer}");
    assert_eq!(failed_at_server(&setup).await, 0);

    let (target, _got) = respond("bye").await;
    let (mut input, reader) = duplex(100);
    input.write_all(b"hello").await.unwrap();
    setup.proxy.connect_pipes(reader, tokio::io::sink(), &target.into()).await.unwrap();
    assert_eq!(failed_at_server(&setup).await, 0);
    assert_eq!(setup.proxy.link().counters().streams_failed.value(), 0);

    // A connection that the application cuts counts as failed.
    let (mut stream, _) = socks5(setup.socks5, echo().await).await;
    stream.write_all(b"x").await.unwrap();
    stream.read_u8().await.unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
    assert_eq!(failed_at_server(&setup).await, 1);
}

#[tokio::test]
async fn http_failures_say_what_happened_at_the_server() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (allowed, strict) = (setup(&["127.0.0.0/8"]).await, setup(&[]).await);
    for (proxy, status, text) in [(&allowed, 502, "could not connect"), (&strict, 403, "loopback address")] {
        for request in
            [format!("GET http://{closed}/ HTTP/1.1\r\n\r\n"), format!("CONNECT {closed} HTTP/1.1\r\n\r\n")]
        {
            let answer = http(proxy.http, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text), "{answer}");
        }
    }
    assert!(http(strict.http, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn the_http_port_serves_its_own_pages() {
    let setup = setup(&[]).await;
    setup.proxy.link().connected(Duration::from_secs(1)).await.unwrap();
    let pac = http(setup.http, "GET /proxy.pac HTTP/1.1\r\nHost: 127.0.0.1:8118\r\n\r\n").await;
    assert!(pac.contains(&format!("SOCKS5 {}; PROXY 127.0.0.1:8118", setup.socks5)), "{pac}");
    let page = http(setup.http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    for text in ["Connected to the server.", "server.example:4433", "25.0 ms", "2.0 %"] {
        assert!(page.contains(text), "{page}");
    }
    assert!(http(setup.http, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ends_with("\r\n\r\n"));
    let page = http(setup.http, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 421 ") && !page.contains("server.example"), "{page}");
}

#[tokio::test]
async fn a_refused_target_is_on_the_status_page_with_the_servers_reason() {
    let setup = setup_with(&[], Greeting::WhenConnected).await;
    assert_eq!(socks5(setup.socks5, "10.1.2.3:80".parse().unwrap()).await.1, 2);
    let refusal = "the server refuses private addresses: 10.1.2.3";
    let page = http(setup.http, "GET http://10.1.2.3/ HTTP/1.1\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 403 ") && page.contains(refusal), "{page}");
    let page = http(setup.http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(page.contains(">10.1.2.3:80</td>") && page.contains(refusal), "{page}");
    assert!(page.contains(" (2 times)</td>"), "{page}");
    let failed = setup.proxy.failures.last();
    assert_eq!((failed.len(), failed[0].times), (1, 2));
}

#[tokio::test]
async fn a_forward_carries_connections_and_resets_failed_ones() {
    let (setup, echo) = (setup(&["127.0.0.0/8"]).await, echo().await);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let low = Request::ConnectLowLatency(echo.into());
    for (request, works) in
        [(Request::Connect(echo.into()), true), (low, true), (Request::Connect(closed.into()), false)]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = setup.proxy.clone();
        let task = tokio::spawn(async move { proxy.serve_forward(listener, request).await });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(b"z").await;
        let answer = timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap();
        assert_eq!(answer.ok(), works.then_some(b'z'));
        task.abort();
    }
}

#[tokio::test]
async fn pipes_end_when_the_target_has_sent_everything() {
    let setup = setup(&["127.0.0.0/8"]).await;
    let (target, got) = respond("bye").await;
    let (mut input, reader) = duplex(100);
    let (writer, mut output) = duplex(100);
    input.write_all(b"hello").await.unwrap();
    let spliced = setup.proxy.connect_pipes(reader, writer, &target.into()).await.unwrap();
    assert_eq!((spliced.a_to_b, spliced.b_to_a), (5, 3));
    assert!(spliced.failure.is_none());
    let mut said = String::new();
    output.read_to_string(&mut said).await.unwrap();
    assert_eq!((said.as_str(), got.await.unwrap().as_str()), ("bye", "hello"));

    let echo = echo().await;
    let (mut output, writer) = duplex(100);
    let spliced = setup.proxy.connect_pipes(&b"to the end"[..], writer, &echo.into()).await.unwrap();
    assert_eq!(spliced.b_to_a, 10);
    let mut said = String::new();
    output.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "to the end");
}

#[tokio::test]
async fn five_hundred_downloads_at_once_are_all_correct() {
    const SIZE: usize = 100_000;
    let setup = setup(&["127.0.0.0/8"]).await;
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let target = listener.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let seed = stream.read_u8().await.unwrap();
                let content: Vec<u8> = (0..SIZE).map(|i| (i as u8).wrapping_mul(seed)).collect();
                stream.write_all(&content).await.unwrap();
            });
        }
    });
    let mut downloads = JoinSet::new();
    for number in 0..500u32 {
        let proxy = setup.socks5;
        downloads.spawn(async move {
            let (mut stream, code) = socks5(proxy, target).await;
            assert_eq!(code, 0);
            let seed = number as u8;
            stream.write_u8(seed).await.unwrap();
            let mut content = Vec::new();
            stream.read_to_end(&mut content).await.unwrap();
            assert_eq!(content.len(), SIZE);
            assert!(content.iter().enumerate().all(|(i, byte)| *byte == (i as u8).wrapping_mul(seed)));
        });
    }
    while let Some(outcome) = downloads.join_next().await {
        outcome.unwrap();
    }
    serve.abort();
}
