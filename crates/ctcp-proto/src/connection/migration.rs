//! A client whose address changed (PROTOCOL.md section 6). The new address is validated before data is sent to it.

use ctcp_base::Instant;

use super::{Established, TransportError};
use crate::id::Role;
use crate::network::{NetworkPath, Transmit};
use crate::path::validation::PathValidation;
use crate::wire::{DATAGRAM_SIZE_MIN, Frame};

/// Maximum number of challenges that wait for an answer. A peer sends one for each address that it validates, and two such addresses are
/// possible when this side moves twice.
const RESPONSES_MAX: usize = 4;

/// An upper bound of the size of a sealed PATH_CHALLENGE.
const CHALLENGE_SIZE: u64 = 64;

/// An address that the peer may have moved to.
pub(super) struct Candidate {
    network: NetworkPath,
    validation: PathValidation,
}

/// The address being validated and the challenges to answer.
#[derive(Default)]
pub(super) struct Migration {
    candidate: Option<Candidate>,
    responses: Vec<(NetworkPath, [u8; 8])>,
}

#[cfg(test)]
impl super::Connection {
    /// The last challenge sent to the candidate and the packet number skipped next: random values that a peer sees.
    pub(crate) fn drawn(&self) -> Option<(Option<u64>, Option<crate::PacketNumber>)> {
        let super::State::Established(established) = &self.state else { return None };
        let candidate = established.migration.candidate.as_ref();
        Some((
            candidate.and_then(|candidate| candidate.validation.last_challenge()),
            established.path.skips(),
        ))
    }
}

impl Established {
    /// Handles the addresses of a new authentic packet. `is_newest` if no packet with a higher number has arrived before.
    pub(super) fn on_network_path(&mut self, network: NetworkPath, is_newest: bool, size: u64) {
        let current = &mut self.path.network;
        if network.remote == current.remote {
            current.local = network.local;
            if is_newest {
                // The peer is still, or again, at its current address.
                self.migration.candidate = None;
            }
            return;
        }
        // Servers do not move.
        if self.role != Role::Server {
            return;
        }
        match &mut self.migration.candidate {
            Some(candidate) if candidate.network.remote == network.remote => {
                candidate.validation.on_received(size);
            }
            _ if is_newest => {
                let mut validation = PathValidation::new();
                validation.on_received(size);
                self.migration.candidate = Some(Candidate { network, validation });
            }
            _ => {}
        }
    }

    pub(super) fn on_path_challenge(&mut self, network: NetworkPath, data: [u8; 8]) {
        if self.migration.responses.len() < RESPONSES_MAX {
            self.migration.responses.push((network, data));
        }
    }

    pub(super) fn on_path_response(&mut self, now: Instant, data: [u8; 8]) {
        let Some(candidate) = &mut self.migration.candidate else { return };
        if candidate.validation.on_response(u64::from_be_bytes(data)) {
            let network = candidate.network;
            self.migration.candidate = None;
            self.counts.migrations += 1;
            self.path.migrate(now, network);
            self.resets.tell();
            // Packets in flight to the old address are lost. Send something at once.
            self.ping = true;
        }
    }

    /// Sends a PATH_RESPONSE or PATH_CHALLENGE to the address that it concerns.
    pub(super) fn transmit_path_frames(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        if let Some((network, data)) = self.migration.responses.pop() {
            return self.send_to(now, network, &Frame::PathResponse(data), buffer).map(Some);
        }
        let Some(candidate) = &self.migration.candidate else { return Ok(None) };
        if !candidate.validation.wants_challenge() || !candidate.validation.can_send(CHALLENGE_SIZE) {
            return Ok(None);
        }
        let network = candidate.network;
        let challenge = self.rng.next_u64();
        let transmit = self.send_to(now, network, &Frame::PathChallenge(challenge.to_be_bytes()), buffer)?;
        let interval = self.path.probe_interval();
        if let Some(candidate) = &mut self.migration.candidate {
            candidate.validation.on_sent(transmit.size as u64);
            candidate.validation.on_challenge_sent(now, challenge, interval);
        }
        Ok(Some(transmit))
    }

    pub(super) fn candidate_timeout(&mut self, now: Instant) {
        let is_over =
            self.migration.candidate.as_mut().is_some_and(|candidate| candidate.validation.on_timeout(now));
        if is_over {
            self.migration.candidate = None;
        }
    }

    pub(super) fn candidate_deadline(&self) -> Option<Instant> {
        self.migration.candidate.as_ref()?.validation.next_timeout()
    }

    fn send_to(
        &mut self,
        now: Instant,
        network: NetworkPath,
        frame: &Frame<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Transmit, TransportError> {
        let mut builder = self.open_builder(core::mem::take(buffer), DATAGRAM_SIZE_MIN);
        builder.write(frame);
        // Not ECN-capable: whether the new path supports ECN is unknown.
        let transmit = self.send_as(now, builder, super::Contents::default(), buffer, None)?;
        Ok(Transmit { destination: network.remote, source: network.local, ..transmit })
    }
}
