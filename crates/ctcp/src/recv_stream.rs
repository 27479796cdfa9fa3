//! The receiving half of a stream.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io;
use std::sync::Arc;

use ctcp_proto::{ReadError, ReadOutcome, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

use crate::connection::ConnectionRef;
use crate::slot::{Slot, register};
use crate::{StreamError, StreamReset};

/// The receiving half of a stream. Dropping it before the end was read tells the peer to stop (code 0).
///
/// Reads fail with kind `ConnectionReset`. The inner error is a [`StreamReset`] if the peer reset the stream, or a
/// [`crate::ConnectionError`] if the connection is closed. Data that arrived in order before the connection ended can
/// be read first.
#[derive(Debug)]
pub struct RecvStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    end: Option<End>,
}

/// How reading ended.
#[derive(Clone, Debug)]
enum End {
    Finished,
    Failed(StreamError),
}

impl RecvStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        Self { connection, id, end: None }
    }

    /// The stream's id.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Stops reading and sends the peer a code. Later calls, and calls after the end of the stream, have no effect.
    pub fn stop(&mut self, code: u64) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(End::Failed(StreamError::Closed));
        // An error means that the stream has ended already: there is nothing to stop.
        self.connection.act(|slot| (slot.connection.stop(self.id, code).ok(), true));
    }

    fn read(&mut self, buffer: &mut ReadBuf<'_>, waker: &Waker) -> Poll<Result<(), StreamError>> {
        match &self.end {
            Some(End::Finished) => return Poll::Ready(Ok(())),
            Some(End::Failed(error)) => return Poll::Ready(Err(error.clone())),
            None => {}
        }
        let unfilled = buffer.initialize_unfilled();
        if unfilled.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let id = self.id;
        let outcome = self.connection.act(|slot| {
            let outcome = slot.read(id, unfilled, waker);
            let has_output = outcome.is_ready();
            (outcome, has_output)
        });
        match outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => {
                self.end = Some(End::Finished);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(length)) => {
                buffer.advance(length);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.end = Some(End::Failed(error.clone()));
                Poll::Ready(Err(error))
            }
        }
    }
}

impl Slot {
    /// Returns the number of bytes read into `buffer`, which must not be empty; 0 at the end of the stream.
    fn read(&mut self, id: StreamId, buffer: &mut [u8], waker: &Waker) -> Poll<Result<usize, StreamError>> {
        match self.connection.read(id, buffer) {
            Ok(ReadOutcome::Data(length)) => Poll::Ready(Ok(length)),
            Ok(ReadOutcome::Finished) => Poll::Ready(Ok(0)),
            Ok(ReadOutcome::Blocked) => {
                if let Some(error) = &self.error {
                    return Poll::Ready(Err(StreamError::Connection(error.clone())));
                }
                register(&mut self.streams.entry(id).or_default().reader, waker);
                Poll::Pending
            }
            Err(ReadError::Reset(code)) => Poll::Ready(Err(StreamError::Reset(StreamReset(code)))),
            Err(ReadError::UnknownStream | ReadError::Stopped) => Poll::Ready(Err(self.lost())),
        }
    }

    /// The error of a stream that the protocol no longer knows.
    pub(crate) fn lost(&self) -> StreamError {
        self.error.clone().map_or(StreamError::Closed, StreamError::Connection)
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.read(buffer, context.waker()).map_err(io::Error::from)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
        self.connection.look(|slot| slot.drop_half(self.id));
    }
}
