//! An application's connection as hyper uses it, and the state that both share.
//!
//! ```text
//!  hyper <--reads, writes--> Application <--> the connection
//!    |                            |
//!    +--- bodies, requests --> Course: is a request being answered? has the application ended? arm?
//! ```
//!
//! hyper alone lacks two things that a proxy needs:
//!
//! - An application may end its half after a request and still expect the response (`nc`, pipes). hyper treats that end
//!   as a closed connection. So the end is hidden from hyper while a request is being answered. A request body that the
//!   end cuts off learns of it through [`Course::poll_ended`].
//! - A truncated response must not look complete. A connection is armed ([`SpliceEnd::arm`]) while a response passes,
//!   so that it is reset whatever happens to this process, and disarmed after the response's end.

use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::splice::{SpliceEnd, hand_over_sent};

/// The state of one connection of an application.
#[derive(Debug)]
pub(super) struct Course {
    /// Counts starts and ends of responses: odd while a request is being answered.
    turns: watch::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The application's end was seen while a request was being answered.
    has_ended: bool,
    /// A response is passing.
    is_armed: bool,
    /// A request's body is being sent.
    is_sending: bool,
    /// A request's body waits for `100 Continue`.
    is_held: bool,
    /// A request's body was cut off.
    is_broken: bool,
    /// Everything written since [`Course::await_flush`] was passed to the system.
    is_flushed: bool,
    /// The task waiting for that.
    flusher: Option<Waker>,
    /// The task reading the connection, from which the end was hidden.
    reader: Option<Waker>,
    /// Tasks that wait for the end.
    watchers: Vec<Waker>,
}

impl Course {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { turns: watch::Sender::new(0), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks that a request is being answered until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.state().has_ended = false; // it is found again after the data sent before it
        self.turns.send_modify(|turns| *turns += 1);
        Answering(self.clone())
    }

    /// Sets whether the connection must be reset when it is dropped.
    pub(super) fn arm(&self, is_armed: bool) {
        self.state().is_armed = is_armed;
    }

    fn is_armed(&self) -> bool {
        self.state().is_armed
    }

    /// Ready if the application ended its half while a request was being answered.
    pub(super) fn poll_ended(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.has_ended {
            return Poll::Ready(());
        }
        if !state.watchers.iter().any(|watcher| watcher.will_wake(context.waker())) {
            state.watchers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// The same for a receiver that would mistake a truncated body for a complete one: pending while a body is being
    /// sent.
    pub(super) fn poll_left(&self, context: &Context<'_>) -> Poll<()> {
        if self.state().is_sending { Poll::Pending } else { self.poll_ended(context) }
    }

    /// Sets whether a request's body is being sent.
    pub(super) fn send(&self, is_sending: bool) {
        self.state().is_sending = is_sending;
    }

    /// Sets whether a request's body waits for `100 Continue`.
    pub(super) fn hold(&self, is_held: bool) {
        self.state().is_held = is_held;
    }

    pub(super) fn is_held(&self) -> bool {
        self.state().is_held
    }

    /// Marks that a request's body was cut off: what is sent to the target after it must not look complete.
    pub(super) fn break_off(&self) {
        self.state().is_broken = true;
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Makes [`Course::poll_flushed`] wait for the next flush.
    pub(super) fn await_flush(&self) {
        self.state().is_flushed = false;
    }

    pub(super) fn poll_flushed(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_flushed {
            return Poll::Ready(());
        }
        state.flusher = Some(context.waker().clone());
        Poll::Pending
    }

    fn on_flushed(&self) {
        let mut state = self.state();
        state.is_flushed = true;
        if let Some(flusher) = state.flusher.take() {
            flusher.wake();
        }
    }

    /// Returns true if the end that `reader` reached is hidden from it.
    fn hides_end(&self, reader: &Waker) -> bool {
        let mut state = self.state();
        // Checked under the lock, so that the end of the response finds the waker.
        if !is_busy(*self.turns.borrow()) {
            return false;
        }
        state.has_ended = true;
        state.reader = Some(reader.clone());
        for watcher in state.watchers.drain(..) {
            watcher.wake();
        }
        true
    }

    /// Waits until no request was being answered for a while: `first` before the first one, `later` after another.
    pub(super) async fn idle(&self, first: Duration, later: Duration) {
        let mut turns = self.turns.subscribe();
        let mut patience = first;
        loop {
            let is_busy = is_busy(*turns.borrow_and_update());
            // A response may start and end between two checks, so any change counts.
            if is_busy {
                let _ = turns.changed().await;
            } else if timeout(patience, turns.changed()).await.is_err() {
                return;
            }
            patience = later;
        }
    }
}

fn is_busy(turns: u64) -> bool {
    turns % 2 == 1
}

/// Marks that a request is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering(Arc<Course>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.turns.send_modify(|turns| *turns += 1);
        let mut state = self.0.state();
        state.watchers.clear();
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

/// The connection of an application.
#[derive(Debug)]
pub(super) struct Application<S> {
    inner: S,
    course: Arc<Course>,
    is_armed: bool,
}

impl<S: SpliceEnd> Application<S> {
    pub(super) fn new(inner: S, course: Arc<Course>) -> Self {
        Self { inner, course, is_armed: false }
    }

    /// Returns the connection; `None` if a response was cut off. Then the connection is reset after the application has
    /// read what was sent.
    pub(super) async fn into_inner(mut self) -> Option<S> {
        self.follow();
        if self.is_armed {
            hand_over_sent(&mut self.inner, 1).await;
            return None;
        }
        Some(self.inner)
    }

    /// Arms or disarms the connection according to the course.
    fn follow(&mut self) {
        let is_armed = self.course.is_armed();
        if is_armed != self.is_armed {
            if is_armed {
                self.inner.arm();
            } else {
                self.inner.disarm();
            }
            self.is_armed = is_armed;
        }
    }
}

impl<S: SpliceEnd> AsyncRead for Application<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let is_end = buffer.filled().len() == before && buffer.remaining() > 0;
        if is_end && self.course.hides_end(context.waker()) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: SpliceEnd> AsyncWrite for Application<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.follow();
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.follow();
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.course.on_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.follow();
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
