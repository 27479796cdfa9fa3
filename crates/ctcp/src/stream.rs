//! Both halves of a stream in one type, for most applications.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use ctcp_proto::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::ConnectionRef;
use crate::{RecvStream, SendStream, StreamError};

/// A bidirectional stream: a [`SendStream`] and a [`RecvStream`].
#[derive(Debug)]
pub struct Stream {
    recv: RecvStream,
    send: SendStream,
}

impl Stream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        let recv = RecvStream::new(Arc::clone(&connection), id);
        Self { recv, send: SendStream::new(connection, id) }
    }

    /// The stream's id.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.send.id()
    }

    /// Splits the stream into owned halves, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (RecvStream, SendStream) {
        (self.recv, self.send)
    }

    /// Splits the stream into borrowed halves.
    #[must_use]
    pub fn split(&mut self) -> (&mut RecvStream, &mut SendStream) {
        (&mut self.recv, &mut self.send)
    }

    /// See [`SendStream::finish`].
    ///
    /// # Errors
    /// As [`SendStream::finish`].
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.send.finish()
    }

    /// See [`SendStream::finished`].
    ///
    /// # Errors
    /// As [`SendStream::finished`].
    pub async fn finished(&mut self) -> Result<(), StreamError> {
        self.send.finished().await
    }

    /// See [`SendStream::stopped`].
    pub async fn stopped(&mut self) -> Option<u64> {
        self.send.stopped().await
    }

    /// See [`SendStream::reset`].
    pub fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    /// See [`SendStream::set_low_latency`].
    pub fn set_low_latency(&mut self, is_wanted: bool) {
        self.send.set_low_latency(is_wanted);
    }

    /// See [`RecvStream::stop`].
    pub fn stop(&mut self, code: u64) {
        self.recv.stop(code);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.recv).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.send).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_shutdown(context)
    }
}
