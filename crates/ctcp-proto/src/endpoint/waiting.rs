//! Handshakes whose first message has two datagrams (PROTOCOL.md section 3.2).
//!
//! ```text
//!  INITIATE -- admitted, opens, commits to a part ---> Waiting --- the part ---> Incoming
//!                                                         ^
//!  part ------- before its INITIATE ------> EarlyParts ---+
//! ```
//!
//! An INITIATE is processed alone. It is admitted like one without a part, so what waits for a part is half open: the limits, rates and
//! lifetime of [`HalfOpen`](crate::handshake::HalfOpen) apply, and nobody can take the place of a handshake that waits. A part is compared
//! with the digest inside the INITIATE, so there are no fragments to assemble that could overlap or contradict each other.
//!
//! Parts that overtake their INITIATE are kept in a few places that later ones overwrite. An attacker who overwrites them costs an honest
//! client whose datagrams were reordered one repetition.

use core::fmt;
use core::net::SocketAddr;

use ctcp_base::Instant;

use super::incoming::Incoming;
use super::{ConnectionHandle, DatagramOutcome, DropReason, Endpoint};
use crate::id::ConnectionId;
use crate::network::{NetworkPath, address_bytes};
use crate::wire::{LongHeader, LongPacket, PART_LENGTH};

use ring::hmac;

/// Places for parts that arrived before their INITIATE. Reordering lasts a millisecond or so, hence this serves some 50,000 handshakes a
/// second, far more than are admitted.
const EARLY_PARTS: usize = 64;

/// The place of a client that was admitted, while its connection does not exist yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) handle: ConnectionHandle,
    pub(super) local: ConnectionId,
}

/// What identifies a handshake before it has a connection: the client's address and both connection ids.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    remote: SocketAddr,
    header: LongHeader,
}

/// Parts that arrived before their INITIATE.
pub(super) struct EarlyParts {
    /// The place of a part is unpredictable, so nobody can overwrite that of a chosen client.
    key: hmac::Key,
    places: Vec<Option<(Origin, Box<[u8; PART_LENGTH]>)>>,
}

impl EarlyParts {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &secret), places: Vec::new() }
    }

    fn put(&mut self, remote: SocketAddr, header: LongHeader, part: &[u8; PART_LENGTH]) {
        let origin = Origin { remote, header };
        let index = self.index(&origin);
        if self.places.is_empty() {
            self.places.resize_with(EARLY_PARTS, || None);
        }
        self.places[index] = Some((origin, Box::new(*part)));
    }

    /// Removes the part from this origin, if it is still there.
    pub(super) fn take(&mut self, remote: SocketAddr, header: LongHeader) -> Option<Box<[u8; PART_LENGTH]>> {
        if self.places.is_empty() {
            return None;
        }
        let origin = Origin { remote, header };
        let index = self.index(&origin);
        let (_, part) = self.places[index].take_if(|(other, _)| *other == origin)?;
        Some(part)
    }

    fn index(&self, origin: &Origin) -> usize {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&address_bytes(origin.remote));
        context.update(origin.header.destination.as_bytes());
        context.update(origin.header.source.as_bytes());
        usize::from(context.sign().as_ref()[0]) % EARLY_PARTS
    }
}

impl fmt::Debug for EarlyParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EarlyParts(..)")
    }
}

impl Endpoint {
    /// Handles a part for which no handshake is known.
    pub(super) fn keep_part(
        &mut self,
        remote: SocketAddr,
        header: LongHeader,
        part: &[u8; PART_LENGTH],
    ) -> DatagramOutcome {
        self.early_parts.put(remote, header, part);
        DatagramOutcome::Dropped(DropReason::Early)
    }

    /// Gives a client that was admitted a place until its part arrives.
    pub(super) fn wait_for_part(&mut self, now: Instant, mut incoming: Incoming) -> DatagramOutcome {
        let Some(place) = self.reserve(now, &incoming) else {
            return DatagramOutcome::Dropped(DropReason::Limited);
        };
        incoming.place = Some(place);
        self.waiting.insert(place.handle, Box::new(incoming));
        DatagramOutcome::Dropped(DropReason::Incomplete)
    }

    /// Gives a client that was admitted a place among the half-open handshakes, if there is one.
    pub(super) fn reserve(&mut self, now: Instant, incoming: &Incoming) -> Option<Place> {
        let local = self.new_id();
        let handle = self.routes.insert(local);
        if !self.half_open.insert(now, handle, incoming.proven) {
            self.routes.remove(handle);
            return None;
        }
        self.half_open_messages.insert(handle, incoming.ephemeral);
        self.routes.set_initial(handle, incoming.header.destination, incoming.network_path.remote);
        Some(Place { handle, local })
    }

    /// Handles a datagram for a handshake that waits for its part.
    pub(super) fn handle_awaited(
        &mut self,
        handle: ConnectionHandle,
        network_path: NetworkPath,
        datagram: &[u8],
    ) -> DatagramOutcome {
        let (header, part) = match LongPacket::parse(datagram) {
            Ok(LongPacket::InitiatePart { header, part }) => (header, part),
            // It is sent again with the part.
            Ok(LongPacket::Early { .. }) => return DatagramOutcome::Dropped(DropReason::Early),
            Ok(LongPacket::Initiate { .. }) => return DatagramOutcome::Dropped(DropReason::Limited),
            Ok(_) | Err(_) => return DatagramOutcome::Dropped(DropReason::Malformed),
        };
        let Some(waiting) = self.waiting.get_mut(&handle) else {
            return DatagramOutcome::Dropped(DropReason::Unknown);
        };
        let is_same = waiting.header == header && waiting.network_path.remote == network_path.remote;
        if !is_same || !waiting.complete(part) {
            return DatagramOutcome::Dropped(DropReason::Malformed);
        }
        match self.waiting.remove(&handle) {
            Some(incoming) if self.accepts(&incoming.client_key()) => DatagramOutcome::Incoming(incoming),
            Some(incoming) => {
                self.refuse(*incoming);
                DatagramOutcome::Dropped(DropReason::Unknown)
            }
            None => DatagramOutcome::Dropped(DropReason::Unknown),
        }
    }

    /// Frees the place of a client that gets no connection.
    pub(super) fn free_place(&mut self, place: Place) {
        self.waiting.remove(&place.handle);
        self.no_longer_half_open(place.handle);
        self.routes.remove(place.handle);
    }
}
