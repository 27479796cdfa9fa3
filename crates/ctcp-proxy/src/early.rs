//! Data that an application sends before the server has replied.
//!
//! An application behind a fixed forward or `ctcp connect` is connected at once and may send at once. Its first bytes
//! need not wait for the reply: they follow the request, and the server passes them to the target as soon as it is
//! connected. This saves a round trip per request. SOCKS5 and HTTP applications wait for the reply themselves.

use std::future::pending;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::counters::Count;
use crate::splice::CHUNK_BYTES;

/// An application that may send before the reply, and the data read from it so far.
#[derive(Debug)]
pub struct Early<'a, R> {
    from: &'a mut R,
    /// Bytes read and not written yet.
    pending: Vec<u8>,
    has_ended: bool,
    passed: u64,
    count: &'a Count,
}

impl<'a, R: AsyncRead + Unpin> Early<'a, R> {
    /// Reads from `from` and counts bytes as they pass.
    pub fn new(from: &'a mut R, count: &'a Count) -> Self {
        Self { from, pending: Vec::new(), has_ended: false, passed: 0, count }
    }

    /// Bytes passed on so far. If there are any, the request must not be repeated.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the bytes that were read and must be written before any others, and whether the reader has ended after
    /// them.
    #[must_use]
    pub fn into_rest(self) -> (Vec<u8>, bool) {
        (self.pending, self.has_ended)
    }

    /// Passes data on for as long as it is polled; dropping it loses nothing. It returns only if the reader fails. If
    /// the writer fails it waits forever, since the missing reply reveals the failure.
    pub(crate) async fn pass_on<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Error {
        while !self.has_ended {
            while !self.pending.is_empty() {
                let Ok(count @ 1..) = writer.write(&self.pending).await else { return pending().await };
                self.pending.drain(..count);
                self.passed += count as u64;
                self.count.add(count as u64);
            }
            if writer.flush().await.is_err() {
                return pending().await;
            }
            let mut chunk = vec![0; CHUNK_BYTES];
            match self.from.read(&mut chunk).await {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.pending.extend_from_slice(&chunk[..count]),
                Err(error) => return error,
            }
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::counters::Counters;

    #[tokio::test]
    async fn what_was_read_is_written_or_pending_when_it_is_dropped() {
        let counters = Counters::new("client");
        let counter = &counters.upstream;
        let (mut application, mut near) = duplex(1 << 20);
        let (mut narrow, mut far) = duplex(1_000);
        application.write_all(&[7; 5_000]).await.unwrap();
        let mut early = Early::new(&mut near, counter);
        for _ in 0..3 {
            tokio::select! {
                biased;
                _ = early.pass_on(&mut narrow) => panic!("nothing fails"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!((early.passed(), counter.value(), early.into_rest().0.len()), (1_000, 1_000, 4_000));
        let mut passed = vec![0; 1_000];
        far.read_exact(&mut passed).await.unwrap();
        assert_eq!(passed, [7; 1_000]);
    }

    #[tokio::test]
    async fn an_application_that_waits_has_passed_nothing() {
        let counters = Counters::new("client");
        let counter = &counters.upstream;
        let (_application, mut near) = duplex(64);
        let mut early = Early::new(&mut near, counter);
        let mut sink = tokio::io::sink();
        tokio::select! {
            biased;
            _ = early.pass_on(&mut sink) => panic!("nothing fails"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(early.passed(), 0);
    }

    #[tokio::test]
    async fn the_end_of_input_is_handed_over_because_a_terminal_reports_it_only_once() {
        let counters = Counters::new("client");
        let mut near = &b"to the end"[..];
        let mut early = Early::new(&mut near, &counters.upstream);
        let mut sink = tokio::io::sink();
        tokio::select! {
            biased;
            _ = early.pass_on(&mut sink) => panic!("nothing fails"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!((early.passed(), early.into_rest()), (10, (Vec::new(), true)));
    }
}
