//! The receiving half of a stream.
//!
//! ```text
//!  Receive ---FIN---> SizeKnown ---last gap filled---> DataReceived ---read to the end---> DataRead
//!    |  |                |  |                               |
//!    |  +--RESET_STREAM--+--|-------> ResetReceived --------|---the reader is told-------> ResetRead
//!    |                      |                |              |
//!    +--stop--> Stopped     +------stop------+--------------+----------------------------> Discarded
//!                  |                                                                          ^
//!                  +--FIN or RESET_STREAM-----------------------------------------------------+
//! ```
//!
//! `Stopped` and `Discarded` extend PROTOCOL.md section 5 by what a local STOP does: bytes are thrown away as
//! they come, and their credit of the connection goes back to the peer at once.
//!
//! The final size is the highest offset received in every state in which the size is known: FIN and
//! RESET_STREAM both name the end.

use super::assembler::Assembler;
use super::flow_control::{Pace, ReceiveCredit};
use super::page::PagePool;
use super::{ReadError, ReadOutcome};
use crate::error::{TransportError, TransportErrorCode};

/// Where a receiving half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveState {
    /// Bytes come.
    Receive,
    /// The end is known, bytes are missing.
    SizeKnown,
    /// All bytes are here, some of them (or the end) not read.
    DataReceived,
    /// All was read.
    DataRead,
    /// The reader wants no more; the peer is asked to stop.
    Stopped {
        /// The application's code for the peer.
        code: u64,
    },
    /// The reader wanted no more, and the end is known.
    Discarded,
    /// The peer gave up; the reader does not know yet.
    ResetReceived {
        /// The code of the peer's application.
        code: u64,
    },
    /// The peer gave up, and the reader knows.
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
    TransportError::new(TransportErrorCode::FinalSize, "bytes behind the end of a stream, or a second end");
const END_TOO_LARGE: TransportError =
    TransportError::new(TransportErrorCode::FlowControl, "a stream offset beyond 2^62");

impl ReceiveHalf {
    /// A half that grants its peer `window` bytes ahead of the reader.
    #[must_use]
    pub(crate) fn new(window: u64) -> Self {
        Self {
            assembler: Assembler::default(),
            credit: ReceiveCredit::new(window),
            state: ReceiveState::Receive,
        }
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn state(&self) -> ReceiveState {
        self.state
    }

    /// Bytes arrived at `offset`, with `fin` the last ones. Returns whether a reader has something new to see.
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

    /// The peer gave up after `final_size` bytes. Returns whether a reader has something new to see.
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

    /// Checks an end against the final size and both credits and charges it. Returns whether this half still
    /// takes what came.
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

    /// The reader wants no more. Returns whether the peer is worth a STOP_SENDING.
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

    /// Is a new credit for this stream worth a frame?
    #[must_use]
    pub(crate) fn is_announcement_due(&self) -> bool {
        self.state == ReceiveState::Receive && self.credit.is_announcement_due()
    }

    /// The credit to announce now; `None` when the peer needs none any more.
    pub(crate) fn announce(&mut self, pace: Pace, ceiling: u64) -> Option<u64> {
        (self.state == ReceiveState::Receive).then(|| self.credit.announce(pace, ceiling))
    }

    /// The credit announced last.
    #[must_use]
    pub(crate) fn limit(&self) -> u64 {
        self.credit.limit()
    }

    /// Bytes held for the reader.
    #[must_use]
    pub(crate) fn buffered(&self) -> usize {
        self.assembler.buffered()
    }

    /// Nothing will ever change again.
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
