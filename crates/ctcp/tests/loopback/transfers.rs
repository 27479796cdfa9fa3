//! All bytes arrive, in order.

use std::time::Duration;

use ctcp::{Endpoint, TransportConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{Pair, check_echo, content, echo, in_time, localhost};

#[tokio::test]
async fn a_short_message_comes_back() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    in_time(check_echo(&pair.connection, b"hello")).await;
}

#[tokio::test]
async fn an_empty_stream_comes_back_empty() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    in_time(check_echo(&pair.connection, b"")).await;
}

#[tokio::test]
async fn ten_megabytes_are_echoed_unchanged() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    in_time(check_echo(&pair.connection, &content(1, 10 << 20))).await;
    // Loopback preserves the codepoint, and Linux reports it for every datagram.
    if cfg!(target_os = "linux") {
        assert!(pair.connection.stats().is_ecn_capable && pair.accepted.stats().is_ecn_capable);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_streams_run_in_parallel_on_many_threads() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    let tasks: Vec<_> = (0..200)
        .map(|seed| {
            let connection = pair.connection.clone();
            tokio::spawn(async move { check_echo(&connection, &content(seed, 20_000)).await })
        })
        .collect();
    for task in tasks {
        in_time(task).await.unwrap();
    }
}

#[tokio::test]
async fn more_streams_than_the_limit_wait_for_their_turn() {
    let mut transport = TransportConfig::default();
    transport.streams(4);
    let pair = Pair::with(transport).await;
    tokio::spawn(echo(pair.accepted.clone()));
    let tasks: Vec<_> = (0..40)
        .map(|seed| {
            let connection = pair.connection.clone();
            tokio::spawn(async move { check_echo(&connection, &content(seed, 1_000)).await })
        })
        .collect();
    for task in tasks {
        in_time(task).await.unwrap();
    }
}

#[tokio::test]
async fn both_sides_open_streams() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    tokio::spawn(echo(pair.connection.clone()));
    let (to, back) = (content(1, 100_000), content(2, 100_000));
    in_time(async { tokio::join!(check_echo(&pair.connection, &to), check_echo(&pair.accepted, &back)) })
        .await;
}

#[tokio::test]
async fn a_paused_reader_blocks_the_writer_until_it_reads_again() {
    const CREDIT: u64 = 64 << 10;
    let mut transport = TransportConfig::default();
    transport.stream_credit(CREDIT, 16 << 20).connection_credit(4 * CREDIT, 64 << 20);
    let pair = Pair::with(transport).await;
    let (mut opened, mut accepted) = pair.stream().await;
    let chunk = content(3, 16 << 10);
    let mut written = 0;
    // Enough time for far more than the credit.
    while let Ok(result) = tokio::time::timeout(Duration::from_millis(300), opened.write(&chunk)).await {
        written += result.unwrap();
        assert!(written < 16 << 20, "nothing stops the writer");
    }
    assert!(written as u64 >= CREDIT, "the writer stopped before the credit was used: {written}");

    let mut rest = vec![0; written];
    in_time(accepted.read_exact(&mut rest)).await.unwrap();
    assert!(in_time(opened.write(&chunk)).await.unwrap() > 0);

    // Another stream was not blocked in the meantime.
    tokio::spawn(echo(pair.accepted.clone()));
    in_time(check_echo(&pair.connection, b"me too")).await;
}

#[tokio::test]
async fn a_transfer_continues_from_a_new_local_socket() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.accepted.clone()));
    let old = pair.client.local_addr().unwrap();
    let bytes = content(4, 8 << 20);
    let transfer = check_echo(&pair.connection, &bytes);
    let rebind = async {
        // In the middle: part of the data has arrived, most has not.
        while pair.accepted.stats().bytes_received < 1 << 20 {
            tokio::task::yield_now().await;
        }
        pair.client.rebind(localhost()).unwrap();
    };
    in_time(async { tokio::join!(transfer, rebind) }).await;
    let new = pair.client.local_addr().unwrap();
    assert_ne!(old, new);
    assert_eq!(pair.accepted.remote_address(), new);
}

#[tokio::test]
async fn many_connections_share_one_socket() {
    let (server, server_key) = super::setup::server(TransportConfig::default());
    let address = server.local_addr().unwrap();
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    let client: Endpoint = super::setup::client(TransportConfig::default());
    let tasks: Vec<_> = (0..50)
        .map(|seed| {
            let client = client.clone();
            tokio::spawn(async move {
                let connection = client.connect(address, server_key).await.unwrap();
                check_echo(&connection, &content(seed, 10_000)).await;
            })
        })
        .collect();
    for task in tasks {
        in_time(task).await.unwrap();
    }
}
