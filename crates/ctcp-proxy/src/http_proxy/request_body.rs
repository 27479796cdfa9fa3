//! The application's side of a plain request: its body and nothing behind it.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Framing;
use crate::splice::SpliceEnd;

/// Reads the rest of a request's body; what the application sends behind it is dropped, and its end of data is seen.
pub struct RequestBody<S> {
    inner: S,
    framing: Framing,
}

impl<S> RequestBody<S> {
    /// The body on a connection of which `framing` is still to come.
    pub fn new(inner: S, framing: Framing) -> Self {
        Self { inner, framing }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestBody<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            if read.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let of_body = this.framing.advance(read)?;
            buffer.set_filled(before + of_body);
            if of_body > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestBody<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<S: SpliceEnd> SpliceEnd for RequestBody<S> {
    fn arm(&mut self) {
        self.inner.arm();
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn abort(&mut self) {
        self.inner.abort();
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_broken(context)
    }
}
