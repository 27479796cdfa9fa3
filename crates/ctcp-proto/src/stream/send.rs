//! The sending half of a stream.
//!
//! ```text
//!  Send ---finish---> Finishing ---FIN in a symbol---> DataSent ---all decoded by the peer---> DataReceived
//!    |                    |                                |
//!    +--------------------+---reset, peer's STOP_SENDING---+---> ResetSent ---acknowledged---> ResetReceived
//! ```
//!
//! `Send` combines Ready and Send of PROTOCOL.md section 5, which differ only in whether bytes were sent. A STOP_SENDING in `DataSent`
//! changes nothing: every byte is in a symbol, and the peer decodes and discards it.

use super::flow_control::SendCredit;
use super::page::PagePool;
use super::send_buffer::SendBuffer;
use super::{Control, WriteError};
use crate::id::StreamId;
use crate::wire::{StreamFrame, SymbolBuilder};

/// Maximum number of bytes a stream may queue. The buffer only bridges the time between two symbols, since the coding window holds what was
/// sent, so a few scheduling rounds at high rates are enough.
pub const SEND_BUFFER_MAX: usize = 256 * 1024;

/// Maximum number of bytes a stream may queue while the peer grants it no credit. Its reader has stopped, and other streams need the
/// memory.
pub(crate) const SEND_BUFFER_BLOCKED: usize = 16 * 1024;

/// The state of a sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendState {
    /// The application may write.
    Send,
    /// The application has finished; bytes or the FIN are still queued.
    Finishing,
    /// The FIN is in a symbol.
    DataSent,
    /// The peer has decoded everything.
    DataReceived,
    /// Reset; the peer must be notified.
    ResetSent(ResetCause),
    /// Reset, and the peer has acknowledged it.
    ResetReceived(ResetCause),
}

/// Who reset a sending half, with the application's error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetCause {
    /// This side's application.
    Local(u64),
    /// The peer, by STOP_SENDING.
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

/// What [`SendHalf::pack`] added to a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Bytes of the stream.
    pub(crate) bytes: usize,
    /// Bytes of the symbol, header included.
    pub(crate) total: usize,
    /// Whether the FIN was included.
    pub(crate) fin: bool,
}

/// The sending half of one stream.
pub(crate) struct SendHalf {
    buffer: SendBuffer,
    credit: SendCredit,
    state: SendState,
}

impl SendHalf {
    /// Minimum amount of data for a frame at the end of a symbol, unless it is all there is. A smaller frame waits for the next symbol,
    /// since its header would be about as long.
    const TAIL_MIN: usize = 8;

    /// A half to which the peer grants `credit` bytes.
    #[must_use]
    pub(crate) fn new(credit: u64) -> Self {
        Self { buffer: SendBuffer::default(), credit: SendCredit::new(credit), state: SendState::Send }
    }

    /// The current state.
    #[must_use]
    pub(crate) fn state(&self) -> SendState {
        self.state
    }

    /// Queues as much of `data` as fits into a buffer of at most `limit` bytes.
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

    /// How many bytes may be queued if streams may queue `limit`: at most the peer's credit, but at least [`SEND_BUFFER_BLOCKED`].
    pub(crate) fn buffer_limit(&self, limit: usize) -> usize {
        let credit = usize::try_from(self.credit.available()).unwrap_or(usize::MAX);
        limit.min(SEND_BUFFER_MAX).min(credit.max(SEND_BUFFER_BLOCKED))
    }

    /// Marks the end: no more bytes will be written.
    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        self.check_open()?;
        self.state = SendState::Finishing;
        Ok(())
    }

    fn check_open(&self) -> Result<(), WriteError> {
        match self.state {
            SendState::Send => Ok(()),
            SendState::Finishing | SendState::DataSent | SendState::DataReceived => Err(WriteError::Finished),
            SendState::ResetSent(cause) | SendState::ResetReceived(cause) => Err(cause.write_error()),
        }
    }

    /// Counts bytes as sent that left as early data and will not be packed, so that the final size includes them. Returns their number.
    pub(crate) fn count_early(&mut self, early: u64) -> u64 {
        let missing = early.saturating_sub(self.credit.used());
        self.credit.force(missing);
        missing
    }

    /// Resets the half. Returns the number of bytes that were queued, or `None` if there was nothing left to reset.
    pub(crate) fn reset(&mut self, pool: &mut PagePool, cause: ResetCause) -> Option<usize> {
        let over = match (self.state, cause) {
            (SendState::Send | SendState::Finishing, _) | (SendState::DataSent, ResetCause::Local(_)) => {
                false
            }
            (SendState::DataSent, ResetCause::Stopped(_)) => true,
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

    /// The peer has decoded all symbols up to the one with the FIN.
    pub(crate) fn on_all_decoded(&mut self) {
        if matches!(self.state, SendState::DataSent) {
            self.state = SendState::DataReceived;
        }
    }

    /// The peer acknowledged the RESET_STREAM.
    pub(crate) fn on_reset_acked(&mut self) {
        if let SendState::ResetSent(cause) = self.state {
            self.state = SendState::ResetReceived(cause);
        }
    }

    /// The RESET_STREAM that the peer must receive, if any.
    #[must_use]
    pub(crate) fn reset_frame(&self, id: StreamId) -> Option<Control> {
        let SendState::ResetSent(cause) = self.state else { return None };
        Some(Control::ResetStream { id, code: cause.code(), final_size: self.credit.used() })
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.credit.used() + self.buffer.len() as u64
    }

    /// Bytes written and not packed yet.
    #[must_use]
    pub(crate) fn queued(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that can be packed now under the stream's credit.
    #[must_use]
    pub(crate) fn sendable(&self) -> usize {
        usize::try_from(self.credit.available()).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    /// Whether only the FIN is waiting, which needs no credit.
    #[must_use]
    pub(crate) fn has_bare_fin(&self) -> bool {
        self.state == SendState::Finishing && self.buffer.is_empty()
    }

    /// Whether the half is in a final state.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, SendState::DataReceived | SendState::ResetReceived(_))
    }

    /// Packs one frame into a symbol, as much as its room and both credits allow. Returns `None` if that is nothing, or so little
    /// that it waits for the next symbol.
    pub(crate) fn pack(
        &mut self,
        id: StreamId,
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
            self.state = SendState::DataSent;
        }
        Some(Packed { bytes: count, total: room - symbol.remaining(), fin })
    }
}

#[cfg(test)]
mod tests;
