//! Bodies: of requests to targets, and of responses to applications.

use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::application::{Answering, Course};
use crate::splice::HAND_OVER_PATIENCE;

type BoxError = Box<dyn core::error::Error + Send + Sync>;

/// The body of a request. Its first poll makes hyper answer an application's `Expect: 100-continue`, so that poll waits
/// until the target has sent its own `100 Continue`.
pub(super) struct RequestBody(Option<Sending>);

struct Sending {
    incoming: Incoming,
    course: Arc<Course>,
    go_ahead: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.course.send(false);
        self.course.hold(false);
    }
}

/// How long to wait for a target that does not answer `Expect: 100-continue`; it may not support it. Then the body is
/// sent anyway, as RFC 9110 section 10.1.1 recommends. curl waits as long.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(1);

impl RequestBody {
    /// Creates a body from the incoming one. With `go_ahead` it starts after the notification or a time-out.
    pub(super) fn new(incoming: Incoming, course: Arc<Course>, go_ahead: Option<Arc<Notify>>) -> Self {
        let go_ahead = go_ahead.map(|notify| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                tokio::select! {
                    () = notify.notified() => {}
                    () = sleep(CONTINUE_PATIENCE) => {}
                }
            })
        });
        if incoming.is_end_stream() {
            return Self(None);
        }
        course.send(true);
        course.hold(go_ahead.is_some());
        Self(Some(Sending { incoming, course, go_ahead }))
    }

    /// Creates an empty body.
    pub(super) fn empty() -> Self {
        Self(None)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(sending) = &mut self.0 else { return Poll::Ready(None) };
        if let Some(go_ahead) = &mut sending.go_ahead {
            core::task::ready!(go_ahead.as_mut().poll(context));
            sending.go_ahead = None;
            sending.course.hold(false);
        }
        // Polled first: hyper reports the end only after it has handed over everything before it.
        let has_ended = sending.course.poll_ended(context).is_ready();
        match Pin::new(&mut sending.incoming).poll_frame(context) {
            Poll::Pending if has_ended => {
                sending.course.break_off();
                Poll::Ready(Some(Err(Box::new(io::Error::from(io::ErrorKind::UnexpectedEof)))))
            }
            polled => polled.map_err(|error| {
                sending.course.break_off();
                error.into()
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|sending| sending.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), |sending| sending.incoming.size_hint())
    }
}

/// The body of a response: a page of the proxy, or the body from a target.
pub(super) struct ResponseBody {
    content: Content,
    _answering: Answering,
}

enum Content {
    Page(Bytes),
    Passing(Passing),
}

impl ResponseBody {
    /// Creates the body of a page.
    pub(super) fn page(text: impl Into<Bytes>, answering: Answering) -> Self {
        Self { content: Content::Page(text.into()), _answering: answering }
    }

    /// Creates a body that passes a target's data; `is_cut` is set if it is dropped before its end.
    pub(super) fn passing(
        incoming: Incoming,
        course: Arc<Course>,
        is_cut: Arc<AtomicBool>,
        answering: Answering,
    ) -> Self {
        course.arm(true);
        let passing = Passing { incoming, is_done: false, cut: None, course, is_cut };
        Self { content: Content::Passing(passing), _answering: answering }
    }
}

/// A target's body, which keeps the application's connection armed while it passes.
struct Passing {
    incoming: Incoming,
    is_done: bool,
    /// The body was cut off. The error is reported once the application has the data before it, or does not read it in
    /// time.
    cut: Option<(hyper::Error, Pin<Box<Sleep>>)>,
    course: Arc<Course>,
    is_cut: Arc<AtomicBool>,
}

impl Passing {
    /// Returns the next piece. When a body fails, hyper drops what it has not written yet, so the failure is reported
    /// last.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.cut.is_none() {
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Ready(Some(Err(error))) => {
                    self.course.await_flush();
                    self.cut = Some((error, Box::pin(sleep(HAND_OVER_PATIENCE))));
                }
                polled => return polled,
            }
        }
        if let Some((_, patience)) = &mut self.cut
            && self.course.poll_flushed(context).is_pending()
            && patience.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(self.cut.take().map(|(error, _)| Err(error)))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if self.is_done || self.incoming.is_end_stream() {
            self.course.arm(false);
        } else {
            self.is_cut.store(true, Relaxed);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.content {
            Content::Page(text) if text.is_empty() => Poll::Ready(None),
            Content::Page(text) => Poll::Ready(Some(Ok(Frame::data(core::mem::take(text))))),
            Content::Passing(passing) => {
                let polled = passing.poll_piece(context);
                passing.is_done |= matches!(polled, Poll::Ready(None));
                polled.map_err(Into::into)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Page(text) => text.is_empty(),
            Content::Passing(passing) => passing.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Page(text) => SizeHint::with_exact(text.len() as u64),
            Content::Passing(passing) => passing.incoming.size_hint(),
        }
    }
}
