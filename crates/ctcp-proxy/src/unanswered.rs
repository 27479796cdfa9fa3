//! A stream whose request was sent and whose reply is still to come.
//!
//! ```text
//!  write: request head | data of the application ...       leaves at once
//!  read:  reply head   | data of the target ...            the reader sees only the data, or the refusal as an error
//! ```

use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::coded::CodedStream;
use crate::link::LinkError;
use crate::request::{Reply, head_bytes_wanted};
use crate::splice::SpliceEnd;

/// The stream. Reading fails with a [`LinkError`] if the server refuses the request or does not answer in time.
#[derive(Debug)]
pub struct Unanswered<S> {
    inner: S,
    awaited: Option<Awaited>,
}

/// A reply of which the first bytes may have arrived.
#[derive(Debug)]
struct Awaited {
    head: Vec<u8>,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Unanswered<S> {
    /// The request was written to the stream; the server may take `patience` to answer it.
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        let awaited = Awaited { head: Vec::new(), deadline: Box::pin(sleep(patience)) };
        Self { inner, awaited: Some(awaited) }
    }

    /// The reply has been read already.
    #[must_use]
    pub fn answered(inner: S) -> Self {
        Self { inner, awaited: None }
    }
}

/// Returns the reason if the error says that a request failed.
pub(crate) fn request_failure<'e>(error: &'e (dyn core::error::Error + 'static)) -> Option<&'e LinkError> {
    let io = error.downcast_ref::<io::Error>()?;
    io.get_ref()?.downcast_ref()
}

impl Awaited {
    /// Reads the rest of the reply.
    fn poll<S: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<Result<Reply, LinkError>> {
        loop {
            let missing = head_bytes_wanted(&self.head) - self.head.len();
            if missing == 0 {
                break;
            }
            let mut bytes = vec![0; missing];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    return Poll::Ready(Err(LinkError::Lost(io::ErrorKind::UnexpectedEof.into())));
                }
                Poll::Ready(Ok(())) => self.head.extend_from_slice(buffer.filled()),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(LinkError::Lost(error))),
                Poll::Pending => {
                    ready!(self.deadline.as_mut().poll(context));
                    return Poll::Ready(Err(LinkError::Silent));
                }
            }
        }
        // All bytes are there, so this is ready at once.
        let mut head = &self.head[..];
        let reply = ready!(pin!(Reply::read(&mut head)).poll(context));
        Poll::Ready(reply.map_err(LinkError::from))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unanswered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(awaited) = &mut this.awaited {
            match ready!(awaited.poll(context, &mut this.inner)) {
                Ok(reply) if reply.is_success() => this.awaited = None,
                Ok(reply) => return Poll::Ready(Err(io::Error::other(LinkError::Refused(reply)))),
                Err(error) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        Pin::new(&mut this.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unanswered<S> {
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

impl<S: SpliceEnd> SpliceEnd for Unanswered<S> {
    const KEEPS: bool = S::KEEPS;

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

    fn poll_unsent_below(&mut self, limit: u32, context: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_unsent_below(limit, context)
    }
}

impl<S: CodedStream> CodedStream for Unanswered<S> {
    fn reset(&mut self, code: u64) {
        self.inner.reset(code);
    }

    async fn finished(&mut self) -> io::Result<()> {
        self.inner.finished().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::request::ReplyCode;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn only_the_data_after_a_successful_reply_is_read_however_it_is_cut() {
        let reply = Reply::connected("192.0.2.1:80".parse().unwrap()).encode();
        let bytes = [&reply[..], b"data"].concat();
        for step in 1..bytes.len() {
            let (near, mut far) = duplex(4_096);
            let mut stream = Unanswered::new(near, PATIENCE);
            let bytes = bytes.clone();
            let writer = tokio::spawn(async move {
                for piece in bytes.chunks(step) {
                    far.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
            let mut data = Vec::new();
            stream.read_to_end(&mut data).await.unwrap();
            writer.await.unwrap();
            assert_eq!(data, b"data", "pieces of {step}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_an_early_end_nonsense_and_silence_are_errors_of_the_reader() {
        let refusal = Reply::failure(ReplyCode::NotAllowed, "no").encode();
        let cases: [(&[u8], bool); 4] =
            [(&refusal, true), (&refusal[..3], false), (b"HTTP", true), (&[], true)];
        for (bytes, stays) in cases {
            let (near, mut far) = duplex(4_096);
            let mut stream = Unanswered::new(near, PATIENCE);
            far.write_all(bytes).await.unwrap();
            let _far = stays.then_some(far);
            let error = stream.read_u8().await.unwrap_err();
            let failure = request_failure(&error).expect("a failure of the request");
            let is_right = match failure {
                LinkError::Refused(reply) => reply.code == ReplyCode::NotAllowed,
                LinkError::Lost(_) => bytes.len() == 3,
                LinkError::BadReply(_) => bytes == b"HTTP",
                LinkError::Silent => bytes.is_empty(),
                _ => false,
            };
            assert!(is_right, "{failure}");
        }
    }
}
