//! The sending half of a stream.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::{StreamId, WriteError};
use tokio::io::AsyncWrite;

use crate::connection::ConnectionRef;
use crate::slot::{Slot, register};
use crate::{StreamError, StreamStopped};

/// The sending half of a stream. Dropping it before [`SendStream::finish`] resets it (code 0): the peer gets an error
/// instead of a regular end.
///
/// Writes fail with kind `BrokenPipe` (inner error [`StreamStopped`]) if the peer has stopped reading, and with kind
/// `ConnectionReset` (inner error [`crate::ConnectionError`]) if the connection is closed. `poll_shutdown` is
/// [`SendStream::finish`] and returns at once. `poll_flush` does nothing, because bytes are sent as early as possible.
#[derive(Debug)]
pub struct SendStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    state: SendState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    Open,
    Finished,
    Reset,
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        Self { connection, id, state: SendState::Open }
    }

    /// The stream's id.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Marks the regular end: the peer reads everything written so far and then the end. Later calls have no effect.
    ///
    /// # Errors
    /// Returns an error if the peer stopped the stream, the stream was reset before, or the connection is closed.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        match self.state {
            SendState::Finished => return Ok(()),
            SendState::Reset => return Err(StreamError::Closed),
            SendState::Open => {}
        }
        let id = self.id;
        let result = self.connection.act(|slot| {
            let result = match &slot.error {
                Some(error) => Err(StreamError::Connection(error.clone())),
                None => slot.connection.finish(id).map_err(|error| slot.write_error(error)),
            };
            (result, true)
        });
        if result.is_ok() {
            self.state = SendState::Finished;
        }
        result
    }

    /// Resets the stream: data not sent yet is discarded, and the peer gets `code`. This works after
    /// [`SendStream::finish`] too, until everything has arrived. Later calls have no effect.
    pub fn reset(&mut self, code: u64) {
        if self.state == SendState::Reset {
            return;
        }
        self.state = SendState::Reset;
        // An error means that the stream has ended already: there is nothing to reset.
        self.connection.act(|slot| (slot.connection.reset(self.id, code).ok(), true));
    }

    /// Asks for low latency for all data that is written from now on, at the expense of more bytes on the wire (see
    /// [`ctcp_proto::Connection::set_low_latency`]). Small writes have it without this call in the profile `default`.
    pub fn set_low_latency(&mut self, is_wanted: bool) {
        // An error means that the stream has ended.
        self.connection.look(|slot| slot.connection.set_low_latency(self.id, is_wanted).ok());
    }

    /// Waits until the peer's transport has received everything, including the end. Call [`SendStream::finish`] first.
    ///
    /// # Errors
    /// Returns an error if that can no longer happen.
    pub async fn finished(&mut self) -> Result<(), StreamError> {
        poll_fn(|context| self.poll_finished(context.waker())).await
    }

    fn poll_finished(&mut self, waker: &Waker) -> Poll<Result<(), StreamError>> {
        let (id, state) = (self.id, self.state);
        self.connection.look(|slot| {
            let stream = slot.streams.entry(id).or_default();
            if stream.is_delivered {
                return Poll::Ready(Ok(()));
            }
            if state == SendState::Reset {
                return Poll::Ready(Err(StreamError::Closed));
            }
            if let Some(code) = stream.stopped {
                return Poll::Ready(Err(StreamError::Stopped(StreamStopped(code))));
            }
            if let Some(error) = &slot.error {
                return Poll::Ready(Err(StreamError::Connection(error.clone())));
            }
            register(&mut stream.settled, waker);
            Poll::Pending
        })
    }

    /// Waits until the peer stops reading and returns its code; `None` if that can no longer happen, because everything
    /// has arrived, the stream was reset, or the connection is closed.
    pub async fn stopped(&mut self) -> Option<u64> {
        poll_fn(|context| self.poll_stopped(context.waker())).await
    }

    fn poll_stopped(&mut self, waker: &Waker) -> Poll<Option<u64>> {
        let (id, state) = (self.id, self.state);
        self.connection.look(|slot| {
            let stream = slot.streams.entry(id).or_default();
            let is_over = stream.is_delivered || state == SendState::Reset || slot.error.is_some();
            if stream.stopped.is_some() || is_over {
                return Poll::Ready(stream.stopped);
            }
            register(&mut stream.settled, waker);
            Poll::Pending
        })
    }

    fn write(&mut self, data: &[u8], waker: &Waker) -> Poll<Result<usize, StreamError>> {
        if self.state != SendState::Open {
            return Poll::Ready(Err(StreamError::Closed));
        }
        let id = self.id;
        let now = self.connection.now();
        self.connection.act(|slot| {
            let written = slot.write(now, id, data, waker);
            let has_output = written.is_ready();
            (written, has_output)
        })
    }
}

impl Slot {
    fn write(
        &mut self,
        now: Instant,
        id: StreamId,
        data: &[u8],
        waker: &Waker,
    ) -> Poll<Result<usize, StreamError>> {
        if let Some(error) = &self.error {
            return Poll::Ready(Err(StreamError::Connection(error.clone())));
        }
        match self.connection.write(now, id, data) {
            Err(WriteError::Blocked) => {
                register(&mut self.streams.entry(id).or_default().writer, waker);
                Poll::Pending
            }
            result => Poll::Ready(result.map_err(|error| self.write_error(error))),
        }
    }

    fn write_error(&self, error: WriteError) -> StreamError {
        match error {
            WriteError::Stopped(code) => StreamError::Stopped(StreamStopped(code)),
            _ => self.lost(),
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(data, context.waker()).map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(io::Error::from))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.state == SendState::Open {
            self.reset(0);
        }
        self.connection.look(|slot| slot.drop_half(self.id));
    }
}
