//! The sending half of a stream.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use ctcp_proto::StreamId;
use tokio::io::AsyncWrite;

use crate::StreamError;

/// The sending half of a stream. Dropped before [`SendStream::finish`], it is reset (code 0): the peer sees an
/// error and no end that looks regular.
///
/// Writes fail with kind `BrokenPipe` (inside a [`crate::StreamStopped`]) when the peer reads no more, and with
/// kind `ConnectionReset` (inside a [`crate::ConnectionError`]) when the connection is over. `poll_shutdown` is
/// [`SendStream::finish`] and returns at once; `poll_flush` does nothing, bytes are sent as soon as they may be.
#[derive(Debug)]
pub struct SendStream(());

#[expect(clippy::unused_async, reason = "in the making")]
impl SendStream {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> StreamId {
        unimplemented!()
    }

    /// Marks the regular end: the peer reads everything written so far and then the end. Later calls change
    /// nothing.
    ///
    /// # Errors
    /// When the peer stopped the stream, it was reset before, or the connection is over.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        unimplemented!()
    }

    /// Gives up: what has not been sent never will be, and the peer sees `code`. Later calls change nothing.
    pub fn reset(&mut self, _code: u64) {
        unimplemented!()
    }

    /// Waits until the peer's transport has everything, the end included. Call [`SendStream::finish`] first.
    ///
    /// # Errors
    /// When that can no longer happen.
    pub async fn finished(&mut self) -> Result<(), StreamError> {
        unimplemented!()
    }

    /// Waits until the peer reads no more and gives its code; `None` when that can no longer happen, because
    /// everything has arrived, or the stream was reset, or the connection is over.
    pub async fn stopped(&mut self) -> Option<u64> {
        unimplemented!()
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        unimplemented!()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(io::Error::from))
    }
}
