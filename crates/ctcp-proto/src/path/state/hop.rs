//! Paths through relays: hops carry them, which control congestion and repair losses.

use ctcp_base::Instant;

use super::{DEAD_TIME, Path, SILENT_PROBES};
use crate::ack::receiver::{AckScheduler, MAX_ACK_DELAY};
use crate::code::RELAYED_SPAN_MAX;
use crate::congestion::{ControllerFactory, Unlimited};
use crate::network::is_relayed;
use crate::path::owed::PROBES_AT_ONCE;

/// The largest datagram that fits into one symbol of a hop of 1472 bytes: its headers take 40 bytes and one for the context, the
/// coefficients of a relay one each, and the header of a whole message in the symbol at most 13.
pub(super) const RELAYED_DATAGRAM_MAX: u64 = 1472 - 40 - 1 - RELAYED_SPAN_MAX as u64 - 13;

/// Bytes of a stream in a full datagram that hops carry. It has a header and a tag of 28 bytes together, and frames of about 9.
pub const RELAYED_PAYLOAD: u64 = RELAYED_DATAGRAM_MAX - 28 - 9;

/// Bytes of the packet of a hop with such a datagram, with IPv4 and UDP: the source's headers take about 35. A combination of a relay is a
/// little longer.
pub const RELAYED_PACKET: u64 = RELAYED_DATAGRAM_MAX + 35 + 28;

/// The most packets in flight on a path through relays, whatever the first hop takes.
const RELAYED_IN_FLIGHT_MAX: u64 = 1 << 14;

/// The hop that carries a path through relays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// How many datagrams it takes.
    room: u64,
    /// When the peer last acknowledged anything new, or was last probed. A relay that has lost the next hop goes on taking packets, so the
    /// last packet sent says nothing about the path.
    last_answer: Instant,
}

impl Path {
    /// What carries a path through a relay controls congestion, and repairs what is lost.
    pub(super) fn through_relay_if_it_is(self) -> Self {
        if !is_relayed(self.network.remote) {
            return self;
        }
        let mut path = Self { hop: Some(Hop { room: 0, last_answer: self.began }), ..self };
        path.measured = path.measured.patient();
        path.acks = AckScheduler::new(MAX_ACK_DELAY, path.profile.acknowledges_every_packet()).patient();
        path.with_controller(Some(ControllerFactory::new(|size| Box::new(Unlimited::new(size)))))
    }

    /// Whether hops through relays carry it. They repair losses, so that packets may arrive long after later ones.
    pub(crate) fn is_relayed(&self) -> bool {
        self.hop.is_some()
    }

    /// The loss that data and repairs have to reckon with: none where hops repair. What an end takes for lost there is late, or withheld.
    pub(crate) fn loss(&self) -> f64 {
        if self.is_relayed() { 0.0 } else { self.measured.loss_average.value() }
    }

    /// Sets how many datagrams the hop takes that carries this path.
    pub(crate) fn set_room(&mut self, datagrams: u64) {
        if let Some(hop) = &mut self.hop {
            hop.room = datagrams;
        }
    }

    /// A packet was sent.
    pub(super) fn take_room(&mut self) {
        if let Some(hop) = &mut self.hop {
            hop.room = hop.room.saturating_sub(1);
        }
    }

    /// Whether the hop takes another packet when `in_flight` are in flight. `None` if there is no hop.
    pub(super) fn hop_takes(&self, in_flight: u64) -> Option<bool> {
        self.hop.map(|hop| hop.room > 0 && in_flight < RELAYED_IN_FLIGHT_MAX)
    }

    /// The peer has acknowledged something new, or was probed.
    pub(super) fn on_hop_answer(&mut self, now: Instant) {
        if let Some(hop) = &mut self.hop {
            hop.last_answer = now;
        }
    }

    /// Since when the peer of a path through relays should have answered.
    pub(super) fn unanswered_since(&self) -> Option<Instant> {
        let oldest = self.hop.and_then(|_| self.sent.outstanding().find(|packet| packet.ack_eliciting))?;
        self.hop.map(|hop| oldest.time.max(hop.last_answer))
    }

    /// Whether nothing was acknowledged for so long that the path may have changed.
    pub(super) fn is_long_unanswered(&self, now: Instant) -> bool {
        let oldest = self.sent.outstanding().find(|packet| packet.ack_eliciting);
        oldest.is_some_and(|packet| now.saturating_since(packet.time) >= DEAD_TIME)
    }

    /// A probe time-out has passed.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) {
        self.owed.probe.on_timeout();
        let rate = self.measured.delivery.maximum().unwrap_or(0.0);
        let delivered = rate * self.probe_interval().as_secs_f64() / self.owed.mtu.current() as f64;
        self.owed.probes = self.owed.probe.packets(self.admission.controller.burst_length(), delivered);
        self.on_hop_answer(now);
    }

    /// Until when the probes owed wait for the pacer. `None` if they do not.
    pub(crate) fn probes_wait(&self, now: Instant) -> Option<Instant> {
        self.next_paced(now).filter(|_| self.owed.probes > PROBES_AT_ONCE)
    }

    /// How many probe time-outs in a row mean that a path has failed. Hops repair acknowledgements as they repair everything.
    pub(super) fn silent_probes(&self) -> u32 {
        if self.is_relayed() { 1 } else { SILENT_PROBES }
    }
}
