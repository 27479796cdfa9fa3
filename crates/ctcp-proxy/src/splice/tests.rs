use core::future::pending;
use core::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::*;
use crate::coded::CodedStream;
use crate::counters::Counters;
use crate::memory::{PIPE_BYTES, Stream, stream_pair};

async fn joined_by<A: SpliceEnd, B: SpliceEnd, C: Future>(
    a: &mut A,
    b: &mut B,
    options: SpliceOptions,
    cut: C,
) -> Spliced {
    let counters = Counters::new("client");
    let meter = Meter { a_to_b: &counters.upstream, b_to_a: &counters.downstream };
    let spliced = splice(a, b, options, meter, cut).await;
    assert_eq!((counters.upstream.value(), counters.downstream.value()), (spliced.a_to_b, spliced.b_to_a));
    spliced
}

/// An application's socket and the proxy's end of it.
async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (near, far) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

/// An application on TCP, the splice, and the far end of the coded stream.
async fn joined() -> (TcpStream, tokio::task::JoinHandle<Spliced>, Stream) {
    let (application, mut local) = tcp_pair().await;
    let (mut near, far) = stream_pair();
    let task = tokio::spawn(async move {
        joined_by(&mut local, &mut near, SpliceOptions::default(), pending::<()>()).await
    });
    (application, task, far)
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_direction_ends_on_its_own() {
    let (mut application, task, mut far) = joined().await;
    application.write_all(b"request").await.unwrap();
    application.shutdown().await.unwrap();
    let mut request = Vec::new();
    far.read_to_end(&mut request).await.unwrap();
    assert_eq!(request, b"request");
    far.write_all(b"a long answer").await.unwrap();
    let mut answer = [0; 13];
    application.read_exact(&mut answer).await.unwrap();
    assert!(!task.is_finished());
    far.shutdown().await.unwrap();
    assert_eq!(application.read(&mut answer).await.unwrap(), 0);
    let spliced = task.await.unwrap();
    assert!(spliced.failure.is_none());
    assert_eq!((spliced.a_to_b, spliced.b_to_a), (7, 13));
}

#[tokio::test]
async fn an_end_that_was_read_before_is_not_awaited_again() {
    // Like a terminal: it is still open, and has reported its end already.
    let (_application, mut local) = tcp_pair().await;
    let (mut near, mut far) = stream_pair();
    let options = SpliceOptions { early: b"hi".to_vec(), is_a_done: true, ..SpliceOptions::default() };
    far.shutdown().await.unwrap();
    let spliced = joined_by(&mut local, &mut near, options, pending::<()>());
    let spliced = timeout(Duration::from_secs(5), spliced).await.expect("ends");
    assert_eq!((spliced.a_to_b, spliced.failure.is_none()), (2, true));
    let mut there = Vec::new();
    far.read_to_end(&mut there).await.unwrap();
    assert_eq!(there, b"hi");
}

#[tokio::test]
async fn early_bytes_go_first() {
    let (mut application, mut local) = tcp_pair().await;
    let (mut near, mut far) = stream_pair();
    application.write_all(b" later").await.unwrap();
    application.shutdown().await.unwrap();
    let options = SpliceOptions { early: b"early".to_vec(), ..SpliceOptions::default() };
    far.write_all(b"hello").await.unwrap();
    far.shutdown().await.unwrap();
    let spliced = joined_by(&mut local, &mut near, options, pending::<()>()).await;
    drop(local);
    assert_eq!((spliced.a_to_b, spliced.b_to_a), (11, 5));
    let (mut there, mut back) = (Vec::new(), Vec::new());
    far.read_to_end(&mut there).await.unwrap();
    application.read_to_end(&mut back).await.unwrap();
    assert_eq!((there, back), (b"early later".to_vec(), b"hello".to_vec()));
}

#[tokio::test]
async fn a_reset_of_the_stream_reaches_the_application_as_a_reset() {
    let (mut application, task, mut far) = joined().await;
    application.write_all(b"x").await.unwrap();
    far.read_u8().await.unwrap();
    far.reset(9);
    let error = application.read_u8().await.expect_err("no clean end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let spliced = task.await.unwrap();
    assert!(matches!(spliced.failure, Some((End::B, _))));
}

#[tokio::test]
async fn a_reset_of_the_application_reaches_the_stream_as_a_reset() {
    let (application, task, mut far) = joined().await;
    far.write_all(b"x").await.unwrap();
    application.set_zero_linger().unwrap();
    drop(application);
    let error = far.read_u8().await.expect_err("no clean end");
    assert_eq!(crate::coded::reset_code(&error), Some(crate::request::stream_code::ABORTED));
    assert!(matches!(task.await.unwrap().failure, Some((End::A, _))));
}

#[tokio::test]
async fn an_application_that_closes_while_data_arrives_stops_the_stream() {
    let (application, task, mut far) = joined().await;
    drop(application);
    assert_eq!(far.read(&mut [0; 1]).await.unwrap(), 0);
    let endless = async {
        loop {
            if let Err(error) = far.write_all(&[0; 1000]).await {
                return error;
            }
        }
    };
    let error = timeout(Duration::from_secs(5), endless).await.expect("the stream fails");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert!(task.await.unwrap().failure.is_some());
}

#[tokio::test]
async fn a_half_closed_idle_splice_notices_that_the_other_side_stopped() {
    let (mut application, task, mut far) = joined().await;
    far.shutdown().await.unwrap();
    assert_eq!(application.read(&mut [0; 1]).await.unwrap(), 0);
    drop(far);
    let spliced = timeout(Duration::from_secs(5), task).await.expect("the splice ends").unwrap();
    assert!(spliced.failure.is_some());
}

/// Writes until there is no room left, and returns the number of bytes.
async fn fill(stream: &mut Stream) -> usize {
    let mut sent = 0;
    while let Ok(written) = timeout(Duration::from_millis(100), stream.write(&[7; 1000])).await {
        sent += written.unwrap();
    }
    sent
}

/// Reads until the connection is reset, and returns the number of bytes.
async fn until_reset(application: &mut TcpStream) -> usize {
    let (mut read, mut buffer) = (0, vec![0; 64 * 1024]);
    loop {
        match application.read(&mut buffer).await {
            Ok(0) => panic!("a regular end"),
            Ok(count) => read += count,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                return read;
            }
        }
    }
}

#[cfg(target_os = "linux")] // elsewhere the reset discards the kernel's queue
#[tokio::test]
async fn a_slow_application_gets_what_arrived_before_the_connection_was_lost_and_then_a_reset() {
    for is_cut in [false, true] {
        let (mut application, mut local) = tcp_pair().await;
        let (mut near, mut far) = stream_pair();
        let (cut, is_lost) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let cut = async {
                if is_lost.await.is_err() {
                    pending::<()>().await;
                }
            };
            joined_by(&mut local, &mut near, SpliceOptions::default(), cut).await
        });
        let sent = fill(&mut far).await; // all pipes, and the kernel's queues
        far.lose();
        if is_cut {
            cut.send(()).unwrap();
        } else {
            // The other direction notices first.
            application.write_all(b"more").await.unwrap();
        }
        sleep(Duration::from_millis(300)).await;
        assert_eq!(until_reset(&mut application).await, sent);
        let spliced = task.await.unwrap();
        assert_eq!((spliced.b_to_a, spliced.failure.is_some()), (sent as u64, true));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stream_that_had_arrived_completely_ends_regularly_after_the_connection_is_lost() {
    let (mut application, mut local) = tcp_pair().await;
    let (mut near, mut far) = stream_pair();
    let (cut, is_lost) = tokio::sync::oneshot::channel::<()>();
    let task =
        tokio::spawn(
            async move { joined_by(&mut local, &mut near, SpliceOptions::default(), is_lost).await },
        );
    let sent = fill(&mut far).await;
    far.shutdown().await.unwrap();
    far.lose();
    cut.send(()).unwrap();
    let mut read = Vec::new();
    application.read_to_end(&mut read).await.unwrap();
    assert_eq!(read.len(), sent);
    drop(application);
    timeout(Duration::from_secs(5), task).await.expect("the splice ends").unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_application_that_reads_nothing_is_reset_after_a_while() {
    let (application, mut near) = stream_pair();
    let (mut stream, mut far) = stream_pair();
    let task = tokio::spawn(async move {
        let spliced = joined_by(&mut near, &mut stream, SpliceOptions::default(), pending::<()>()).await;
        drop((near, stream));
        spliced
    });
    let sent = fill(&mut far).await;
    let lost = tokio::time::Instant::now();
    far.lose();
    let spliced = task.await.unwrap();
    assert!(spliced.b_to_a < sent as u64 && spliced.failure.is_some());
    assert!(lost.elapsed() >= HAND_OVER_PATIENCE);
    drop(application);
}

#[tokio::test(start_paused = true)]
async fn the_cut_aborts_both_ends() {
    let (mut application, mut local) = tcp_pair().await;
    let (mut near, mut far) = stream_pair();
    // More than the stream accepts; an application that does not read, for example, would hide the loss.
    let options = SpliceOptions { early: vec![0; PIPE_BYTES + 1], ..SpliceOptions::default() };
    let spliced = joined_by(&mut local, &mut near, options, core::future::ready(())).await;
    assert!(matches!(spliced.failure, Some((End::Cut, _))));
    drop((local, near));
    assert_eq!(application.read_u8().await.expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(far.read_u8().await.expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn dropping_a_splice_in_the_middle_is_a_reset_too() {
    let (mut application, task, mut far) = joined().await;
    application.write_all(b"x").await.unwrap();
    far.read_u8().await.unwrap();
    task.abort();
    assert_eq!(application.read_u8().await.expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
    assert!(far.read_u8().await.is_err());
}

#[tokio::test]
async fn a_reader_that_stops_blocks_the_writer() {
    let (mut near, far) = stream_pair();
    let (mut upstream, source) = stream_pair();
    let task = tokio::spawn(async move {
        let mut source = source;
        joined_by(&mut source, &mut near, SpliceOptions::default(), pending::<()>()).await
    });
    let mut sent = 0;
    while let Ok(written) = timeout(Duration::from_millis(50), upstream.write(&[7; 1000])).await {
        sent += written.unwrap();
    }
    // Two full pipes, and the data that the direction holds.
    assert!(sent <= 2 * PIPE_BYTES + CHUNK_BYTES, "{sent}");
    drop((upstream, far));
    task.await.unwrap();
}

#[tokio::test]
async fn a_megabyte_arrives_unchanged_both_ways_at_once() {
    let (application, task, far) = joined().await;
    let content: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    let (mut app_read, mut app_write) = application.into_split();
    let (mut far_read, mut far_write) = tokio::io::split(far);
    let (up, down) = (content.clone(), content.clone());
    let writers = tokio::spawn(async move {
        let upload = async {
            app_write.write_all(&up).await.unwrap();
            app_write.shutdown().await.unwrap();
        };
        let download = async {
            far_write.write_all(&down).await.unwrap();
            far_write.shutdown().await.unwrap();
        };
        tokio::join!(upload, download);
    });
    let (mut got_up, mut got_down) = (Vec::new(), Vec::new());
    let (up, down) = tokio::join!(far_read.read_to_end(&mut got_up), app_read.read_to_end(&mut got_down));
    assert_eq!((up.unwrap(), down.unwrap()), (content.len(), content.len()));
    writers.await.unwrap();
    assert!(got_up == content && got_down == content);
    let spliced = task.await.unwrap();
    assert_eq!((spliced.a_to_b, spliced.b_to_a), (1_000_000, 1_000_000));
}

#[tokio::test]
async fn a_splice_that_ends_with_the_second_end_does_not_wait_for_the_first() {
    let (mut application, mut local) = tcp_pair().await;
    let (mut near, mut far) = stream_pair();
    far.write_all(b"response").await.unwrap();
    far.shutdown().await.unwrap();
    let options = SpliceOptions { is_over_with_b: true, ..SpliceOptions::default() };
    let spliced = joined_by(&mut local, &mut near, options, pending::<()>()).await;
    assert!(spliced.failure.is_none());
    drop((local, near));
    let mut response = Vec::new();
    application.read_to_end(&mut response).await.unwrap();
    assert_eq!(response, b"response");
    assert!(far.read_u8().await.is_err());
}

/// Buffers writes until it is flushed, and does not flush on shutdown, like standard output.
struct Lazy {
    inner: Stream,
    held: Vec<u8>,
}

impl AsyncRead for Lazy {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lazy {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.held.extend(data);
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while !this.held.is_empty() {
            let count = ready!(Pin::new(&mut this.inner).poll_write(context, &this.held))?;
            this.held.drain(..count);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl SpliceEnd for Lazy {
    fn abort(&mut self) {}
}

#[tokio::test]
async fn a_writer_that_does_not_flush_on_shutdown_gets_everything() {
    let (inner, mut output) = stream_pair();
    let mut lazy = Lazy { inner, held: Vec::new() };
    let (mut near, mut far) = stream_pair();
    far.write_all(b"to the last byte").await.unwrap();
    far.shutdown().await.unwrap();
    let options = SpliceOptions { is_over_with_b: true, ..SpliceOptions::default() };
    joined_by(&mut lazy, &mut near, options, pending::<()>()).await;
    let mut said = Vec::new();
    output.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"to the last byte");
}
