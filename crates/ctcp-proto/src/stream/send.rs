//! The sending half of a stream.
//!
//! ```text
//!  Send ---finish---> Finishing ---FIN in a symbol---> DataSent ---all decoded by the peer---> DataReceived
//!    |                    |                                |
//!    +--------------------+-----reset, or the peer's STOP--+---> ResetSent ---acknowledged---> ResetReceived
//! ```
//!
//! `Send` is Ready and Send of PROTOCOL.md section 5: they differ only in whether bytes were sent. A STOP that
//! finds the half in `DataSent` changes nothing: every byte is in a symbol, the peer decodes and discards them.

use super::flow_control::SendCredit;
use super::page::PagePool;
use super::send_buffer::SendBuffer;
use super::{Control, WriteError};
use crate::id::{StreamId, SymbolIndex};
use crate::wire::{StreamFrame, SymbolBuilder};

/// Bytes one stream may queue before its writer must wait. It only bridges the time between two symbols (the
/// coding window holds what was sent), so a few scheduling rounds at high rates are enough.
pub const SEND_BUFFER_MAX: usize = 256 * 1024;

/// Bytes that it may queue while the peer's credit lets it send nothing: its reader stopped, and other streams need the memory.
pub(crate) const SEND_BUFFER_BLOCKED: usize = 16 * 1024;

/// Where a sending half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendState {
    /// The application writes.
    Send,
    /// The application has finished; bytes or FIN still wait.
    Finishing,
    /// FIN is in a symbol.
    DataSent {
        /// The symbol with the FIN; none of a later index holds anything of this half.
        last_symbol: SymbolIndex,
    },
    /// The peer decoded everything.
    DataReceived,
    /// Given up; the peer is told.
    ResetSent(ResetCause),
    /// Given up, and the peer knows.
    ResetReceived(ResetCause),
}

/// Who gave a sending half up, with the code of the application that did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetCause {
    /// This side's application.
    Local(u64),
    /// The peer asked by STOP_SENDING.
    Stopped(u64),
}

impl ResetCause {
    fn code(self) -> u64 {
        match self {
            Self::Local(code) | Self::Stopped(code) => code,
        }
    }

    fn write_error(self) -> WriteError {
        match self {
            Self::Local(_) => WriteError::Reset,
            Self::Stopped(code) => WriteError::Stopped(code),
        }
    }
}

/// What [`SendHalf::pack`] put into a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Bytes of the stream.
    pub(crate) bytes: usize,
    /// Bytes of the symbol, header included.
    pub(crate) total: usize,
    /// FIN was among it.
    pub(crate) fin: bool,
}

/// The sending half of one stream.
pub(crate) struct SendHalf {
    buffer: SendBuffer,
    credit: SendCredit,
    state: SendState,
}

impl SendHalf {
    /// Less data than this is not worth a frame at the end of a symbol when the next symbol can carry it with
    /// the rest: a frame's header has about as many bytes.
    const TAIL_MIN: usize = 8;

    /// A half whose peer lets it send `credit` bytes.
    #[must_use]
    pub(crate) fn new(credit: u64) -> Self {
        Self { buffer: SendBuffer::default(), credit: SendCredit::new(credit), state: SendState::Send }
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn state(&self) -> SendState {
        self.state
    }

    /// Queues as much of `data` as the buffer takes with at most `limit` bytes in it.
    pub(crate) fn write(
        &mut self,
        pool: &mut PagePool,
        data: &[u8],
        limit: usize,
    ) -> Result<usize, WriteError> {
        self.check_open()?;
        let limit = self.buffer_limit(limit);
        Ok(self.buffer.write(pool, data, limit))
    }

    /// Bytes that may be queued where streams may have `limit`: no more than the peer lets us send, and a little to go on with.
    pub(crate) fn buffer_limit(&self, limit: usize) -> usize {
        let credit = usize::try_from(self.credit.available()).unwrap_or(usize::MAX);
        limit.min(SEND_BUFFER_MAX).min(credit.max(SEND_BUFFER_BLOCKED))
    }

    /// No more bytes will be written.
    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        self.check_open()?;
        self.state = SendState::Finishing;
        Ok(())
    }

    fn check_open(&self) -> Result<(), WriteError> {
        match self.state {
            SendState::Send => Ok(()),
            SendState::Finishing | SendState::DataSent { .. } | SendState::DataReceived => {
                Err(WriteError::Finished)
            }
            SendState::ResetSent(cause) | SendState::ResetReceived(cause) => Err(cause.write_error()),
        }
    }

    /// Gives the half up, whoever wants it. Returns the bytes that were queued, `None` if there was nothing to
    /// give up any more.
    pub(crate) fn reset(&mut self, pool: &mut PagePool, cause: ResetCause) -> Option<usize> {
        let over = match (self.state, cause) {
            (SendState::Send | SendState::Finishing, _)
            | (SendState::DataSent { .. }, ResetCause::Local(_)) => false,
            (SendState::DataSent { .. }, ResetCause::Stopped(_)) => true,
            (SendState::DataReceived | SendState::ResetSent(_) | SendState::ResetReceived(_), _) => true,
        };
        if over {
            return None;
        }
        let queued = self.buffer.len();
        self.buffer.clear(pool);
        self.state = SendState::ResetSent(cause);
        Some(queued)
    }

    /// The peer raised the credit.
    pub(crate) fn on_max_stream_data(&mut self, limit: u64) {
        self.credit.raise(limit);
    }

    /// The peer decoded all symbols up to the one with the FIN.
    pub(crate) fn on_all_decoded(&mut self) {
        if matches!(self.state, SendState::DataSent { .. }) {
            self.state = SendState::DataReceived;
        }
    }

    /// The peer acknowledged our RESET_STREAM.
    pub(crate) fn on_reset_acked(&mut self) {
        if let SendState::ResetSent(cause) = self.state {
            self.state = SendState::ResetReceived(cause);
        }
    }

    /// The RESET_STREAM that the peer has to know, if any.
    #[must_use]
    pub(crate) fn reset_frame(&self, id: StreamId) -> Option<Control> {
        let SendState::ResetSent(cause) = self.state else { return None };
        Some(Control::ResetStream { id, code: cause.code(), final_size: self.credit.used() })
    }

    /// Bytes written and not packed.
    #[must_use]
    pub(crate) fn queued(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that the stream's credit lets pack now.
    #[must_use]
    pub(crate) fn sendable(&self) -> usize {
        usize::try_from(self.credit.available()).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    /// Only the FIN waits: it needs no credit.
    #[must_use]
    pub(crate) fn has_bare_fin(&self) -> bool {
        self.state == SendState::Finishing && self.buffer.is_empty()
    }

    /// Nothing will ever change again.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, SendState::DataReceived | SendState::ResetReceived(_))
    }

    /// Packs one frame into the symbol `index`: as much as its room and both credits allow. `None` when that is
    /// nothing, or so little that it waits for the next symbol.
    pub(crate) fn pack(
        &mut self,
        (id, index): (StreamId, SymbolIndex),
        symbol: &mut SymbolBuilder,
        connection: &mut SendCredit,
        pool: &mut PagePool,
    ) -> Option<Packed> {
        let connection_credit = usize::try_from(connection.available()).unwrap_or(usize::MAX);
        let available = self.sendable().min(connection_credit);
        let offset = self.credit.used();
        let count = available.min(symbol.max_data_length(id, offset)?);
        let fin = self.state == SendState::Finishing && count == self.buffer.len();
        let least = if symbol.is_empty() { 1 } else { Self::TAIL_MIN.min(available).max(1) };
        if count < least && !fin {
            return None;
        }
        let room = symbol.remaining();
        symbol.push(StreamFrame { id, offset, data: self.buffer.take(pool, count), fin });
        self.credit.charge(count as u64);
        connection.charge(count as u64);
        if fin {
            self.state = SendState::DataSent { last_symbol: index };
        }
        Some(Packed { bytes: count, total: room - symbol.remaining(), fin })
    }
}

#[cfg(test)]
mod tests;
