//! HTTP over one coded stream to a target, kept for further requests of the same application's connection.
//!
//! ```text
//!  Upstream --request--> hyper's client, a task of its own --Metered--> coded stream ==> target
//!     ^                                |
//!     +---------- response ------------+
//! ```
//!
//! The task outlives the [`Upstream`] until the stream has ended regularly: our end, then the target's.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::HEAD_BYTES_MAX;
use super::application::Course;
use super::body::RequestBody;
use crate::address::TargetAddress;
use crate::coded::CodedStream;
use crate::counters::Counters;

/// A used stream must be ready again within this time, or a new one is opened. It is ready as soon as its task has run,
/// unless the last request's body is still being sent.
const READY_PATIENCE: Duration = Duration::from_millis(100);

/// How long a target may take to close after our end. Then its stream is dropped.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// An HTTP client on a stream to a target.
pub(super) struct Upstream {
    pub(super) target: TargetAddress,
    sender: SendRequest<RequestBody>,
    is_cut: Arc<AtomicBool>,
}

/// A request that was not answered: the error, and the request if nothing of it was sent.
pub(super) struct Unanswered {
    pub(super) error: hyper::Error,
    pub(super) unsent: Option<Request<RequestBody>>,
}

impl Upstream {
    /// Starts HTTP on a stream that was opened for the target.
    pub(super) async fn new<S: CodedStream>(
        target: TargetAddress,
        stream: S,
        counters: Arc<Counters>,
        course: Arc<Course>,
    ) -> Result<Self, hyper::Error> {
        let io = Metered {
            inner: stream,
            counters: counters.clone(),
            course,
            is_flushed: true,
            has_ended: false,
            has_failed: false,
        };
        let handshake = http1::Builder::new()
            .preserve_header_case(true) // some servers and devices depend on it
            .http09_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(io));
        let (sender, connection) = handshake.await?;
        let is_cut = Arc::new(AtomicBool::new(false));
        tokio::spawn(drive(connection, is_cut.clone(), counters));
        Ok(Self { target, sender, is_cut })
    }

    /// Returns true if it accepts another request.
    pub(super) async fn is_ready(&mut self) -> bool {
        matches!(timeout(READY_PATIENCE, self.sender.ready()).await, Ok(Ok(())))
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn ask(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Box<Unanswered>> {
        let waiting = Waiting(Some(&self.is_cut));
        let answer = self.sender.try_send_request(request).await;
        waiting.end();
        answer.map_err(|mut failed| {
            let unsent = failed.take_message();
            Box::new(Unanswered { error: failed.into_error(), unsent })
        })
    }

    /// The flag to set when a response is dropped before its end.
    pub(super) fn is_cut(&self) -> Arc<AtomicBool> {
        self.is_cut.clone()
    }
}

/// A request waiting for its response. If it is dropped before [`Waiting::end`], the exchange counts as cut off.
struct Waiting<'a>(Option<&'a AtomicBool>);

impl Waiting<'_> {
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(is_cut) = self.0 {
            is_cut.store(true, Relaxed);
        }
    }
}

type Connection<S> = http1::Connection<TokioIo<Metered<S>>, RequestBody>;

/// Runs the exchange on a stream, and ends or aborts the stream according to the outcome.
async fn drive<S: CodedStream>(
    mut connection: Connection<S>,
    is_cut: Arc<AtomicBool>,
    counters: Arc<Counters>,
) {
    let _present = counters.streams_open.enter();
    let outcome = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let Metered { inner: mut stream, course, has_failed, .. } = connection.into_parts().io.into_inner();
    // hyper returns success for failures that it reported elsewhere, so the flags are checked too.
    if outcome.is_err() || has_failed || is_cut.load(Relaxed) || course.is_broken() {
        counters.streams_failed.add(1);
        stream.abort();
        return;
    }
    let end = async {
        let _ = stream.shutdown().await;
        let mut rest = [0; 256];
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    };
    let _ = timeout(CLOSE_PATIENCE, end).await;
}

/// A coded stream that counts its bytes, and ends its half when the application has ended its own.
struct Metered<S> {
    inner: S,
    counters: Arc<Counters>,
    course: Arc<Course>,
    /// All data was flushed.
    is_flushed: bool,
    /// Our half has ended.
    has_ended: bool,
    /// The stream failed.
    has_failed: bool,
}

impl<S: CodedStream> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.has_ended && this.is_flushed && this.course.poll_left(context).is_ready() {
            // Some targets stop working when the application leaves; a failure shows when reading.
            this.has_ended = Pin::new(&mut this.inner).poll_shutdown(context).is_ready();
        }
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut this.inner).poll_read(context, buffer));
        this.has_failed |= outcome.is_err();
        outcome?;
        this.counters.downstream.add((buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl<S: CodedStream> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        let outcome = ready!(Pin::new(&mut self.inner).poll_write(context, data));
        self.has_failed |= outcome.is_err();
        let count = outcome?;
        self.counters.upstream.add(count as u64);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
