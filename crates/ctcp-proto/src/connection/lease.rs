//! What a connection takes of the endpoint's memory.

use super::{Connection, Established, State};
use crate::memory::{CONNECTION_COST, Lease};

impl Connection {
    /// Its part of the endpoint's memory, which it gives back when it is dropped.
    pub(crate) fn with_lease(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Updates what the endpoint accounts for this connection, and learns how much more it may take.
    pub(super) fn settle(&mut self) {
        let Some(lease) = &mut self.lease else { return };
        let taken = match (&self.state, &self.remains) {
            // What a stranger may have sent from any address books nothing but its state.
            (State::Established(established), _) if !established.is_confirmed => 0,
            (State::Established(established), _) => established.memory(),
            (_, Some(remains)) => remains.streams.memory(),
            _ => 0,
        };
        lease.update(CONNECTION_COST + taken);
        if let State::Established(established) = &mut self.state {
            established.streams.set_room(lease.room());
        }
    }

    /// Bytes that wait for a reader.
    #[cfg(test)]
    pub(crate) fn received_bytes_held(&self) -> usize {
        match &self.state {
            State::Established(established) => established.streams.received_bytes_held(),
            _ => 0,
        }
    }
}

impl Established {
    /// Memory taken and promised to the peer, in bytes.
    fn memory(&self) -> u64 {
        self.streams.memory() + self.sender.memory() + self.receiver.memory()
    }
}
