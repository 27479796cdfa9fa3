//! A client whose address changed (PROTOCOL.md section 6). The path moves once the new address is validated. Before that, an address that the
//! client announced gets copies of the oldest data.

use core::net::SocketAddr;

use ctcp_base::Instant;

use super::transmit::Outgoing;
use super::{Contents, Established, TransportError};
use crate::code::Choice;
use crate::id::{ContextId, PathId, Role};
use crate::network::{NetworkPath, Transmit, is_relayed};
use crate::path::migration::Candidate;
use crate::path::validation::{OPENING_MAX, PathValidation};
use crate::wire::{DATAGRAM_SIZE_MIN, Frame};

/// An upper bound of the size of a server's sealed PATH_CHALLENGE.
const CHALLENGE_SIZE: u64 = 64;

/// The least payload of a PING that announces a new address, in bytes (PROTOCOL.md section 6). Probes of the datagram size have one, too.
const ANNOUNCEMENT_MIN: usize = DATAGRAM_SIZE_MIN / 2;

/// Symbols of each context that are sent to a new address before it is validated, if the limit allows it.
const COPIES_MAX: usize = 8;

#[cfg(test)]
impl super::Connection {
    /// The last challenge sent to the candidate and the packet number skipped next: random values that a peer sees.
    pub(crate) fn drawn(&self) -> Option<(Option<u64>, Option<crate::PacketNumber>)> {
        let super::State::Established(established) = &self.state else { return None };
        let path = established.paths.main();
        let candidate = path.migration.candidate.as_ref();
        Some((candidate.and_then(|candidate| candidate.validation.last_challenge()), path.skips()))
    }
}

impl Established {
    /// Handles the addresses of a new authentic packet of a path. `is_newest` if no packet with a higher number has arrived before.
    pub(super) fn on_network_path(
        &mut self,
        now: Instant,
        id: PathId,
        network: NetworkPath,
        is_newest: bool,
        size: u64,
    ) {
        let path = &mut self.paths[id];
        if network.remote == path.network.remote {
            if let Some(validation) = &mut path.opening {
                validation.on_received(size);
            }
            if !is_newest {
                return;
            }
            // The peer is still, or again, at its current address.
            path.migration.candidate = None;
            let here = path.network.local.zip(network.local);
            let has_moved = self.role == Role::Client && here.is_some_and(|(before, now)| before != now);
            if has_moved && path.is_validated() {
                self.move_path(now, id, network);
            } else {
                path.network.local = network.local;
            }
            return;
        }
        // Servers do not move, and nobody moves between a hop and an address of the network.
        if self.role != Role::Server || is_relayed(network.remote) != path.is_relayed() {
            return;
        }
        if let Some(validation) = &mut path.opening {
            if is_newest {
                // The first packet may have come from someone who copied it.
                *validation = PathValidation::new();
                validation.on_received(size);
                path.network = network;
            }
            return;
        }
        match &mut path.migration.candidate {
            Some(candidate) if candidate.network.remote == network.remote => {
                candidate.on_received(size);
            }
            _ if is_newest => path.migration.candidate = Some(Candidate::new(network, size)),
            _ => {}
        }
    }

    /// Handles a PING in a payload of `length` bytes from `remote`. A client pads those that announce its new address.
    pub(super) fn on_ping(&mut self, id: PathId, remote: SocketAddr, length: usize) {
        let candidate = self.paths[id].migration.candidate.as_mut();
        if let Some(candidate) = candidate.filter(|candidate| candidate.network.remote == remote)
            && !candidate.is_announced
            && length >= ANNOUNCEMENT_MIN
        {
            candidate.is_announced = true;
            for id in [ContextId::Interactive, ContextId::Messages, ContextId::Streams] {
                let Some(context) = self.contexts.get(id) else { continue };
                let oldest = context.sender.oldest(COPIES_MAX);
                oldest.for_each(|symbol| candidate.copies.push(id, Choice::Again(symbol)));
            }
        }
    }

    pub(super) fn on_path_challenge(&mut self, id: PathId, network: NetworkPath, data: [u8; 8]) {
        self.paths[id].migration.on_challenge(network, data);
    }

    /// Handles a PATH_RESPONSE that came from `remote`. Only an answer from the new address itself validates it: a host there may have passed
    /// the challenge on to the client.
    pub(super) fn on_path_response(&mut self, now: Instant, id: PathId, remote: SocketAddr, data: [u8; 8]) {
        let path = &mut self.paths[id];
        let data = u64::from_be_bytes(data);
        let opening = path.opening.as_mut().filter(|_| path.network.remote == remote);
        if let Some(sent) = opening.and_then(|validation| validation.on_response(data)) {
            path.opening = None;
            path.on_first_rtt_sample(now, now - sent);
            self.on_path_opened(id);
            return;
        }
        let candidate = path.migration.candidate.as_mut();
        let Some(candidate) = candidate.filter(|candidate| candidate.network.remote == remote) else {
            return;
        };
        if let Some(sent) = candidate.validation.on_response(data) {
            let (network, ahead) = (candidate.network, core::mem::take(&mut candidate.ahead));
            path.migration.candidate = None;
            self.counts.migrations += 1;
            self.move_path(now, id, network);
            for (context, symbol) in ahead {
                self.contexts.open(context).sender.on_sent_ahead(symbol);
            }
            self.paths[id].on_first_rtt_sample(now, now - sent);
            self.resets.tell();
            // Send something at once.
            if self.paths.len() > 1 {
                // It may have failed before, and then others send first.
                self.paths[id].owed.probes = self.paths[id].owed.probes.max(1);
            } else {
                self.ping = true;
            }
        }
    }

    /// One end of a path has a new address. Packets in flight belong to the old one.
    fn move_path(&mut self, now: Instant, id: PathId, network: NetworkPath) {
        self.paths[id].migrate(now, network);
        self.give_up_flight(id);
    }

    /// Sends a PATH_RESPONSE or PATH_CHALLENGE of a path to the address that it concerns.
    pub(super) fn transmit_path_frames(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        if let Some((network, data)) = self.next_path_response(id) {
            return self.send_to(now, id, network, &[Frame::PathResponse(data)], buffer).map(Some);
        }
        if let Some(transmit) = self.transmit_challenge(now, id, buffer)? {
            return Ok(Some(transmit));
        }
        if let Some(transmit) = self.transmit_announcement(now, id, buffer)? {
            return Ok(Some(transmit));
        }
        self.transmit_ahead(now, id, buffer)
    }

    /// Sends a PATH_CHALLENGE to an address that is not validated yet.
    fn transmit_challenge(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let path = &mut self.paths[id];
        let network = path.network;
        let candidate = path.migration.candidate.as_mut();
        let opening = path.opening.as_mut().map(|validation| (network, validation));
        let Some((network, validation)) =
            opening.or_else(|| candidate.map(|candidate| (candidate.network, &mut candidate.validation)))
        else {
            return Ok(None);
        };
        if !validation.wants_challenge() || !validation.can_send(CHALLENGE_SIZE) {
            return Ok(None);
        }
        let challenge = self.rng.next_u64();
        let mut frames = vec![Frame::PathChallenge(challenge.to_be_bytes())];
        if self.role == Role::Client && !self.paths[id].is_validated() {
            frames.push(Frame::PathPreference(self.paths[id].preference));
            frames.extend(self.path_changes.unconfirmed().map(Frame::PathAbandon));
        }
        let transmit = self.send_to(now, id, network, &frames, buffer)?;
        if let Some(validation) = self.paths[id].validation_of(network.remote) {
            validation.on_challenge_sent(now, challenge);
        }
        Ok(Some(transmit))
    }

    /// Announces the address of a client that may have a new one: a PING of the path's datagram size, so that a server may send as much
    /// before the address is validated.
    fn transmit_announcement(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let path = &mut self.paths[id];
        let is_flowing = path.silence.is_flowing(now);
        if !path.migration.poll_announcement(now, is_flowing) {
            return Ok(None);
        }
        let size = usize::try_from(path.datagram_size()).unwrap_or(usize::MAX);
        let mut builder = self.open_builder(id, core::mem::take(buffer), size);
        builder.write(&Frame::Ping);
        builder.pad_to(size);
        let outgoing = Outgoing { id, ecn: None, counts: false };
        self.send_as(now, outgoing, builder, Contents::default(), buffer).map(Some)
    }

    /// Sends a copy of the oldest data in flight to an announced address that is not validated yet. A symbol that is larger than what came from
    /// there is left out.
    fn transmit_ahead(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        while let Some((network, size, (context, choice))) = self.next_ahead(id) {
            let mut builder = self.open_builder(id, core::mem::take(buffer), size);
            let combination = self.contexts.open(context).sender.write_copy(choice, &mut builder);
            if combination.is_none() {
                *buffer = builder.abandon();
                buffer.clear();
                continue;
            }
            if let (Some(candidate), Choice::Again(symbol)) =
                (&mut self.paths[id].migration.candidate, choice)
            {
                candidate.ahead.push((context, symbol));
            }
            let contents = Contents { combination, ..Contents::default() };
            let outgoing = Outgoing { id, ecn: None, counts: false };
            let transmit = self.send_as(now, outgoing, builder, contents, buffer)?;
            return Ok(Some(self.redirect(id, network, transmit)));
        }
        Ok(None)
    }

    /// Takes the next copy for an announced address: where it goes, the largest datagram for it, and the copy.
    fn next_ahead(&mut self, id: PathId) -> Option<(NetworkPath, usize, (ContextId, Choice))> {
        let contexts = &self.contexts;
        let path = &mut self.paths[id];
        let ceiling = path.datagram_size();
        let candidate = path.migration.candidate.as_mut()?;
        let size = candidate.largest.min(ceiling);
        if !candidate.validation.can_send(size) {
            return None;
        }
        let next = candidate.copies.next(|context, packet| contexts.needs_copy(context, packet))?;
        candidate.copies.on_sent();
        Some((candidate.network, usize::try_from(size).unwrap_or(usize::MAX), next))
    }

    /// The next challenge to answer and where, if the limit for that address allows it. Nothing goes to an address that is neither the path's
    /// nor the one that the client may have moved to.
    fn next_path_response(&mut self, id: PathId) -> Option<(NetworkPath, [u8; 8])> {
        let path = &mut self.paths[id];
        while let Some((network, data)) = path.migration.poll_response() {
            let is_current = network.remote == path.network.remote;
            match path.validation_of(network.remote) {
                Some(validation) if !validation.can_send(CHALLENGE_SIZE) => {}
                None if !is_current => {}
                _ => return Some((network, data)),
            }
        }
        None
    }

    /// Handles the deadline of a path's validation. Returns whether the path must be closed because nothing answers.
    pub(super) fn on_validation_timeout(&mut self, now: Instant, id: PathId) -> bool {
        let interval = self.paths.main().probe_interval();
        let path = &mut self.paths[id];
        let candidate = &mut path.migration.candidate;
        if candidate.as_mut().is_some_and(|candidate| candidate.validation.on_timeout(now, interval)) {
            *candidate = None;
        }
        let is_too_old = now >= path.began + OPENING_MAX;
        path.opening.as_mut().is_some_and(|validation| validation.on_timeout(now, interval) || is_too_old)
    }

    fn send_to(
        &mut self,
        now: Instant,
        id: PathId,
        network: NetworkPath,
        frames: &[Frame<'_>],
        buffer: &mut Vec<u8>,
    ) -> Result<Transmit, TransportError> {
        let path = &mut self.paths[id];
        // A path that carries less than the smallest datagram must not open. An address has to earn what a server sends to it.
        let size = DATAGRAM_SIZE_MIN as u64;
        let is_padded = network == path.network
            && path.opening.as_ref().is_some_and(|validation| validation.can_send(size));
        let mut builder = self.open_builder(id, core::mem::take(buffer), DATAGRAM_SIZE_MIN);
        for frame in frames {
            builder.write(frame);
        }
        if is_padded {
            builder.pad_to(DATAGRAM_SIZE_MIN);
        }
        // Not ECN-capable: whether the new path supports ECN is unknown.
        let outgoing = Outgoing { id, ecn: None, counts: network == self.paths[id].network };
        let transmit = self.send_as(now, outgoing, builder, Contents::default(), buffer)?;
        Ok(self.redirect(id, network, transmit))
    }

    /// A datagram of a path that goes to `network`, and counts against the limit for it.
    fn redirect(&mut self, id: PathId, network: NetworkPath, transmit: Transmit) -> Transmit {
        if let Some(validation) = self.paths[id].validation_of(network.remote) {
            validation.on_sent(transmit.size as u64);
        }
        Transmit { destination: network.remote, source: network.local, ..transmit }
    }
}
