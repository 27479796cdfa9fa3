//! The receiving half of a stream.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use ctcp_proto::StreamId;
use tokio::io::{AsyncRead, ReadBuf};

/// The receiving half of a stream. Dropped before its end was read, it tells the peer to stop (code 0).
///
/// Reads fail with kind `ConnectionReset`: inside is a [`crate::StreamReset`] when the peer reset the stream, or
/// a [`crate::ConnectionError`] when the connection is over.
#[derive(Debug)]
pub struct RecvStream(());

impl RecvStream {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> StreamId {
        unimplemented!()
    }

    /// Reads no more and tells the peer so, with a code. Later calls change nothing.
    pub fn stop(&mut self, _code: u64) {
        unimplemented!()
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        unimplemented!()
    }
}
