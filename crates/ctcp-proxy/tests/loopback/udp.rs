//! UDP of programs through both proxies.

use std::net::SocketAddr;

use ctcp_proxy::client::{ClientLimits, ForwardProxy, Greeting, listen};
use ctcp_proxy::counters::DropReason;
use ctcp_proxy::udp::{UdpOptions, listen as listen_udp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::setup::{Client, Server, content, in_time, link_to, localhost};

/// The largest payload of UDP over IPv4, and what a SOCKS5 header leaves of it.
const LARGEST: usize = 65_507;
const LARGEST_WRAPPED: usize = LARGEST - 10;

async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind(localhost()).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((count, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..count], from).await;
        }
    });
    address
}

/// A SOCKS5 association: the connection that holds it, and the program's socket, connected to the relay.
async fn associate(proxy: SocketAddr) -> (TcpStream, UdpSocket) {
    let mut control = TcpStream::connect(proxy).await.unwrap();
    control.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut head = [0; 6];
    control.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..5], [5, 0, 5, 0, 0]);
    let relay = match head[5] {
        1 => {
            let mut ip = [0; 4];
            control.read_exact(&mut ip).await.unwrap();
            SocketAddr::from((ip, control.read_u16().await.unwrap()))
        }
        _ => {
            let mut ip = [0; 16];
            control.read_exact(&mut ip).await.unwrap();
            SocketAddr::from((ip, control.read_u16().await.unwrap()))
        }
    };
    let program = UdpSocket::bind(SocketAddr::new(proxy.ip(), 0)).await.unwrap();
    program.connect(relay).await.unwrap();
    (control, program)
}

fn wrapped(target: SocketAddr, data: &[u8]) -> Vec<u8> {
    let SocketAddr::V4(target) = target else { panic!("IPv4 here") };
    [&[0, 0, 0, 1][..], &target.ip().octets(), &target.port().to_be_bytes(), data].concat()
}

/// Sends a datagram and returns the answer.
async fn exchange(program: &UdpSocket, datagram: &[u8]) -> Vec<u8> {
    program.send(datagram).await.unwrap();
    let mut buffer = vec![0; 65_536];
    let count = in_time(program.recv(&mut buffer)).await.unwrap();
    buffer.truncate(count);
    buffer
}

#[tokio::test]
async fn a_program_exchanges_datagrams_of_all_sizes_with_several_targets() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let client = Client::start(&server).await;
    let (_control, program) = associate(client.socks5).await;
    for target in [echo().await, echo().await] {
        for size in [0, 1, 1200, 9000, LARGEST_WRAPPED] {
            let datagram = wrapped(target, &content(size));
            assert!(exchange(&program, &datagram).await == datagram, "{size}");
        }
    }
    let named = [&b"\0\0\0\x03\x09localhost"[..], &echo().await.port().to_be_bytes(), b"by name"].concat();
    assert!(exchange(&program, &named).await.ends_with(b"by name"));
    let forbidden = wrapped(SocketAddr::from(([10, 1, 2, 3], 53)), b"x");
    program.send(&forbidden).await.unwrap();
    let counters = server.proxy.counters();
    in_time(async {
        while counters.udp.dropped(DropReason::Forbidden) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!((counters.udp.upstream.value(), counters.targets_refused.value()), (11, 1));
}

#[tokio::test]
async fn a_relay_on_ipv6_carries_the_largest_datagrams_of_ipv4() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let proxy = ForwardProxy::new(link_to(&server), ClientLimits::default());
    let Ok(listener) = listen("[::1]:0".parse().unwrap()) else { return }; // a machine without IPv6
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { proxy.serve_socks5(listener).await });
    let (_control, program) = associate(address).await;
    let datagram = wrapped(echo().await, &content(LARGEST));
    assert!(exchange(&program, &datagram).await == datagram);
}

#[tokio::test]
async fn a_forward_carries_datagrams_of_all_sizes() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (limits, options) = (ClientLimits::default(), UdpOptions::default());
    let proxy = ForwardProxy::with_options(link_to(&server), limits, Greeting::default(), options);
    let socket = listen_udp(localhost()).unwrap();
    let (address, target) = (socket.local_addr().unwrap(), echo().await);
    tokio::spawn(async move { proxy.serve_udp_forward(socket, target.into()).await });
    let program = UdpSocket::bind(localhost()).await.unwrap();
    program.connect(address).await.unwrap();
    for size in [0, 1, 1200, 9000, LARGEST] {
        assert!(exchange(&program, &content(size)).await == content(size), "{size}");
    }
}
