//! Joins two connections so that each end behaves as if it were connected to the other's peer.
//!
//! ```text
//!  end a                                            end b
//!   read  -> [pending: at most CHUNK] -> write        one Direction
//!   write <- [pending: at most CHUNK] <- read         the other
//!
//!  a's end of data  -> finish b's writing, the other direction continues (half-close)
//!  any failure      -> pass on what arrived before it, then abort both ends: a reset stays a reset
//!                      and never becomes a regular end
//! ```
//!
//! Data that arrived in order before a coded connection ended can still be read from its streams
//! ([`SpliceEnd::KEEPS`]). It is passed to the other end first, however slowly that end reads, as long as it reads at
//! all (see `handover.rs`).
//!
//! Backpressure: a direction reads only when everything it read before is written, so a reader that stops blocks the
//! sender and costs at most [`CHUNK_BYTES`]. An idle connection may last forever and holds no buffer: bytes are read
//! into the stack of the poll and stored only if they cannot be written at once.

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

/// The most bytes that a direction reads at once and holds. Large enough to make a system call cheap per byte, and
/// small enough for the stack of a poll.
pub const CHUNK_BYTES: usize = 16 * 1024;

/// How often one poll reads and writes before other tasks get their turn: half a megabyte.
const ROUNDS_PER_POLL: usize = 32;

/// A connection that can be half-closed and aborted.
pub trait SpliceEnd: AsyncRead + AsyncWrite + Unpin {
    /// Whether data that arrived in order can still be read after this end failed.
    const KEEPS: bool = false;

    /// After this call, a drop without [`SpliceEnd::disarm`] must look like a failure to the peer.
    fn arm(&mut self) {}

    /// Both directions ended regularly: a drop is a regular close again.
    fn disarm(&mut self) {}

    /// Aborts both directions so that the peer sees a failure and not an end.
    fn abort(&mut self);

    /// Called when this end has sent everything and the other end needs no more of it, although that other end could
    /// still send. Ends that can distinguish this from a failure do so.
    fn leave(&mut self) {}

    /// Ready if writing would fail, even when nothing is being written. An idle half-closed connection notices in this
    /// way that the peer is gone; an end that cannot tell stays pending.
    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Pending
    }

    /// Ready when an abort would discard less than `limit` of the written bytes, because the system has sent the
    /// others. Ends that cannot tell are always ready.
    fn poll_unsent_below(&mut self, limit: u32, context: &mut Context<'_>) -> Poll<()> {
        let _ = (limit, context);
        Poll::Ready(())
    }
}

/// A TCP connection is aborted by closing it with a linger time of zero: the kernel sends RST. It is armed for the
/// whole splice, so that applications see a reset even if this process is killed and the kernel closes the socket.
impl SpliceEnd for TcpStream {
    fn arm(&mut self) {
        let _ = self.set_zero_linger(); // fails only if the socket has failed already
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
    /// The connection of one of the ends, reported by the caller's signal.
    Cut,
}

/// The outcome of a splice.
#[derive(Debug)]
pub struct Spliced {
    /// Bytes from the first end to the second.
    pub a_to_b: u64,
    /// Bytes from the second end to the first.
    pub b_to_a: u64,
    /// `None` if both directions ended regularly; otherwise the end that failed and its error. Then both ends were
    /// aborted.
    pub failure: Option<(End, io::Error)>,
    /// The second end sent everything, and the first end received it.
    pub is_b_done: bool,
}

/// How a splice starts and ends.
#[derive(Debug, Default)]
pub struct SpliceOptions {
    /// Bytes that were read from the first end before; they are sent to the second end first.
    pub early: Vec<u8>,
    /// The first end has ended after them. Not every reader reports its end twice: a terminal does not.
    pub is_a_done: bool,
    /// The splice ends when the second end has sent everything, although the first could still send, like a terminal
    /// whose peer is gone. Then [`SpliceEnd::leave`] is called on the second end.
    pub is_over_with_b: bool,
}

/// The counters of the bytes that pass.
#[derive(Clone, Copy, Debug)]
pub struct Meter<'a> {
    /// From the first end to the second.
    pub a_to_b: &'a Count,
    /// From the second end to the first.
    pub b_to_a: &'a Count,
}

/// Copies both ways until both directions have ended, one has failed, or `cut` signals that the connection below an end
/// is closed. Afterwards both ends should be dropped. After a failure they were aborted, and data that had arrived was
/// passed on before that.
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
            return Poll::Pending; // both ends are being read, which reports their failures
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
    /// The reader ended; the writer must be shut down.
    Finishing,
    Done,
}

/// One direction: the data read and not yet written, and its state.
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

    /// Returns true if it waits for its reader and not for its writer.
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
                    // Not every writer flushes on shutdown; standard output does not.
                    ready!(Pin::new(&mut *writer).poll_flush(context)).map_err(by_writer)?;
                    match ready!(Pin::new(&mut *writer).poll_shutdown(context)) {
                        // Some systems return this error if the peer has closed both ways before.
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

    /// Writes the pending data.
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

    /// Reads once and writes the data at once; what the writer does not accept becomes pending.
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
