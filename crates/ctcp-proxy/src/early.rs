//! What an application says before the server has answered for it.
//!
//! An application that is carried by a fixed forward or by `ctcp connect` sees a connection at once and may speak at once. Its first bytes need not
//! wait for the reply: they follow the request, and the server hands them to the target as soon as it is connected. That saves a
//! round trip of every request. An application that speaks SOCKS5 or HTTP waits for the reply itself.

use std::future::pending;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::counters::Count;
use crate::splice::CHUNK_BYTES;

/// An application that may speak before the reply, and what was read of it.
#[derive(Debug)]
pub struct Early<'a, R> {
    from: &'a mut R,
    /// Read and not yet written.
    pending: Vec<u8>,
    has_ended: bool,
    passed: u64,
    count: &'a Count,
}

impl<'a, R: AsyncRead + Unpin> Early<'a, R> {
    /// What `from` says; bytes are counted as they pass.
    pub fn new(from: &'a mut R, count: &'a Count) -> Self {
        Self { from, pending: Vec::new(), has_ended: false, passed: 0, count }
    }

    /// Bytes that were passed on. If there are any, a request may not be made again.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// What was read and must be written before anything else, and whether the reader has ended behind it.
    #[must_use]
    pub fn into_rest(self) -> (Vec<u8>, bool) {
        (self.pending, self.has_ended)
    }

    /// Passes on what is said, for as long as it is polled: dropping it loses nothing. It ends only when the reader fails; that the
    /// writer fails, the missing reply will tell.
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
    async fn the_end_is_handed_over_since_a_terminal_says_it_once() {
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
