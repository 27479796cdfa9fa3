//! Joins two connections so that each behaves as if it were the other.
//!
//! ```text
//!  end a                                            end b
//!   read  -> [pending: at most CHUNK] -> write        one Direction
//!   write <- [pending: at most CHUNK] <- read         the other
//!
//!  a's end of data  -> finish b's writing, the other direction goes on (half-close)
//!  failure of any   -> hand over what arrived before it, then abort both ends: a reset goes on as a reset,
//!                      never as a clean end
//! ```
//!
//! What arrived in order before a coded connection ended can still be read from its streams ([`SpliceEnd::KEEPS`]). It
//! goes to the other end first, however slowly that one reads, as long as it reads at all (see `handover.rs`).
//!
//! Back-pressure: a direction reads only when everything it read before is written, so a reader that stops
//! reading stops the sender and costs at most [`CHUNK_BYTES`]. A connection may be idle for ever and then holds no
//! buffer at all: bytes are read into the stack of the poll and kept only when they cannot be written at once.

use core::future::poll_fn;
use core::mem::MaybeUninit;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::counters::Count;

mod handover;

use handover::hand_over;
pub(crate) use handover::{PATIENCE as HAND_OVER_PATIENCE, hand_over_sent};

/// Most bytes read at once in a direction, and most it holds. Large enough that a system call is cheap per byte,
/// small enough for the stack of a poll.
pub const CHUNK_BYTES: usize = 16 * 1024;

/// Rounds of reading and writing in one poll before other tasks have their turn: half a megabyte.
const ROUNDS_PER_POLL: usize = 32;

/// A connection that can be half-closed and aborted.
pub trait SpliceEnd: AsyncRead + AsyncWrite + Unpin {
    /// What arrived in order can still be read after this end failed.
    const KEEPS: bool = false;

    /// From now on a drop without [`SpliceEnd::disarm`] must look like a failure to the other side.
    fn arm(&mut self) {}

    /// Both directions ended regularly: a drop is a clean close again.
    fn disarm(&mut self) {}

    /// Gives up both directions so that the other side sees a failure and not an end.
    fn abort(&mut self);

    /// This end said everything and the other one is done with it, although nothing said that the other would not speak
    /// any more. Ends that can tell that from a failure do.
    fn leave(&mut self) {}

    /// Ready when writing will fail although nothing is being written now. Lets an idle half-closed connection
    /// notice that the other side is gone; an end that cannot tell stays pending.
    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Pending
    }

    /// Ready when an abort costs less than `limit` of the bytes that were written: the system has sent the others. Ends that
    /// cannot tell are always ready.
    fn poll_unsent_below(&mut self, limit: u32, context: &mut Context<'_>) -> Poll<()> {
        let _ = (limit, context);
        Poll::Ready(())
    }
}

/// A TCP connection is aborted by closing it with a linger time of zero: the kernel sends RST. It is armed for the
/// whole splice, so that applications see a reset even when this process is killed and the kernel closes for it.
impl SpliceEnd for TcpStream {
    fn arm(&mut self) {
        let _ = self.set_zero_linger(); // fails only on a socket that is broken already
    }

    fn disarm(&mut self) {
        let _ = socket2::SockRef::from(&*self).set_linger(None);
    }

    fn abort(&mut self) {
        self.arm();
    }

    #[cfg(target_os = "linux")]
    fn poll_unsent_below(&mut self, limit: u32, context: &mut Context<'_>) -> Poll<()> {
        handover::poll_unsent_below(self, limit, context)
    }
}

/// Which end failed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first.
    A,
    /// The second.
    B,
    /// The connection that one of them belongs to, as the caller's signal said.
    Cut,
}

/// How a splice went.
#[derive(Debug)]
pub struct Spliced {
    /// Bytes from the first end to the second.
    pub a_to_b: u64,
    /// Bytes from the second end to the first.
    pub b_to_a: u64,
    /// `None` when both directions ended regularly; else who failed and how. Both ends were aborted then.
    pub failure: Option<(End, io::Error)>,
    /// The second end said everything, and the first was told so.
    pub is_b_done: bool,
}

/// How a splice begins and ends.
#[derive(Debug, Default)]
pub struct SpliceOptions {
    /// Bytes that were read from the first end before and go first to the second.
    pub early: Vec<u8>,
    /// The first end has ended behind them. Not every reader says so twice: a terminal does not.
    pub is_a_done: bool,
    /// The splice is over when the second end said everything, although the first could still speak: a terminal whose
    /// other side is gone. The second end is left then ([`SpliceEnd::leave`]).
    pub is_over_with_b: bool,
}

/// Where bytes are counted as they pass.
#[derive(Clone, Copy, Debug)]
pub struct Meter<'a> {
    /// From the first end to the second.
    pub a_to_b: &'a Count,
    /// From the second end to the first.
    pub b_to_a: &'a Count,
}

/// Copies both ways until both directions ended, one failed, or `cut` says that the connection below an end is over.
/// Afterwards both ends should be dropped; on failure they were aborted, after what had arrived was handed over.
pub async fn splice<A, B, C>(
    a: &mut A,
    b: &mut B,
    options: SpliceOptions,
    meter: Meter<'_>,
    cut: C,
) -> Spliced
where
    A: SpliceEnd,
    B: SpliceEnd,
    C: Future,
{
    let mut cut = pin!(cut);
    let mut a_to_b = Direction::new(options.early, meter.a_to_b);
    if options.is_a_done {
        a_to_b.phase = Phase::Finishing;
    }
    let mut b_to_a = Direction::new(Vec::new(), meter.b_to_a);
    let is_over = |a_to_b: &Direction<'_>, b_to_a: &Direction<'_>| {
        b_to_a.is_done() && (a_to_b.is_done() || options.is_over_with_b)
    };
    a.arm();
    b.arm();
    let failure = poll_fn(|context| {
        if let Poll::Ready(Err((side, error))) = a_to_b.poll(context, a, b) {
            return Poll::Ready(Some((side.choose(End::A, End::B), error)));
        }
        if let Poll::Ready(Err((side, error))) = b_to_a.poll(context, b, a) {
            return Poll::Ready(Some((side.choose(End::B, End::A), error)));
        }
        if is_over(&a_to_b, &b_to_a) {
            return Poll::Ready(None);
        }
        if a_to_b.is_reading() && b_to_a.is_reading() {
            return Poll::Pending; // both ends are being read and would say themselves that they failed
        }
        if cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some((End::Cut, io::ErrorKind::ConnectionAborted.into())));
        }
        if !a_to_b.is_done() && b.poll_broken(context).is_ready() {
            return Poll::Ready(Some((End::B, io::ErrorKind::BrokenPipe.into())));
        }
        if !b_to_a.is_done() && a.poll_broken(context).is_ready() {
            return Poll::Ready(Some((End::A, io::ErrorKind::BrokenPipe.into())));
        }
        Poll::Pending
    })
    .await;
    if let Some((end, _)) = &failure {
        hand_over(*end, (a, b), (&mut a_to_b, &mut b_to_a), options.is_over_with_b).await;
    }
    let failure = failure.filter(|_| !is_over(&a_to_b, &b_to_a));
    match &failure {
        Some(_) => {
            a.abort();
            b.abort();
        }
        None => {
            a.disarm();
            if a_to_b.is_done() {
                b.disarm();
            } else {
                b.leave();
            }
        }
    }
    Spliced { a_to_b: a_to_b.bytes, b_to_a: b_to_a.bytes, failure, is_b_done: b_to_a.is_done() }
}

/// Whether reading or writing failed.
#[derive(Clone, Copy)]
enum Side {
    Reader,
    Writer,
}

impl Side {
    fn choose(self, reader: End, writer: End) -> End {
        match self {
            Self::Reader => reader,
            Self::Writer => writer,
        }
    }
}

enum Phase {
    Copying,
    /// The reader ended; the writer must be finished.
    Finishing,
    Done,
}

/// One direction: what was read and not yet written, and how far it is.
struct Direction<'a> {
    pending: Vec<u8>,
    written: usize,
    is_flushed: bool,
    phase: Phase,
    bytes: u64,
    count: &'a Count,
}

impl<'a> Direction<'a> {
    fn new(pending: Vec<u8>, count: &'a Count) -> Self {
        Self { pending, written: 0, is_flushed: true, phase: Phase::Copying, bytes: 0, count }
    }

    fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Whether it waits for its reader and not for its writer.
    fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Copying) && self.pending.is_empty()
    }

    fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<Result<(), (Side, io::Error)>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let by_writer = |error| (Side::Writer, error);
        for _ in 0..ROUNDS_PER_POLL {
            ready!(self.poll_drain(context, writer)).map_err(by_writer)?;
            match self.phase {
                Phase::Done => return Poll::Ready(Ok(())),
                Phase::Finishing => {
                    // Not every writer flushes when it is shut down: standard output does not.
                    ready!(Pin::new(&mut *writer).poll_flush(context)).map_err(by_writer)?;
                    match ready!(Pin::new(&mut *writer).poll_shutdown(context)) {
                        // Some systems say so when the other side has closed both ways before.
                        Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                        outcome => outcome.map_err(by_writer)?,
                    }
                    self.phase = Phase::Done;
                }
                Phase::Copying => {
                    let copied = self.poll_copy(context, reader, writer)?;
                    if copied.is_pending() {
                        if !self.is_flushed {
                            ready!(Pin::new(&mut *writer).poll_flush(context)).map_err(by_writer)?;
                            self.is_flushed = true;
                        }
                        return Poll::Pending;
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what is pending.
    fn poll_drain<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.pending.get(self.written..).filter(|rest| !rest.is_empty()) {
            let count = ready!(Pin::new(&mut *writer).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.on_written(count);
            self.written += count;
        }
        if self.written > 0 {
            self.pending = Vec::new(); // an idle connection holds no buffer
            self.written = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once and writes it at once; what the writer does not take becomes pending.
    fn poll_copy<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Result<Poll<()>, (Side, io::Error)>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut chunk = [MaybeUninit::<u8>::uninit(); CHUNK_BYTES];
        let mut buffer = ReadBuf::uninit(&mut chunk);
        match Pin::new(reader).poll_read(context, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(outcome) => outcome.map_err(|error| (Side::Reader, error))?,
        }
        let data = buffer.filled();
        if data.is_empty() {
            self.phase = Phase::Finishing;
            return Ok(Poll::Ready(()));
        }
        let count = match Pin::new(writer).poll_write(context, data) {
            Poll::Pending => 0,
            Poll::Ready(Ok(0)) => return Err((Side::Writer, io::ErrorKind::WriteZero.into())),
            Poll::Ready(outcome) => outcome.map_err(|error| (Side::Writer, error))?,
        };
        self.on_written(count);
        if let Some(rest) = data.get(count..).filter(|rest| !rest.is_empty()) {
            self.pending = rest.to_vec();
        }
        Ok(Poll::Ready(()))
    }

    fn on_written(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(count as u64);
        self.count.add(count as u64);
        self.is_flushed = self.is_flushed && count == 0;
    }
}

#[cfg(test)]
mod tests;
