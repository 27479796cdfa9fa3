//! How streams end: regularly, reset by the writer, stopped by the reader, dropped.

use std::error::Error;
use std::io::{self, ErrorKind};

use ctcp::{StreamError, StreamReset, StreamStopped};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{Pair, content, in_time};

fn cause<T: Error + Clone + 'static>(error: &io::Error) -> Option<T> {
    error.get_ref()?.downcast_ref().cloned()
}

#[tokio::test]
async fn a_finished_stream_is_read_to_its_end_and_the_writer_learns_of_its_delivery() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    let bytes = content(1, 100_000);
    opened.write_all(&bytes).await.unwrap();
    opened.shutdown().await.unwrap();
    let mut read = Vec::new();
    in_time(accepted.read_to_end(&mut read)).await.unwrap();
    assert!(read == bytes);
    in_time(opened.finished()).await.unwrap();
    assert_eq!(in_time(opened.stopped()).await, None);
    assert_eq!(accepted.read(&mut [0; 8]).await.unwrap(), 0, "reads after the end return the end again");
    assert_eq!(opened.finish(), Ok(()));
    assert!(opened.write(b"more").await.is_err());
}

#[tokio::test]
async fn one_direction_goes_on_when_the_other_is_finished() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    opened.finish().unwrap();
    assert_eq!(in_time(accepted.read(&mut [0; 8])).await.unwrap(), 0);
    accepted.write_all(b"still here").await.unwrap();
    accepted.finish().unwrap();
    let mut read = String::new();
    in_time(opened.read_to_string(&mut read)).await.unwrap();
    assert_eq!(read, "still here");
}

#[tokio::test]
async fn a_reset_reaches_the_reader_with_its_code() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    opened.reset(42);
    let error = in_time(accepted.read(&mut [0; 8])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(cause(&error), Some(StreamReset(42)));
    assert_eq!(in_time(opened.finished()).await, Err(StreamError::Closed));
}

#[tokio::test]
async fn a_dropped_writer_causes_an_error_and_not_a_regular_end() {
    let pair = Pair::new().await;
    let (opened, mut accepted) = pair.stream().await;
    let (_recv, send) = opened.into_split();
    drop(send);
    let error = in_time(accepted.read(&mut [0; 8])).await.unwrap_err();
    assert_eq!(cause(&error), Some(StreamReset(0)));
}

#[tokio::test]
async fn a_dropped_writer_that_had_finished_loses_nothing() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    let bytes = content(2, 50_000);
    opened.write_all(&bytes).await.unwrap();
    opened.finish().unwrap();
    drop(opened);
    let mut read = Vec::new();
    in_time(accepted.read_to_end(&mut read)).await.unwrap();
    assert!(read == bytes);
}

#[tokio::test]
async fn a_stop_reaches_the_writer_with_its_code() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    accepted.stop(7);
    assert_eq!(in_time(opened.stopped()).await, Some(7));
    let error = in_time(opened.write(b"more")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert_eq!(cause(&error), Some(StreamStopped(7)));
    assert!(matches!(opened.finish(), Err(StreamError::Stopped(StreamStopped(7)))));
}

#[tokio::test]
async fn a_dropped_reader_wakes_a_writer_that_is_blocked() {
    let pair = Pair::new().await;
    let (mut opened, accepted) = pair.stream().await;
    let (recv, _send) = accepted.into_split();
    let bytes = content(3, 1 << 20);
    let write = async {
        loop {
            if let Err(error) = opened.write_all(&bytes).await {
                return error;
            }
        }
    };
    let stop = async {
        while pair.accepted.stats().bytes_received < 100_000 {
            tokio::task::yield_now().await;
        }
        drop(recv);
    };
    let (error, ()) = in_time(async { tokio::join!(write, stop) }).await;
    assert_eq!(cause(&error), Some(StreamStopped(0)));
}

#[tokio::test]
async fn a_stream_can_be_stopped_before_it_is_accepted() {
    let pair = Pair::new().await;
    let mut opened = pair.connection.open().await.unwrap();
    opened.write_all(b"!").await.unwrap();
    opened.stop(9);
    // A later message on the same connection arrives after the stop.
    let (_later, _) = {
        let mut later = pair.connection.open().await.unwrap();
        later.write_all(b"!").await.unwrap();
        in_time(async {
            let first = pair.accepted.accept().await.unwrap();
            let second = pair.accepted.accept().await.unwrap();
            let mut first = first;
            assert_eq!(first.stopped().await, Some(9));
            (later, second)
        })
        .await
    };
}
