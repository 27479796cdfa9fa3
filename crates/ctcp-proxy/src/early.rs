//! Data that an application sends before the server has replied.
//!
//! An application is told that it is connected at once and may send at once. Its first bytes need not wait for the
//! reply: they follow the request, and the server passes them to the target as soon as it is connected. This saves a
//! round trip per request.

use std::future::pending;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::counters::Count;
use crate::splice::CHUNK_BYTES;

/// Data that was passed on is kept until the reply, up to this many bytes, so that it can be passed on again.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// An application that may send before the reply, and the data read from it so far.
#[derive(Debug)]
pub struct Early<'a, R> {
    from: &'a mut R,
    /// Bytes read and not written yet.
    pending: Vec<u8>,
    has_ended: bool,
    passed: u64,
    /// The bytes passed on, unless there were too many to keep.
    kept: Vec<u8>,
    /// Bytes counted so far. Bytes that are passed on again are counted once.
    counted: u64,
    count: &'a Count,
}

impl<'a, R: AsyncRead + Unpin> Early<'a, R> {
    /// Reads from `from` and counts bytes as they pass.
    pub fn new(from: &'a mut R, count: &'a Count) -> Self {
        Self { from, pending: Vec::new(), has_ended: false, passed: 0, kept: Vec::new(), counted: 0, count }
    }

    /// Adds bytes that were read before. They are passed on first.
    #[must_use]
    pub fn with_pending(mut self, bytes: Vec<u8>) -> Self {
        self.pending = bytes;
        self
    }

    /// Bytes passed on so far. If there are any, the request must not be repeated without taking them back.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Takes back what was passed on to a server that most likely did not get it. Returns false if it was too much to be
    /// kept.
    pub(crate) fn rewind(&mut self) -> bool {
        if self.kept.len() as u64 != self.passed {
            return false;
        }
        self.kept.append(&mut self.pending);
        self.pending = core::mem::take(&mut self.kept);
        self.passed = 0;
        true
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
        loop {
            while !self.pending.is_empty() {
                let Ok(count @ 1..) = writer.write(&self.pending).await else { return pending().await };
                let passed = self.pending.drain(..count);
                if self.kept.len() as u64 == self.passed && self.kept.len() + count <= KEPT_BYTES_MAX {
                    self.kept.extend(passed);
                }
                self.passed += count as u64;
                self.count.add(self.passed.saturating_sub(self.counted));
                self.counted = self.counted.max(self.passed);
            }
            if writer.flush().await.is_err() || self.has_ended {
                return pending().await;
            }
            let mut chunk = vec![0; CHUNK_BYTES];
            match self.from.read(&mut chunk).await {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.pending.extend_from_slice(&chunk[..count]),
                Err(error) => return error,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::counters::Counters;

    /// Passes on what can be passed on at once.
    async fn pass_for_a_moment<R, W>(early: &mut Early<'_, R>, writer: &mut W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        tokio::select! {
            biased;
            _ = early.pass_on(writer) => panic!("nothing fails"),
            () = tokio::task::yield_now() => {}
        }
    }

    #[tokio::test]
    async fn what_was_read_is_written_or_pending_when_it_is_dropped() {
        let counters = Counters::new("client");
        let counter = &counters.upstream;
        let (mut application, mut near) = duplex(1 << 20);
        let (mut narrow, mut far) = duplex(1_000);
        application.write_all(&[7; 5_000]).await.unwrap();
        let mut early = Early::new(&mut near, counter);
        for _ in 0..3 {
            pass_for_a_moment(&mut early, &mut narrow).await;
        }
        assert_eq!((early.passed(), counter.value(), early.into_rest().0.len()), (1_000, 1_000, 4_000));
        let mut passed = vec![0; 1_000];
        far.read_exact(&mut passed).await.unwrap();
        assert_eq!(passed, [7; 1_000]);
    }

    #[tokio::test]
    async fn what_was_passed_on_is_passed_on_again_and_counted_once() {
        let counters = Counters::new("client");
        let mut near = &b"first second"[..];
        let mut early = Early::new(&mut near, &counters.upstream);
        for _ in 0..2 {
            let mut passed = Vec::new();
            pass_for_a_moment(&mut early, &mut passed).await;
            assert_eq!(
                (&passed[..], early.passed(), counters.upstream.value()),
                (&b"first second"[..], 12, 12)
            );
            assert!(early.rewind() && early.passed() == 0);
        }
        let large = vec![7; KEPT_BYTES_MAX + 1];
        let mut near = &large[..];
        let mut early = Early::new(&mut near, &counters.upstream);
        let mut sink = tokio::io::sink();
        pass_for_a_moment(&mut early, &mut sink).await;
        assert!(!early.rewind());
    }

    #[tokio::test]
    async fn an_application_that_waits_has_passed_nothing() {
        let counters = Counters::new("client");
        let counter = &counters.upstream;
        let (_application, mut near) = duplex(64);
        let mut early = Early::new(&mut near, counter);
        let mut sink = tokio::io::sink();
        pass_for_a_moment(&mut early, &mut sink).await;
        assert_eq!(early.passed(), 0);
    }

    #[tokio::test]
    async fn the_end_of_input_is_handed_over_because_a_terminal_reports_it_only_once() {
        let counters = Counters::new("client");
        let mut near = &b"to the end"[..];
        let mut early = Early::new(&mut near, &counters.upstream);
        let mut sink = tokio::io::sink();
        pass_for_a_moment(&mut early, &mut sink).await;
        assert_eq!((early.passed(), early.into_rest()), (10, (Vec::new(), true)));
    }
}
