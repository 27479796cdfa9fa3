//! Messages over real sockets.

use core::time::Duration;

use ctcp::{ConnectionError, MessageError};

use super::setup::{Pair, content, in_time};

const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn messages_of_all_sizes_arrive_whole_in_both_directions() {
    let pair = Pair::new().await;
    for (from, to) in [(&pair.connection, &pair.accepted), (&pair.accepted, &pair.connection)] {
        for size in [0, 1, 1_200, 9_000, 65_535] {
            let message = content(size as u64, size);
            from.send_message(&message, DEADLINE).unwrap();
            assert!(in_time(to.receive_message()).await.unwrap() == message, "{size} bytes");
        }
        assert_eq!(from.send_message(&vec![0; 65_536], DEADLINE), Err(MessageError::TooLong));
        assert_eq!(from.message_size_max(), Some(65_535));
    }
    assert_eq!((pair.connection.stats().messages.sent, pair.accepted.stats().messages.received), (5, 5));
}

#[tokio::test]
async fn a_waiting_reader_learns_that_the_connection_has_closed() {
    let pair = Pair::new().await;
    let accepted = pair.accepted.clone();
    let reader = tokio::spawn(async move { accepted.receive_message().await });
    tokio::task::yield_now().await;
    pair.connection.close(7, "done");
    let error = in_time(reader).await.unwrap().unwrap_err();
    assert!(matches!(error, ConnectionError::ClosedByPeer(_)), "{error:?}");
    assert_eq!(pair.connection.send_message(b"x", DEADLINE), Err(MessageError::Closed));
}

#[tokio::test]
async fn messages_and_streams_share_a_connection() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    opened.set_low_latency(true);
    let bytes = content(3, 2_000_000);
    let sent = bytes.clone();
    let writer = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut opened, &sent).await.unwrap();
        opened.finish().unwrap();
        opened.finished().await.unwrap();
    });
    for number in 0..200_u32 {
        pair.connection.send_message(&number.to_be_bytes(), DEADLINE).unwrap();
        tokio::task::yield_now().await;
    }
    let mut read = Vec::new();
    in_time(tokio::io::AsyncReadExt::read_to_end(&mut accepted, &mut read)).await.unwrap();
    assert!(read == bytes);
    in_time(writer).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..200 {
        let message = in_time(pair.accepted.receive_message()).await.unwrap();
        numbers.push(u32::from_be_bytes(message.try_into().unwrap()));
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..200));
}
