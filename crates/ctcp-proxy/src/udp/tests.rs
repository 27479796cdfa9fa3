//! Both proxies with a connection in memory between them and real UDP sockets at both ends.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::client::{self, ClientLimits, ForwardProxy, Greeting};
use crate::counters::{Counters, DropReason};
use crate::dial::{Dialer, Resolve, Resolving};
use crate::link::{LinkTimes, ServerLink};
use crate::memory::{Connection, InMemory, Stream, connection_pair};
use crate::request::{
    Associate, Notice, Reply, ReplyCode, Request, put_datagram_head, split_datagram, split_number,
};
use crate::server::{ReverseProxy, ServerLimits};
use crate::target_policy::TargetPolicy;

const PATIENCE: Duration = Duration::from_secs(10);

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("no result in time")
}

fn localhost() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
}

async fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(localhost()).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A target that sends every datagram back.
async fn echo() -> SocketAddr {
    let (socket, address) = socket().await;
    tokio::spawn(async move {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Ok((count, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..count], from).await;
        }
    });
    address
}

/// Resolves every name to loopback except those that begin with `no`, and `two` to two addresses.
struct Names;

impl Resolve for Names {
    fn resolve<'a>(&'a self, _: &'a str, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            if name.starts_with("no") {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            let first = (name == "two").then_some(Ipv4Addr::new(127, 0, 0, 2).into());
            Ok(first.into_iter().chain([Ipv4Addr::LOCALHOST.into()]).collect())
        })
    }
}

fn reverse_proxy(allow: &[&str], udp: UdpLimits) -> Arc<ReverseProxy> {
    let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    let dialer = Dialer::new(TargetPolicy::new(allow, Vec::new()).unwrap()).with_resolver(Names);
    ReverseProxy::new(dialer, None, ServerLimits { udp, ..ServerLimits::default() })
}

/// A client without a forward proxy, which can say anything to a server.
struct Bare {
    connection: Connection,
    server: Arc<ReverseProxy>,
}

impl Bare {
    fn new(udp: UdpLimits) -> Self {
        Self::allowed(&["127.0.0.0/8"], udp)
    }

    fn allowed(allow: &[&str], udp: UdpLimits) -> Self {
        let (server, (connection, far)) = (reverse_proxy(allow, udp), connection_pair());
        let serving = server.clone();
        tokio::spawn(async move { serving.serve_connection(far).await });
        Self { connection, server }
    }

    async fn ask(&self, asked: Associate) -> (Stream, Reply) {
        let mut stream = self.connection.open().await.unwrap();
        Request::Associate(asked).write(&mut stream).await.unwrap();
        let reply = in_time(Reply::read(&mut stream)).await.unwrap();
        (stream, reply)
    }

    async fn open(&self, number: u32) -> Stream {
        let (stream, reply) = self.ask(Associate { number, full_cone: false, single: false }).await;
        assert!(reply.is_success(), "{reply}");
        stream
    }

    fn send(&self, number: u32, target: &str, data: &[u8]) {
        let mut message = Vec::new();
        put_datagram_head(&mut message, number, &target.parse().unwrap());
        message.extend_from_slice(data);
        self.connection.send_message(&message, DEADLINE).unwrap();
    }

    /// The next answer: its association, source and data.
    async fn receive(&self) -> (u32, String, Vec<u8>) {
        let message = in_time(self.connection.receive_message()).await.unwrap();
        let (number, rest) = split_number(&message).unwrap();
        let (source, data) = split_datagram(rest).unwrap();
        (number, source.to_string(), data.to_vec())
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.server.counters().udp.dropped(reason)
    }

    async fn until_dropped(&self, reason: DropReason, count: u64) {
        in_time(async {
            while self.dropped(reason) < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(self.dropped(reason), count, "{reason:?}");
    }
}

#[tokio::test]
async fn associations_are_apart_and_answers_name_their_source() {
    let (bare, echo) = (Bare::new(UdpLimits::default()), echo().await.to_string());
    let (_one, _two) = (bare.open(1).await, bare.open(2).await);
    for (number, data) in [(1, &b"one"[..]), (2, b"two"), (1, b"")] {
        bare.send(number, &echo, data);
        assert_eq!(bare.receive().await, (number, echo.clone(), data.to_vec()));
    }
    let udp = &bare.server.counters().udp;
    assert_eq!((udp.associations.value(), udp.upstream.value(), udp.downstream.value()), (2, 3, 3));
    assert_eq!((udp.bytes_upstream.value(), udp.bytes_downstream.value()), (6, 6));
}

#[tokio::test]
async fn a_number_in_use_and_a_connection_without_messages_are_refused() {
    let bare = Bare::new(UdpLimits::default());
    let _open = bare.open(1).await;
    let (_, reply) = bare.ask(Associate { number: 1, full_cone: false, single: false }).await;
    assert_eq!(reply.code, ReplyCode::BadRequest);
    let (near, far) = connection_pair();
    let (server, far) = (bare.server.clone(), far.with_message_size_max(None));
    tokio::spawn(async move { server.serve_connection(far).await });
    let mute = Bare { connection: near, server: bare.server.clone() };
    let (_, reply) = mute.ask(Associate { number: 1, full_cone: false, single: false }).await;
    assert_eq!(reply.code, ReplyCode::CommandNotSupported);
}

#[tokio::test]
async fn forbidden_targets_get_nothing_and_the_client_is_told() {
    let bare = Bare::allowed(&["public"], UdpLimits::default());
    let (target, address) = socket().await;
    let mut stream = bare.open(1).await;
    let mapped = format!("[::ffff:127.0.0.1]:{}", address.port());
    let named = format!("a.example:{}", address.port());
    for (count, forbidden) in (1..).zip([
        &address.to_string(),
        &mapped,
        &named,
        "169.254.169.254:80",
        "255.255.255.255:9",
        "224.0.0.1:9",
    ]) {
        bare.send(1, forbidden, b"secret");
        let notice = in_time(Notice::read(&mut stream)).await.unwrap();
        assert_eq!((notice.code, notice.target.to_string()), (ReplyCode::NotAllowed, forbidden.to_owned()));
        assert!(notice.text.starts_with("the server refuses "), "{}", notice.text);
        bare.until_dropped(DropReason::Forbidden, count).await;
    }
    assert!(target.try_recv(&mut [0; 9]).is_err());
    assert_eq!(bare.server.counters().udp.upstream.value(), 0);
}

#[tokio::test]
async fn a_flood_to_forbidden_targets_has_few_notices() {
    let bare = Bare::allowed(&["public"], UdpLimits::default());
    let mut stream = bare.open(1).await;
    for _ in 0..50 {
        bare.send(1, "10.0.0.1:1", b"x");
    }
    bare.until_dropped(DropReason::Forbidden, 50).await;
    in_time(Notice::read(&mut stream)).await.unwrap();
    assert!(timeout(Duration::from_millis(50), Notice::read(&mut stream)).await.is_err());
}

#[tokio::test]
async fn names_are_resolved_at_the_server_and_those_that_fail_are_reported() {
    let (bare, port) = (Bare::new(UdpLimits::default()), echo().await.port());
    let mut stream = bare.open(1).await;
    for data in [b"1", b"2"] {
        bare.send(1, &format!("a.example:{port}"), data);
        assert_eq!(bare.receive().await, (1, format!("127.0.0.1:{port}"), data.to_vec()));
    }
    bare.send(1, "no.example:53", b"lost");
    let notice = in_time(Notice::read(&mut stream)).await.unwrap();
    assert_eq!(notice.code, ReplyCode::HostUnreachable);
    bare.until_dropped(DropReason::Unresolved, 1).await;
}

#[tokio::test]
async fn only_contacted_targets_can_answer_unless_full_cone_is_asked_for_and_allowed() {
    for (allowed, asked, is_open) in
        [(false, false, false), (false, true, false), (true, false, false), (true, true, true)]
    {
        let bare = Bare::new(UdpLimits { full_cone: allowed, ..UdpLimits::default() });
        let ((target, address), (stranger, from)) = (socket().await, socket().await);
        let asked = Associate { number: 1, full_cone: asked, single: false };
        let (_stream, reply) = bare.ask(asked).await;
        assert_eq!(asked.granted(&reply).unwrap().full_cone, is_open);
        bare.send(1, &address.to_string(), b"hello");
        let mut buffer = [0; 9];
        let (_, outside) = in_time(target.recv_from(&mut buffer)).await.unwrap();
        stranger.send_to(b"unasked", outside).await.unwrap();
        if is_open {
            assert_eq!(bare.receive().await, (1, from.to_string(), b"unasked".to_vec()));
        } else {
            bare.until_dropped(DropReason::Unasked, 1).await;
        }
        target.send_to(b"answer", outside).await.unwrap();
        assert_eq!(bare.receive().await, (1, address.to_string(), b"answer".to_vec()));
    }
}

#[tokio::test]
async fn full_cone_does_not_open_what_the_policy_forbids() {
    let (target, address) = socket().await;
    let rule = address.to_string();
    let bare = Bare::allowed(&[&rule], UdpLimits { full_cone: true, ..UdpLimits::default() });
    let _stream = bare.ask(Associate { number: 1, full_cone: true, single: false }).await;
    bare.send(1, &rule, b"hello");
    let (_, outside) = in_time(target.recv_from(&mut [0; 9])).await.unwrap();
    let (stranger, _) = socket().await;
    stranger.send_to(b"from a forbidden address", outside).await.unwrap();
    bare.until_dropped(DropReason::Unasked, 1).await;
}

#[tokio::test]
async fn an_evicted_target_can_no_longer_answer() {
    let bare = Bare::new(UdpLimits { targets: 2, ..UdpLimits::default() });
    let _stream = bare.open(1).await;
    let ((first, address), echo) = (socket().await, echo().await);
    bare.send(1, &address.to_string(), b"hello");
    let (_, outside) = in_time(first.recv_from(&mut [0; 9])).await.unwrap();
    let other = self::echo().await;
    for target in [echo, other] {
        bare.send(1, &target.to_string(), b"x");
        bare.receive().await;
    }
    first.send_to(b"too late", outside).await.unwrap();
    bare.until_dropped(DropReason::Unasked, 1).await;
}

#[tokio::test]
async fn a_client_has_its_share_of_associations_and_they_return() {
    let bare = Bare::new(UdpLimits { associations_per_client: 2, ..UdpLimits::default() });
    let (first, _second) = (bare.open(1).await, bare.open(2).await);
    let third = Associate { number: 3, full_cone: false, single: false };
    assert_eq!(bare.ask(third).await.1.code, ReplyCode::TooManyStreams);
    drop(first);
    in_time(async { while !bare.ask(third).await.1.is_success() {} }).await;
}

#[tokio::test]
async fn a_client_beyond_its_rate_loses_datagrams() {
    let bare = Bare::new(UdpLimits { datagrams_per_second: 40, ..UdpLimits::default() });
    let (target, address) = socket().await;
    let _stream = bare.open(1).await;
    for _ in 0..100 {
        bare.send(1, &address.to_string(), b"x");
    }
    in_time(async {
        let udp = &bare.server.counters().udp;
        while udp.upstream.value() + bare.dropped(DropReason::Rate) < 100 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(bare.dropped(DropReason::Rate) > 50);
    in_time(target.recv(&mut [0; 9])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_association_ends_and_its_messages_are_dropped() {
    let bare = Bare::new(UdpLimits::default());
    let mut stream = bare.open(1).await;
    let start = Instant::now();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "a regular end");
    assert_eq!(start.elapsed().as_secs(), IDLE.as_secs());
    tokio::task::yield_now().await;
    // It could be one that overtook the request of a new association, so it waits for a moment.
    bare.send(1, "127.0.0.1:9", b"late");
    tokio::time::sleep(DEADLINE).await;
    bare.send(1, "127.0.0.1:9", b"later");
    bare.until_dropped(DropReason::Unknown, 1).await;
    assert_eq!(bare.server.counters().udp.associations.value(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_datagram_keeps_an_association_and_a_refused_one_does_not() {
    let (_target, address) = socket().await;
    let rule = address.to_string();
    let bare = Bare::allowed(&[&rule], UdpLimits::default());
    let mut stream = bare.open(1).await;
    tokio::time::sleep(IDLE / 2).await;
    bare.send(1, &rule, b"x");
    tokio::time::sleep(IDLE / 2).await;
    bare.send(1, "10.0.0.1:1", b"x");
    let start = Instant::now();
    Notice::read(&mut stream).await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(start.elapsed().as_secs(), IDLE.as_secs() / 2);
}

#[tokio::test]
async fn malformed_messages_are_counted_and_harm_nothing() {
    let (bare, echo) = (Bare::new(UdpLimits::default()), echo().await.to_string());
    let _stream = bare.open(1).await;
    for message in [&b""[..], b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x09", b"\0\0\0\x01\x01\x7f\0\0\x01\0\0x"]
    {
        bare.connection.send_message(message, DEADLINE).unwrap();
    }
    bare.until_dropped(DropReason::Malformed, 5).await;
    bare.send(1, &echo, b"fine");
    assert_eq!(bare.receive().await.2, b"fine");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_only_target_of_an_association_is_reported_when_nothing_listens() {
    let bare = Bare::new(UdpLimits::default());
    let (closed, address) = socket().await;
    drop(closed);
    let (mut stream, reply) = bare.ask(Associate { number: 1, full_cone: false, single: true }).await;
    assert!(reply.is_success());
    bare.send(1, &address.to_string(), b"anyone?");
    let notice = in_time(Notice::read(&mut stream)).await.unwrap();
    assert_eq!((notice.code, notice.target), (ReplyCode::ConnectionRefused, address.into()));
    bare.send(1, "127.0.0.1:9", b"another target");
    bare.until_dropped(DropReason::Unreachable, 2).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_next_address_of_the_only_target_is_tried_when_nothing_listens_on_the_first() {
    let bare = Bare::new(UdpLimits::default());
    let target = format!("two:{}", echo().await.port());
    let (mut stream, _) = bare.ask(Associate { number: 1, full_cone: false, single: true }).await;
    bare.send(1, &target, b"lost");
    bare.until_dropped(DropReason::Unreachable, 1).await;
    bare.send(1, &target, b"again");
    assert_eq!(bare.receive().await.2, b"again");
    // Nobody was told, since the target is there.
    assert!(timeout(Duration::from_millis(50), Notice::read(&mut stream)).await.is_err());
}

/// A forward proxy with SOCKS5, over a connection in memory.
struct Client {
    proxy: Arc<ForwardProxy<InMemory>>,
    connector: InMemory,
    socks5: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Client {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Client {
    async fn new(allow: &[&str]) -> Self {
        Self::with_options(allow, UdpOptions::default()).await
    }

    async fn with_options(allow: &[&str], options: UdpOptions) -> Self {
        Self::of(reverse_proxy(allow, UdpLimits::default()), options).await
    }

    async fn of(server: Arc<ReverseProxy>, options: UdpOptions) -> Self {
        let connector = InMemory::new(server);
        let counters = Arc::new(Counters::new("client"));
        let link = ServerLink::start(connector.clone(), LinkTimes::default(), counters);
        link.connected(PATIENCE).await.unwrap();
        let (limits, greeting) = (ClientLimits::default(), Greeting::default());
        let proxy = ForwardProxy::with_options(link, limits, greeting, options);
        let listener = client::listen(localhost()).unwrap();
        let (socks5, serving) = (listener.local_addr().unwrap(), proxy.clone());
        let tasks = vec![tokio::spawn(async move { serving.serve_socks5(listener).await })];
        Self { proxy, connector, socks5, tasks }
    }

    /// Opens an association; returns the code of the reply and the relay's address.
    async fn associate(&self, declared: u16) -> (TcpStream, u8, SocketAddr) {
        let mut control = TcpStream::connect(self.socks5).await.unwrap();
        let [high, low] = declared.to_be_bytes();
        control.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, high, low]).await.unwrap();
        let mut reply = [0; 12];
        in_time(control.read_exact(&mut reply)).await.unwrap();
        let ip: [u8; 4] = reply[6..10].try_into().unwrap();
        let port = u16::from_be_bytes([reply[10], reply[11]]);
        (control, reply[3], SocketAddr::from((ip, port)))
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.proxy.link().counters().udp.dropped(reason)
    }

    async fn until_dropped(&self, reason: DropReason, count: u64) {
        in_time(async {
            while self.dropped(reason) < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(self.dropped(reason), count, "{reason:?}");
    }

    async fn forward(&mut self, target: SocketAddr) -> SocketAddr {
        let socket = listen(localhost()).unwrap();
        let (address, proxy) = (socket.local_addr().unwrap(), self.proxy.clone());
        self.tasks.push(tokio::spawn(async move { proxy.serve_udp_forward(socket, target.into()).await }));
        address
    }
}

/// A datagram as programs exchange them with a SOCKS5 relay.
fn wrapped(target: &str, data: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put_datagram_head(&mut message, 0, &target.parse().unwrap());
    [&message[1..], data].concat()
}

async fn receive(program: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let count = in_time(program.recv(&mut buffer)).await.unwrap();
    buffer.truncate(count);
    buffer
}

#[tokio::test]
async fn a_program_exchanges_datagrams_with_several_targets_over_one_relay() {
    let client = Client::new(&["127.0.0.0/8"]).await;
    let (_control, code, relay) = client.associate(0).await;
    assert_eq!((code, relay.ip()), (0, localhost().ip()));
    let (program, _) = socket().await;
    for target in [echo().await, echo().await, echo().await] {
        let datagram = wrapped(&target.to_string(), b"hello");
        program.send_to(&datagram, relay).await.unwrap();
        assert_eq!(receive(&program).await, datagram);
    }
    let named = wrapped(&format!("a.example:{}", echo().await.port()), b"by name");
    program.send_to(&named, relay).await.unwrap();
    assert!(receive(&program).await.ends_with(b"by name"));
    let udp = &client.proxy.link().counters().udp;
    assert_eq!((udp.upstream.value(), udp.downstream.value(), udp.associations.value()), (4, 4, 1));
}

#[tokio::test]
async fn malformed_datagrams_and_fragments_are_dropped_and_do_not_claim_a_relay() {
    let client = Client::new(&["127.0.0.0/8"]).await;
    let (_control, _, relay) = client.associate(0).await;
    let ((stranger, _), (program, _)) = (socket().await, socket().await);
    for (count, datagram) in (1..).zip([
        &b""[..],
        b"\0\0",
        b"\0\0\0",
        b"\0\0\0\x01\x7f\0\0\x01\0",
        b"\0\0\0\x02\x7f\0\0\x01\0\x35x",
        b"\0\0\0\x01\x7f\0\0\x01\0\0x",
        b"\0\0\0\x03\0\0\x35x",
        b"\0\0\0\x03\x04a b:\0\x35x",
    ]) {
        stranger.send_to(datagram, relay).await.unwrap();
        client.until_dropped(DropReason::Malformed, count).await;
    }
    let echo = echo().await.to_string();
    for fragment in [1, 127, 128, 255] {
        let mut datagram = wrapped(&echo, b"x");
        datagram[2] = fragment;
        stranger.send_to(&datagram, relay).await.unwrap();
    }
    client.until_dropped(DropReason::Fragment, 4).await;
    program.send_to(&wrapped(&echo, b"mine"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"mine"));
}

#[tokio::test]
async fn a_stranger_neither_uses_nor_diverts_the_relay_of_a_program() {
    let client = Client::new(&["127.0.0.0/8"]).await;
    let ((program, own), (stranger, _)) = (socket().await, socket().await);
    let elsewhere = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let echo = echo().await.to_string();
    // Declared, so that nobody can be first.
    let (_control, _, relay) = client.associate(own.port()).await;
    stranger.send_to(&wrapped(&echo, b"spoofed"), relay).await.unwrap();
    client.until_dropped(DropReason::Sender, 1).await;
    program.send_to(&wrapped(&echo, b"1"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"1"));
    // Not declared: another address is refused from the start, and another port after the first datagram.
    let (_control, _, relay) = client.associate(0).await;
    elsewhere.send_to(&wrapped(&echo, b"spoofed"), relay).await.unwrap();
    client.until_dropped(DropReason::Sender, 2).await;
    program.send_to(&wrapped(&echo, b"2"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"2"));
    stranger.send_to(&wrapped(&echo, b"spoofed"), relay).await.unwrap();
    client.until_dropped(DropReason::Sender, 3).await;
    program.send_to(&wrapped(&echo, b"3"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"3"));
    assert!(stranger.try_recv(&mut [0; 9]).is_err() && elsewhere.try_recv(&mut [0; 9]).is_err());
}

#[tokio::test]
async fn the_relay_ends_with_its_connection_and_the_other_way_round() {
    let client = Client::new(&["127.0.0.0/8"]).await;
    let server = client.connector.server().counters().clone();
    let (control, _, relay) = client.associate(0).await;
    assert_eq!(server.udp.associations.value(), 1);
    drop(control);
    in_time(async {
        while server.udp.associations.value() > 0 || UdpSocket::bind(relay).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let (mut control, _, _) = client.associate(0).await;
    client.connector.lose();
    assert!(matches!(in_time(control.read(&mut [0])).await, Ok(0) | Err(_)));
    let (_control, code, relay) = client.associate(0).await;
    assert_eq!(code, 0);
    let ((program, _), echo) = (socket().await, echo().await.to_string());
    program.send_to(&wrapped(&echo, b"again"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"again"));
}

#[tokio::test]
async fn the_advertised_address_is_the_relays_unless_configured() {
    let outside = IpAddr::from([203, 0, 113, 7]);
    let advertise = Some(outside);
    let client = Client::with_options(&["127.0.0.0/8"], UdpOptions { advertise, full_cone: false }).await;
    let (_control, code, advertised) = client.associate(0).await;
    assert_eq!((code, advertised.ip()), (0, outside));
    let ((program, _), echo) = (socket().await, echo().await.to_string());
    let relay = SocketAddr::new(localhost().ip(), advertised.port());
    program.send_to(&wrapped(&echo, b"x"), relay).await.unwrap();
    assert_eq!(receive(&program).await, wrapped(&echo, b"x"));
}

#[tokio::test]
async fn a_forbidden_target_is_remembered_for_the_status_page() {
    let client = Client::new(&["public"]).await;
    let (_control, _, relay) = client.associate(0).await;
    let (program, _) = socket().await;
    program.send_to(&wrapped("10.1.2.3:53", b"x"), relay).await.unwrap();
    let counters = client.proxy.link().counters();
    in_time(async {
        while counters.targets_refused.value() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let failed = crate::http_proxy::Proxy::status(&*client.proxy).failed;
    assert_eq!(failed[0].target, "udp:10.1.2.3:53");
    assert!(failed[0].reason.contains("private addresses"), "{}", failed[0].reason);
}

#[tokio::test]
async fn a_forward_keeps_programs_apart() {
    let mut client = Client::new(&["127.0.0.0/8"]).await;
    let forward = client.forward(echo().await).await;
    let ((one, _), (two, _)) = (socket().await, socket().await);
    for round in 0..3u8 {
        one.send_to(&[1, round], forward).await.unwrap();
        two.send_to(&[2, round], forward).await.unwrap();
        assert_eq!((receive(&one).await, receive(&two).await), (vec![1, round], vec![2, round]));
    }
    assert_eq!(client.connector.server().counters().udp.associations.value(), 2);
}

#[tokio::test]
async fn a_forward_serves_any_number_of_ports_one_after_another() {
    let mut client = Client::new(&["127.0.0.0/8"]).await;
    let forward = client.forward(echo().await).await;
    for number in 0..300u16 {
        let (program, _) = socket().await;
        program.send_to(&number.to_be_bytes(), forward).await.unwrap();
        assert_eq!(receive(&program).await, number.to_be_bytes());
    }
    assert!(client.proxy.link().counters().udp.associations.value() <= 256);
}

#[tokio::test]
async fn a_forward_serves_many_new_ports_at_once() {
    let mut client = Client::new(&["127.0.0.0/8"]).await;
    let forward = client.forward(echo().await).await;
    let mut programs = Vec::new();
    for _ in 0..200 {
        programs.push(socket().await.0);
    }
    for program in &programs {
        program.send_to(b"query", forward).await.unwrap();
    }
    for program in &programs {
        assert_eq!(receive(program).await, b"query");
    }
    assert_eq!(client.connector.server().counters().udp.dropped(DropReason::Unknown), 0);
}

#[tokio::test]
async fn a_forward_stays_below_the_servers_limit() {
    let limits = UdpLimits { associations_per_client: 8, ..UdpLimits::default() };
    let mut client = Client::of(reverse_proxy(&["127.0.0.0/8"], limits), UdpOptions::default()).await;
    let forward = client.forward(echo().await).await;
    let mut repeated = 0;
    for number in 0..40u8 {
        let (program, _) = socket().await;
        program.send_to(&[number], forward).await.unwrap();
        let mut answer = [0];
        while timeout(Duration::from_millis(200), program.recv(&mut answer)).await.is_err() {
            repeated += 1;
            assert!(repeated < 10, "most new ports find room at once");
            program.send_to(&[number], forward).await.unwrap();
        }
        assert_eq!(answer, [number]);
    }
    assert!(repeated > 0, "the limit was reached");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_forward_to_a_refused_target_answers_with_port_unreachable() {
    let (closed, nothing) = socket().await;
    drop(closed);
    for (allow, target) in [("127.0.0.0/8", nothing), ("public", SocketAddr::from(([10, 1, 2, 3], 53)))] {
        let mut client = Client::new(&[allow]).await;
        let forward = client.forward(target).await;
        let program = UdpSocket::bind(localhost()).await.unwrap();
        program.connect(forward).await.unwrap();
        in_time(async {
            loop {
                let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
                if program.send(b"x").await.is_err_and(|error| refused(&error)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert!(UdpSocket::bind(forward).await.is_err(), "no other program can take the port");
    }
}
