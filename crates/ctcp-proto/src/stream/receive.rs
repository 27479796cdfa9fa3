//! The receiving half of a stream.
//!
//! ```text
//!  Receive ---FIN---> SizeKnown ---last gap filled---> DataReceived ---read to the end---> DataRead
//!    |  |                |  |                               |
//!    |  +--RESET_STREAM--+--|-------> ResetReceived --------|---read returns it----------> ResetRead
//!    |                      |                |              |
//!    +--stop--> Stopped     +------stop------+--------------+----------------------------> Discarded
//!                  |                                                                          ^
//!                  +--FIN or RESET_STREAM-----------------------------------------------------+
//! ```
//!
//! `Stopped` and `Discarded` extend PROTOCOL.md section 5 for a local stop: bytes are discarded as they arrive, and their connection-level
//! credit is returned to the peer at once.
//!
//! In every state in which the final size is known, it equals the highest offset received, since FIN and RESET_STREAM both carry it.

use super::assembler::Assembler;
use super::flow_control::{Pace, ReceiveCredit};
use super::page::PagePool;
use super::{ReadError, ReadOutcome};
use crate::error::{TransportError, TransportErrorCode};

/// The state of a receiving half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveState {
    /// Bytes are arriving.
    Receive,
    /// The end is known; bytes are missing.
    SizeKnown,
    /// All bytes have arrived; some of them (or the end) were not read.
    DataReceived,
    /// Everything was read.
    DataRead,
    /// The application stopped reading; the peer is asked to stop.
    Stopped {
        /// The application's code for the peer.
        code: u64,
    },
    /// The application stopped reading, and the end is known.
    Discarded,
    /// The peer reset the stream; the application does not know yet.
    ResetReceived {
        /// The code of the peer's application.
        code: u64,
    },
    /// The peer reset the stream, and the application knows.
    ResetRead {
        /// The code of the peer's application.
        code: u64,
    },
}

/// The receiving half of one stream.
pub(crate) struct ReceiveHalf {
    assembler: Assembler,
    credit: ReceiveCredit,
    state: ReceiveState,
}

const FINAL_SIZE_CHANGED: TransportError =
    TransportError::new(TransportErrorCode::FinalSize, "bytes after the end of a stream, or a different end");
const END_TOO_LARGE: TransportError =
    TransportError::new(TransportErrorCode::FlowControl, "a stream offset beyond 2^62");

impl ReceiveHalf {
    /// A half that grants the peer `window` bytes ahead of the reader.
    #[must_use]
    pub(crate) fn new(window: u64) -> Self {
        Self {
            assembler: Assembler::default(),
            credit: ReceiveCredit::new(window),
            state: ReceiveState::Receive,
        }
    }

    /// The current state.
    #[must_use]
    pub(crate) fn state(&self) -> ReceiveState {
        self.state
    }

    /// Processes bytes at `offset`; with `fin` they are the last ones. Returns whether there is something new for the reader.
    pub(crate) fn on_data(
        &mut self,
        pool: &mut PagePool,
        connection: &mut ReceiveCredit,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<bool, TransportError> {
        let end = offset.checked_add(data.len() as u64).ok_or(END_TOO_LARGE)?;
        if !self.accept_end(connection, end, fin)? {
            return Ok(false);
        }
        if let ReceiveState::Stopped { .. } = self.state {
            self.discard(pool, connection);
            if fin {
                self.state = ReceiveState::Discarded;
            }
            return Ok(false);
        }
        let before = self.assembler.ready();
        self.assembler.insert(pool, offset, data);
        if fin {
            self.state = ReceiveState::SizeKnown;
        }
        let is_complete =
            self.state == ReceiveState::SizeKnown && self.assembler.ready() == self.credit.received();
        if is_complete {
            self.state = ReceiveState::DataReceived;
        }
        Ok(is_complete || self.assembler.ready() > before)
    }

    /// Processes a reset after `final_size` bytes. Returns whether there is something new for the reader.
    pub(crate) fn on_reset(
        &mut self,
        pool: &mut PagePool,
        connection: &mut ReceiveCredit,
        code: u64,
        final_size: u64,
    ) -> Result<bool, TransportError> {
        if !self.accept_end(connection, final_size, true)? {
            return Ok(false);
        }
        self.discard(pool, connection);
        let was_stopped = matches!(self.state, ReceiveState::Stopped { .. });
        self.state = if was_stopped { ReceiveState::Discarded } else { ReceiveState::ResetReceived { code } };
        Ok(!was_stopped)
    }

    /// Checks an end offset against the final size and both credits, and charges it. Returns whether this half still accepts data.
    fn accept_end(
        &mut self,
        connection: &mut ReceiveCredit,
        end: u64,
        is_final: bool,
    ) -> Result<bool, TransportError> {
        let received = self.credit.received();
        match self.state {
            ReceiveState::Receive | ReceiveState::Stopped { .. } => {
                if is_final && end < received {
                    return Err(FINAL_SIZE_CHANGED);
                }
                let additional = end.saturating_sub(received);
                let mut credit = self.credit;
                credit.charge(additional)?;
                connection.charge(additional)?;
                self.credit = credit;
                Ok(true)
            }
            _ if end > received || (is_final && end != received) => Err(FINAL_SIZE_CHANGED),
            state => Ok(state == ReceiveState::SizeKnown),
        }
    }

    fn discard(&mut self, pool: &mut PagePool, connection: &mut ReceiveCredit) {
        connection.on_read(self.credit.read_all());
        self.assembler.discard(pool);
    }

    /// Reads the next bytes in order.
    pub(crate) fn read(
        &mut self,
        pool: &mut PagePool,
        connection: &mut ReceiveCredit,
        out: &mut [u8],
    ) -> Result<ReadOutcome, ReadError> {
        match self.state {
            ReceiveState::Receive | ReceiveState::SizeKnown | ReceiveState::DataReceived => {}
            ReceiveState::DataRead => return Ok(ReadOutcome::Finished),
            ReceiveState::Stopped { .. } | ReceiveState::Discarded => return Err(ReadError::Stopped),
            ReceiveState::ResetReceived { code } | ReceiveState::ResetRead { code } => {
                self.state = ReceiveState::ResetRead { code };
                return Err(ReadError::Reset(code));
            }
        }
        let count = self.assembler.read(pool, out);
        self.credit.on_read(count as u64);
        connection.on_read(count as u64);
        if count > 0 || (out.is_empty() && self.assembler.readable() > 0) {
            return Ok(ReadOutcome::Data(count));
        }
        if self.state == ReceiveState::DataReceived {
            self.state = ReceiveState::DataRead;
            return Ok(ReadOutcome::Finished);
        }
        Ok(ReadOutcome::Blocked)
    }

    /// Stops reading. Returns whether a STOP_SENDING should be sent.
    pub(crate) fn stop(&mut self, pool: &mut PagePool, connection: &mut ReceiveCredit, code: u64) -> bool {
        let asks_peer = match self.state {
            ReceiveState::Receive => true,
            ReceiveState::SizeKnown | ReceiveState::DataReceived | ReceiveState::ResetReceived { .. } => {
                false
            }
            _ => return false,
        };
        self.discard(pool, connection);
        self.state = if asks_peer { ReceiveState::Stopped { code } } else { ReceiveState::Discarded };
        asks_peer
    }

    /// Whether a new credit for this stream is worth a frame.
    #[must_use]
    pub(crate) fn is_announcement_due(&self) -> bool {
        self.state == ReceiveState::Receive && self.credit.is_announcement_due()
    }

    /// The credit to announce now, or `None` if the peer needs none any more.
    pub(crate) fn announce(&mut self, pace: Pace, ceiling: u64) -> Option<u64> {
        (self.state == ReceiveState::Receive).then(|| self.credit.announce(pace, ceiling))
    }

    /// The latest announced credit.
    #[must_use]
    pub(crate) fn limit(&self) -> u64 {
        self.credit.limit()
    }

    /// Bytes buffered for the reader.
    #[must_use]
    pub(crate) fn buffered(&self) -> usize {
        self.assembler.buffered()
    }

    /// Whether the half is in a final state.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        matches!(
            self.state,
            ReceiveState::DataRead | ReceiveState::Discarded | ReceiveState::ResetRead { .. }
        )
    }
}

#[cfg(test)]
mod tests;
