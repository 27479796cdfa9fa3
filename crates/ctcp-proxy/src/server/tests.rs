use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;
use crate::memory::{Connection, Stream, connection_pair};
use crate::request::GetRequest;
use crate::target_policy::TargetPolicy;

fn serve(limits: ServerLimits) -> (Connection, Arc<ReverseProxy>) {
    let policy = TargetPolicy::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new()).unwrap();
    let proxy = ReverseProxy::new(Dialer::new(policy), None, limits);
    let (near, far) = connection_pair();
    let server = proxy.clone();
    tokio::spawn(async move { server.serve_connection(far).await });
    (near, proxy)
}

async fn ask(connection: &Connection, head: &[u8]) -> (Stream, Reply) {
    let mut stream = connection.open().await.unwrap();
    stream.write_all(head).await.unwrap();
    let reply = Reply::read(&mut stream).await.unwrap();
    (stream, reply)
}

#[tokio::test]
async fn invalid_heads_are_refused_with_their_code_and_the_stream_ends() {
    let (near, proxy) = serve(ServerLimits::default());
    for (head, code) in [
        (&b"\x02\x01\x00\x00"[..], ReplyCode::UnsupportedVersion),
        (b"\x01\x63\x00\x00", ReplyCode::CommandNotSupported),
        (b"\x01\x01\xff\xff", ReplyCode::BadRequest),
        (b"\x01\x01\x00\x01\x09", ReplyCode::BadRequest),
    ] {
        let (mut stream, reply) = ask(&near, head).await;
        assert_eq!(reply.code, code);
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
    assert_eq!(proxy.counters().streams_failed.value(), 4);
}

#[tokio::test]
async fn files_are_refused_when_none_are_served() {
    let (near, _) = serve(ServerLimits::default());
    let get = GetRequest { name: "x".into(), have: 0, identity: Default::default() };
    let (_, reply) = ask(&near, &Request::Get(get).encode()).await;
    assert_eq!(reply.code, ReplyCode::FilesOff);
}

#[tokio::test]
async fn beyond_the_limit_of_streams_requests_are_refused_and_later_ones_served() {
    let limits = ServerLimits { streams_per_connection: 2, ..ServerLimits::default() };
    let (near, proxy) = serve(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let head = Request::Connect(listener.local_addr().unwrap().into()).encode();
    let (first, reply) = ask(&near, &head).await;
    assert!(reply.is_success());
    let (_second, reply) = ask(&near, &head).await;
    assert!(reply.is_success());
    let (_, reply) = ask(&near, &head).await;
    assert_eq!(reply.code, ReplyCode::TooManyStreams);
    drop(first);
    while proxy.counters().streams_open.value() > 1 {
        tokio::task::yield_now().await;
    }
    assert!(ask(&near, &head).await.1.is_success());
}

#[tokio::test]
async fn one_client_has_its_share_over_all_its_connections_and_others_are_still_served() {
    let limits = ServerLimits { streams: 6, streams_per_client: 4, ..ServerLimits::default() };
    let policy = TargetPolicy::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new()).unwrap();
    let proxy = ReverseProxy::new(Dialer::new(policy), None, limits);
    let connect = |client: &str| {
        let (near, far) = crate::memory::connection_pair_of(client);
        let server = proxy.clone();
        tokio::spawn(async move { server.serve_connection(far).await });
        near
    };
    let greedy = [connect("greedy"), connect("greedy")];
    let modest = connect("modest");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let head = Request::Connect(listener.local_addr().unwrap().into()).encode();
    let mut held = Vec::new();
    for number in 0..4 {
        held.push(ask(&greedy[number % 2], &head).await);
    }
    for near in &greedy {
        let (_, reply) = ask(near, &head).await;
        assert_eq!(reply.code, ReplyCode::TooManyStreams);
        assert!(reply.text().contains("this client"), "{reply}");
        assert_eq!(reply.code.socks5(), 1);
    }
    for _ in 0..2 {
        held.push(ask(&modest, &head).await);
    }
    assert!(held.iter().all(|(_, reply)| reply.is_success()));
    let (_, reply) = ask(&connect("third"), &head).await;
    assert!(reply.text().contains("the server has"), "{reply}");
    // One warning was logged, and further ones are suppressed.
    assert_eq!(proxy.full.is_due(), None);
}

#[test]
fn limits_fit_the_descriptors_and_one_client_never_uses_all() {
    for open_files in [0, 3, 256, 1024, 4096, 20_000, 1 << 20, usize::MAX] {
        let limits = ServerLimits::for_open_files(open_files);
        assert!(limits.streams <= open_files && limits.streams_per_client <= limits.streams / 2);
        if open_files >= 1024 {
            assert!(limits.streams + 256 <= open_files);
        }
        // A thousand idle streams of one client, unless the hard limit is very small.
        assert_eq!(limits.streams_per_client >= 1000, open_files >= 4096);
    }
}

#[tokio::test]
async fn the_server_asks_for_low_latency_if_the_client_does() {
    let (near, _proxy) = serve(ServerLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = TargetAddress::from(listener.local_addr().unwrap());
    for (request, is_low) in
        [(Request::Connect(target.clone()), false), (Request::ConnectLowLatency(target), true)]
    {
        let (stream, reply) = ask(&near, &request.encode()).await;
        assert!(reply.is_success());
        assert_eq!(stream.has_low_latency(), is_low);
    }
}

#[tokio::test]
async fn a_lost_connection_resets_its_targets() {
    let (near, proxy) = serve(ServerLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let head = Request::Connect(listener.local_addr().unwrap().into()).encode();
    let (_stream, reply) = ask(&near, &head).await;
    let (mut target, from) = listener.accept().await.unwrap();
    assert_eq!(reply.bound().unwrap(), from);
    near.lose();
    let error = target.read_u8().await.expect_err("no clean end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    while proxy.counters().connections.value() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_dialing_ends_the_attempt() {
    struct Silent;
    impl crate::dial::Resolve for Silent {
        fn resolve<'a>(&'a self, _: &'a str, _: &'a str) -> crate::dial::Resolving<'a> {
            Box::pin(core::future::pending())
        }
    }
    let dialer = Dialer::new(TargetPolicy::default()).with_resolver(Silent);
    let proxy = ReverseProxy::new(dialer, None, ServerLimits::default());
    let (near, far) = connection_pair();
    let server = proxy.clone();
    tokio::spawn(async move { server.serve_connection(far).await });
    let mut stream = near.open().await.unwrap();
    Request::Connect("silent.example:80".parse().unwrap()).write(&mut stream).await.unwrap();
    while proxy.counters().streams_open.value() == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    let gone = async {
        while proxy.counters().streams_open.value() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(1), gone).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_head_is_reset() {
    let (near, _) = serve(ServerLimits::default());
    let mut stream = near.open().await.unwrap();
    assert!(stream.read_u8().await.is_err());
}
