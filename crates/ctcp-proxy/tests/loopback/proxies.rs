//! Applications through both proxies.

use std::io::ErrorKind;
use std::time::Duration;

use ctcp_proxy::client::{ClientLimits, ForwardProxy, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::setup::{Client, Server, content, echo_by_length, in_time, link_and_endpoint, localhost, source};

async fn download(stream: &mut TcpStream, size: u32) {
    stream.write_u32(size).await.unwrap();
    let mut got = vec![0; size as usize];
    stream.read_exact(&mut got).await.unwrap();
    assert!(got == content(size as usize));
}

// Requirement: C7
#[tokio::test]
async fn a_program_that_speaks_socks5_reaches_a_target_over_ctcp() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (client, target) = (Client::start(&server).await, source().await);
    in_time(async {
        let (mut stream, code) = client.open(target).await;
        assert_eq!(code, 0);
        for size in [0, 1, 100_000, 3_000_000] {
            download(&mut stream, size).await;
        }
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn five_hundred_parallel_downloads_are_all_correct() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (client, target) = (std::sync::Arc::new(Client::start(&server).await), source().await);
    in_time(async {
        let mut downloads = JoinSet::new();
        for number in 0..500 {
            let client = client.clone();
            downloads.spawn(async move {
                let (mut stream, code) = client.open(target).await;
                assert_eq!(code, 0);
                download(&mut stream, 100_000 + number).await;
                stream.shutdown().await.unwrap();
                assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            });
        }
        while let Some(outcome) = downloads.join_next().await {
            outcome.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn after_a_restart_of_the_server_applications_are_reset_and_new_ones_work_within_a_second() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (client, target) = (Client::start(&server).await, source().await);
    in_time(async {
        let (mut stream, _) = client.open(target).await;
        download(&mut stream, 1000).await;
        let (key, address) = server.kill();
        let _server = Server::start(key, address, None).await;
        let restarted = Instant::now();

        // An application that sends data notices the restart, and so does the client.
        stream.write_u32(10_000_000).await.unwrap();
        let error =
            timeout(Duration::from_secs(1), stream.read_u8()).await.unwrap().expect_err("no clean end");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let (mut stream, code) = client.open(target).await;
        assert_eq!(code, 0);
        download(&mut stream, 1000).await;
        assert!(restarted.elapsed() < Duration::from_secs(1), "{:?}", restarted.elapsed());
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_the_first_to_notice_a_restart_succeeds() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (client, target) = (Client::start(&server).await, source().await);
    in_time(async {
        drop(client.open(target).await);
        let (key, address) = server.kill();
        let _server = Server::start(key, address, None).await;
        let (mut stream, code) = timeout(Duration::from_secs(2), client.open(target)).await.unwrap();
        assert_eq!(code, 0);
        download(&mut stream, 1000).await;
    })
    .await;
}

#[tokio::test]
async fn a_target_that_resets_resets_the_application() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let client = Client::start(&server).await;
    let listener = tokio::net::TcpListener::bind(localhost()).await.unwrap();
    in_time(async {
        let (mut stream, _) = client.open(listener.local_addr().unwrap()).await;
        let (target, _) = listener.accept().await.unwrap();
        target.set_zero_linger().unwrap();
        drop(target);
        assert_eq!(stream.read_u8().await.expect_err("no clean end").kind(), ErrorKind::ConnectionReset);

        let (stream, _) = client.open(listener.local_addr().unwrap()).await;
        let (mut target, _) = listener.accept().await.unwrap();
        stream.set_zero_linger().unwrap();
        drop(stream);
        assert_eq!(target.read_u8().await.expect_err("no clean end").kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_stops_blocks_the_target() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let client = Client::start(&server).await;
    let listener = tokio::net::TcpListener::bind(localhost()).await.unwrap();
    in_time(async {
        let (stalled, _) = client.open(listener.local_addr().unwrap()).await;
        let (mut target, _) = listener.accept().await.unwrap();
        let mut written = 0;
        let chunk = vec![7; 64 * 1024];
        while let Ok(count) = timeout(Duration::from_millis(500), target.write(&chunk)).await {
            written += count.unwrap();
        }
        // The credit of the stream (2 MiB), both buffers of the transport, and those of the kernel's four sockets.
        assert!(written < 32 << 20, "{written}");
        // Other streams continue in the meantime.
        let (mut other, code) = client.open(source().await).await;
        assert_eq!(code, 0);
        download(&mut other, 1_000_000).await;
        drop(stalled);
    })
    .await;
}

#[tokio::test]
async fn a_connect_that_ends_with_its_target_counts_as_failed_on_neither_side() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let listener = listen(localhost()).unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.read_u8().await.unwrap();
            stream.write_all(b"bye").await.unwrap();
        }
    });
    let counters = server.proxy.counters();
    for round in 1..=5 {
        let (link, endpoint) = link_and_endpoint(&server);
        let proxy = ForwardProxy::new(link, ClientLimits::default());
        let (mut input, reader) = tokio::io::duplex(10);
        input.write_all(b"x").await.unwrap();
        let spliced = in_time(proxy.connect_pipes(reader, tokio::io::sink(), &target.into())).await.unwrap();
        assert_eq!((spliced.b_to_a, spliced.failure.is_none()), (3, true));
        drop(proxy);
        in_time(endpoint.close(0, "")).await;
        in_time(async {
            while counters.streams_total.value() < round || counters.streams_open.value() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert_eq!(counters.streams_failed.value(), 0);
    }
}

#[tokio::test]
async fn plain_requests_with_bodies_both_ways_share_a_connection_and_leave_nothing_open() {
    let server = Server::start(ctcp::generate_key().unwrap(), localhost(), None).await;
    let (client, targets) = (Client::start(&server).await, [echo_by_length().await, echo_by_length().await]);
    in_time(async {
        let stream = TcpStream::connect(client.http).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        for (number, size) in [0, 1, 100_000, 3_000_000, 7].into_iter().enumerate() {
            let (body, target) = (content(size), targets[number / 3]);
            let head =
                format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: {size}\r\n\r\n");
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
            let mut got = vec![0; answer.len() + size];
            let write = async {
                writer.write_all(head.as_bytes()).await.unwrap();
                writer.write_all(&body).await.unwrap();
            };
            let (_, read) = tokio::join!(write, reader.read_exact(&mut got));
            read.unwrap();
            assert!(got.starts_with(answer.as_bytes()) && got.ends_with(&body));
        }
        drop((reader, writer));
        let counters = server.proxy.counters();
        while counters.streams_open.value() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Two targets with one stream each.
        assert_eq!((counters.streams_total.value(), counters.streams_failed.value()), (2, 0));
    })
    .await;
}
