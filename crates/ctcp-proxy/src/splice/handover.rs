//! Passes on data that arrived before a connection failed.
//!
//! ```text
//!  coded stream  --[still readable]--> pending --> the kernel's queue --> application
//!   failed                                          a reset discards what is unsent here
//! ```
//!
//! The reset must wait until the kernel has sent everything, because closing with a linger time of zero discards its
//! queue. An end that accepts no data for [`PATIENCE`] is reset with the rest undelivered.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

use super::{Direction, End, Phase, SpliceEnd};

/// How long an end may accept no data before it is reset. It equals the time that a connection through the proxy
/// survives a dead path.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The kernel's queue is awaited in steps, so that progress of a slow reader is noticed.
const STEP_BYTES: u32 = 64 * 1024;

/// The steps of the largest queue: 4 MiB, the most that Linux gives a TCP connection by default.
const STEPS: u32 = 64;

/// Passes on what can still be read of the end that failed.
pub(super) async fn hand_over<A: SpliceEnd, B: SpliceEnd>(
    failed: End,
    (a, b): (&mut A, &mut B),
    (a_to_b, b_to_a): (&mut Direction<'_>, &mut Direction<'_>),
    is_over_with_b: bool,
) {
    if A::KEEPS && failed != End::B {
        a_to_b.hand_over(a, b, false).await;
    }
    if B::KEEPS && failed != End::A {
        b_to_a.hand_over(b, a, is_over_with_b).await;
    }
}

impl Direction<'_> {
    /// Passes on what can still be read without waiting for the failed reader. If that was everything up to the
    /// reader's end, the writer's peer may take its time to close.
    async fn hand_over<R, W>(&mut self, reader: &mut R, writer: &mut W, is_over_when_done: bool)
    where
        R: SpliceEnd,
        W: SpliceEnd,
    {
        if self.is_done() || !hand_over_sent(writer, STEP_BYTES).await {
            return;
        }
        loop {
            let before = self.bytes;
            let rest = poll_fn(|context| self.poll_rest(context, reader, writer, before));
            match timeout(PATIENCE, rest).await {
                Ok(Rest::Some) => {}
                Ok(Rest::None) => break,
                Ok(Rest::Refused) | Err(_) => return,
            }
        }
        hand_over_sent(writer, 1).await;
        if self.is_done() && !is_over_when_done {
            let _ = timeout(PATIENCE, writer.read_u8()).await;
        }
    }

    /// Ready when more than `before` bytes were written, or none are left.
    fn poll_rest<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        before: u64,
    ) -> Poll<Rest>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            let drained = self.poll_drain(context, writer);
            if self.bytes > before && drained.is_ready() {
                return Poll::Ready(Rest::Some);
            }
            if ready!(drained).is_err() {
                return Poll::Ready(Rest::Refused);
            }
            if matches!(self.phase, Phase::Copying)
                && matches!(self.poll_copy(context, reader, writer), Ok(Poll::Ready(())))
            {
                continue;
            }
            // A failed reader yields no further data.
            if ready!(Pin::new(&mut *writer).poll_flush(context)).is_err() {
                return Poll::Ready(Rest::Refused);
            }
            if matches!(self.phase, Phase::Finishing) {
                if ready!(Pin::new(&mut *writer).poll_shutdown(context)).is_err() {
                    return Poll::Ready(Rest::Refused);
                }
                self.phase = Phase::Done;
            }
            return Poll::Ready(Rest::None);
        }
    }
}

/// What remains to be passed on.
enum Rest {
    Some,
    None,
    /// The writer failed, too.
    Refused,
}

/// Waits until the system has sent all but less than `limit` bytes. Returns false if the peer accepts no data for a
/// while.
pub(crate) async fn hand_over_sent<W: SpliceEnd>(writer: &mut W, limit: u32) -> bool {
    for step in (0..STEPS).rev() {
        let limit = limit.max(step * STEP_BYTES);
        if timeout(PATIENCE, poll_fn(|context| writer.poll_unsent_below(limit, context))).await.is_err() {
            return false;
        }
    }
    true
}

/// The kernel reports a socket as writable when fewer unsent bytes are queued than its low-water mark.
#[cfg(target_os = "linux")]
pub(super) fn poll_unsent_below(
    tcp: &tokio::net::TcpStream,
    limit: u32,
    context: &mut Context<'_>,
) -> Poll<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // On an error the socket has failed: its queue need not be awaited.
    if socket2::SockRef::from(tcp).set_tcp_notsent_lowat(limit).is_err() {
        return Poll::Ready(());
    }
    loop {
        if ready!(tcp.poll_write_ready(context)).is_err() {
            return Poll::Ready(());
        }
        // tokio's readiness may date from before the mark was set. A would-block error makes it wait for the kernel's
        // next event.
        let looked = tcp.try_io(tokio::io::Interest::WRITABLE, || {
            let mut sockets = [PollFd::new(tcp, PollFlags::OUT)];
            match poll(&mut sockets, Some(&Timespec::default()))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        if !looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return Poll::Ready(());
        }
    }
}
