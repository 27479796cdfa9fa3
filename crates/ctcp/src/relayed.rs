//! Connections that carry the datagrams of others, hop by hop.
//!
//! ```text
//!   client, server     carried connections --- room, datagrams ---> hop --> socket
//!   relay              hop <--- buffers ---> hop
//! ```
//!
//! A carried connection is one like any other. Its paths lead to addresses that stand for hops ([`relayed_address`]), so that whatever holds
//! for addresses holds for hops: several are several paths, and one that falls silent is replaced.

use core::task::Waker;
use std::collections::BTreeSet;

use ctcp_base::Instant;
use ctcp_proto::{
    Carriage, DatagramOutcome, HopRepair, MessageError, NetworkPath, RelayBuffer, Transmit, hop_of,
    relayed_address,
};

use crate::state::{Key, State};

/// What a connection carries.
#[derive(Debug)]
pub(crate) enum Load {
    /// The datagrams of these connections of the same endpoint.
    Carried(BTreeSet<Key>),
    /// What this other connection of the same endpoint receives.
    Of(Key),
}

/// Why two connections cannot be joined by a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayError {
    /// They belong to different endpoints.
    DifferentEndpoints,
    /// One of them carries something already.
    Busy,
    /// They were granted different sizes of symbols or blocks.
    DifferentSizes,
    /// One of them is closed, or its peer cannot carry datagrams.
    Unsupported(MessageError),
}

impl core::fmt::Display for RelayError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::DifferentEndpoints => formatter.write_str("the connections belong to different endpoints"),
            Self::DifferentSizes => {
                formatter.write_str("the next hop takes other sizes of symbols or blocks")
            }
            Self::Busy => formatter.write_str("one of the connections carries something already"),
            Self::Unsupported(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for RelayError {}

impl From<MessageError> for RelayError {
    fn from(error: MessageError) -> Self {
        Self::Unsupported(error)
    }
}

impl State {
    /// Makes a connection a hop for others of this endpoint.
    pub(crate) fn carry(&mut self, key: Key, repair: HopRepair) -> Result<(), RelayError> {
        let Some(slot) = self.slot(key) else { return Err(MessageError::Closed.into()) };
        if slot.load.is_some() {
            return Err(RelayError::Busy);
        }
        slot.connection.carry(Carriage::End { repair })?;
        slot.load = Some(Load::Carried(BTreeSet::new()));
        self.has_hops = true;
        Ok(())
    }

    /// Joins two connections: what one receives the other sends on.
    pub(crate) fn join(
        &mut self,
        one: Key,
        other: Key,
        window: u64,
        repair: HopRepair,
    ) -> Result<(), RelayError> {
        for key in [one, other] {
            let slot = self.slot(key).ok_or(MessageError::Closed)?;
            if slot.load.is_some() || one == other {
                return Err(RelayError::Busy);
            }
        }
        let [limits, others] =
            [one, other].map(|key| self.slot(key).and_then(|slot| slot.connection.symbol_limits()));
        let (size, _) = limits.ok_or(MessageError::Closed)?;
        if limits != others {
            return Err(RelayError::DifferentSizes);
        }
        let [there, back] = [(); 2].map(|()| RelayBuffer::new(size, window));
        for (key, next, incoming, outgoing) in [(one, other, &there, &back), (other, one, &back, &there)] {
            let Some(slot) = self.slot(key) else { return Err(MessageError::Closed.into()) };
            let (incoming, outgoing) = (incoming.clone(), outgoing.clone());
            slot.connection.carry(Carriage::Relay { incoming, outgoing, repair })?;
            slot.load = Some(Load::Of(next));
        }
        Ok(())
    }

    /// Whether a connection to this address would go through a hop that exists.
    pub(crate) fn is_hop(&mut self, hop: u64) -> bool {
        self.slot(hop).is_some_and(|slot| slot.is_hop())
    }

    /// Notes that a connection goes through a hop.
    pub(crate) fn note_carried(&mut self, hop: Key, carried: Key) {
        if let Some(Load::Carried(keys)) = self.slot(hop).and_then(|slot| slot.load.as_mut()) {
            keys.insert(carried);
        }
    }

    /// Tells a connection how much its hops take now.
    pub(crate) fn tell_room(&mut self, key: Key) {
        let hops = self.slot(key).map(|slot| slot.connection.hops()).unwrap_or_default();
        for hop in hops {
            let room = self.slot(hop).map_or(0, |slot| slot.connection.relayed_room());
            if let Some(slot) = self.slot(key) {
                slot.connection.set_hop_room(hop, room);
            }
        }
    }

    /// Gives a datagram of a carried connection to its hop. A datagram without a hop is lost, as in a network.
    pub(crate) fn send_relayed(&mut self, now: Instant, carried: Key, transmit: Transmit, datagram: &[u8]) {
        let Some(hop) = hop_of(transmit.destination) else { return };
        self.note_carried(hop, carried);
        let Some(slot) = self.slot(hop) else { return };
        match slot.connection.send_relayed(now, datagram) {
            Ok(()) => drop(self.mark_ready(hop)),
            Err(error) => tracing::trace!(%error, "a datagram for a relay was dropped"),
        }
    }

    /// A connection got input: hands on what it carries.
    pub(crate) fn hand_on(&mut self, now: Instant, key: Key, wakers: &mut Vec<Waker>) {
        match self.slot(key).and_then(|slot| slot.load.as_ref()) {
            None => {}
            Some(&Load::Of(other)) => {
                if let Some(slot) = self.slot(other) {
                    slot.connection.on_relay_progress(now);
                    self.mark_ready(other);
                }
            }
            Some(Load::Carried(_)) => {
                while let Some(datagram) = self.slot(key).and_then(|slot| slot.connection.receive_relayed()) {
                    self.receive_relayed(now, key, datagram, wakers);
                }
            }
        }
    }

    /// The outputs of a connection were drained: those that it carries may have waited for that.
    pub(crate) fn on_drained(&mut self, key: Key) {
        let keys = match self.slot(key).and_then(|slot| slot.load.as_ref()) {
            Some(Load::Carried(keys)) => keys.iter().copied().collect::<Vec<Key>>(),
            _ => return,
        };
        for carried in keys {
            if self.slot(carried).is_some() {
                self.mark_ready(carried);
            } else if let Some(Load::Carried(left)) = self.slot(key).and_then(|slot| slot.load.as_mut()) {
                left.remove(&carried);
            }
        }
    }

    /// A datagram of a carried connection, or of one that will be, has arrived through a hop.
    fn receive_relayed(&mut self, now: Instant, hop: Key, mut datagram: Vec<u8>, wakers: &mut Vec<Waker>) {
        let remote = relayed_address(hop);
        let network_path = NetworkPath { local: None, remote };
        match self.endpoint.handle_datagram(now, network_path, None, &datagram) {
            DatagramOutcome::Connection(handle) => {
                let Some(key) = self.key_of(handle) else { return };
                let Some(slot) = self.slot(key) else { return };
                // What carries others is not carried itself, so that nothing goes in circles here.
                if slot.load.is_some() {
                    return;
                }
                let forged = slot.connection.forged_datagrams();
                slot.connection.handle_datagram(now, network_path, None, &mut datagram);
                let is_forged = slot.connection.forged_datagrams() > forged;
                if !is_forged {
                    self.note_carried(hop, key);
                } else if let Some(slot) = self.slot(hop) {
                    slot.connection.on_forged_datagram(now);
                }
                self.on_input(now, key, wakers);
            }
            DatagramOutcome::Incoming(incoming) => {
                if let Some(key) = self.admit(now, *incoming, remote) {
                    self.note_carried(hop, key);
                }
            }
            DatagramOutcome::Answer(answer) => {
                if let Some(slot) = self.slot(hop)
                    && slot.connection.send_relayed(now, &answer).is_ok()
                {
                    self.mark_ready(hop);
                }
            }
            DatagramOutcome::Dropped(reason) => tracing::trace!(?reason, "dropped what came through a relay"),
        }
    }

    /// A connection with this load has ended: those that it carried have lost a path, and the other side of a relay has nothing to do any
    /// more. If it was closed in order, its last datagrams may be on their way, and the application closes the other side.
    pub(crate) fn on_load_lost(&mut self, now: Instant, key: Key, load: Load, wakers: &mut Vec<Waker>) {
        match load {
            Load::Of(_) if self.slot(key).is_some_and(|slot| slot.was_closed_in_order()) => {}
            Load::Of(other) => self.close_connection(now, other, RELAY_ENDED, wakers),
            Load::Carried(keys) => {
                for carried in keys {
                    if let Some(slot) = self.slot(carried) {
                        slot.connection.on_hop_lost(now, key);
                        self.on_input(now, carried, wakers);
                    }
                }
            }
        }
    }
}

/// The code and text for the other side of a relay whose one side has ended.
const RELAY_ENDED: (u64, &str) = (1, "the other side of the relay has ended");
