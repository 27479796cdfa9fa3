//! The target's side of a plain request: its response, with a head that says `Connection: close`.
//!
//! The proxy ends the connection after one response, so the application must not think it may send another request.
//! Interim responses (1xx) pass unchanged. What is no HTTP/1 head passes as it is: judging it is the application's.

use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head::{end_to_end, lines, parse_fields, write_field};
use super::{HEAD_BYTES_MAX, head_end};
use crate::splice::SpliceEnd;

/// Reads a response and rewrites its head.
pub struct ResponseHead<S> {
    inner: S,
    /// The beginning of a head that has not ended yet.
    gathered: Vec<u8>,
    /// What goes out next, and how much of it did.
    ready: Vec<u8>,
    given: usize,
    is_body: bool,
}

impl<S> ResponseHead<S> {
    /// A response from its start.
    pub fn new(inner: S) -> Self {
        Self { inner, gathered: Vec::new(), ready: Vec::new(), given: 0, is_body: false }
    }

    /// Moves a complete head, or what can be none, from gathered to ready; false when more is needed to tell.
    fn sort(&mut self) -> bool {
        let Some(end) = head_end(&self.gathered, 0) else {
            let beginning = self.gathered.get(..7).unwrap_or(&self.gathered);
            let is_none = !b"HTTP/1.".starts_with(beginning) || self.gathered.len() > HEAD_BYTES_MAX;
            if is_none {
                self.pass();
            }
            return is_none;
        };
        let rest = self.gathered.split_off(end);
        let head = mem::replace(&mut self.gathered, rest);
        let (head, is_interim) = rewrite_head(&head).unwrap_or((head, false));
        (self.ready, self.given) = (head, 0);
        if !is_interim {
            self.ready.append(&mut self.gathered);
            self.is_body = true;
        }
        true
    }

    /// No head comes any more: everything passes as it is.
    fn pass(&mut self) {
        (self.ready, self.given) = (mem::take(&mut self.gathered), 0);
        self.is_body = true;
    }
}

/// The head for the application, and whether it is an interim one.
fn rewrite_head(head: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut lines = lines(head)?;
    let status_line = lines.next()?;
    let status = status_line.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    if status.starts_with(b"1") && status != b"101" {
        return Some((head.to_vec(), true));
    }
    let fields = parse_fields(lines).ok()?;
    let mut rewritten = [status_line, b"\r\n"].concat();
    for field in end_to_end(&fields) {
        write_field(&mut rewritten, field);
    }
    rewritten.extend_from_slice(b"Connection: close\r\n\r\n");
    Some((rewritten, false))
}

impl<S: AsyncRead + Unpin> AsyncRead for ResponseHead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(rest) = this.ready.get(this.given..).filter(|rest| !rest.is_empty()) {
                let count = rest.len().min(buffer.remaining());
                buffer.put_slice(rest.get(..count).unwrap_or_default());
                this.given += count;
                return Poll::Ready(Ok(()));
            }
            if this.is_body {
                this.ready = Vec::new();
                return Pin::new(&mut this.inner).poll_read(context, buffer);
            }
            if !this.gathered.is_empty() && this.sort() {
                continue;
            }
            let mut chunk = [0; 4096];
            let mut part = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut part))?;
            this.gathered.extend_from_slice(part.filled());
            if part.filled().is_empty() {
                this.pass();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ResponseHead<S> {
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

impl<S: SpliceEnd> SpliceEnd for ResponseHead<S> {
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
