//! The connection's share of the endpoint's memory budget.

use super::{Connection, Established, State};
use crate::memory::{CONNECTION_COST, Lease};

impl Connection {
    /// Attaches the lease, which returns the memory when it is dropped.
    pub(crate) fn with_lease(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Reports the current memory use to the lease and updates how much more the streams may take.
    pub(super) fn settle(&mut self) {
        let Some(lease) = &mut self.lease else { return };
        let taken = match (&self.state, &self.remains) {
            // An unconfirmed client may have spoofed its address, so only the connection state is counted.
            (State::Established(established), _) if established.is_gated() => 0,
            (State::Established(established), _) => established.memory(),
            (_, Some(remains)) => remains.streams.memory() + remains.messages.memory(),
            _ => 0,
        };
        lease.update(CONNECTION_COST + taken);
        if let State::Established(established) = &mut self.state {
            established.streams.set_room(lease.room());
            established.messages.incoming.set_room(lease.room());
            established.relayed.incoming.set_room(lease.room());
        }
    }

    /// Bytes buffered for readers.
    #[cfg(test)]
    pub(crate) fn received_bytes_held(&self) -> usize {
        match &self.state {
            State::Established(established) => established.streams.received_bytes_held(),
            _ => 0,
        }
    }
}

impl Established {
    /// Memory in use or promised to the peer, in bytes.
    fn memory(&self) -> u64 {
        self.streams.memory() + self.contexts.memory() + self.messages.memory() + self.relayed.memory()
    }
}
