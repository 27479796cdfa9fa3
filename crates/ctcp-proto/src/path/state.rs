//! A path: its identity, its packet number space, and the events of its packets.
//!
//! ```text
//!   sent, acked, lost          Path          dispatches to every component
//!                                |
//!            +-------------------+-------------------+
//!        Measured            Admission             Owed
//!   rtt, loss, rate      window and pacer     probes, datagram size
//! ```

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::Instant;

mod frequency;
mod hop;
mod late;
mod limits;

use super::admission::Admission;
use super::arrivals::Arrivals;
use super::copies::Copies;
use super::ecn::EcnState;
use super::measured::Measured;
use super::migration::Migration;
use super::mode::PREFERENCE_OF_FIRST;
use super::mtu::MtuDiscovery;
use super::owed::Owed;
use super::silence::Silence;
use super::validation::{OPENING_MAX, PathValidation};
use crate::ack::frequency::AckRequests;
use crate::ack::receiver::{AckScheduler, MAX_ACK_DELAY};
use crate::code::Code;
use crate::congestion::{Acked, ControllerFactory, Lost, Sent, TimedOut};
use crate::connection::{Contents, PathStats};
use crate::crypto::ReplayWindow;
use crate::crypto::random::SecretRng;
use crate::id::{ConnectionId, PacketNumber, PathId};
use crate::network::{Ecn, NetworkPath, Transmit, is_relayed};
use crate::profile::{ExpiryRule, Profile};
use crate::recovery::delivery_rate::DeliverySnapshot;
use crate::recovery::sent::{AckedPacket, LostPacket, SentPacket, SentPackets};
use crate::wire::EcnCounts;
use hop::{Hop, RELAYED_DATAGRAM_MAX};
pub use hop::{RELAYED_PACKET, RELAYED_PAYLOAD};

/// Unanswered probe time-outs after which other paths are used instead. A single one may be due to the loss of one acknowledgement.
const SILENT_PROBES: u32 = 2;

/// Unanswered probe time-outs and the time without an answer that make an outage. A burst of losses on a slow path takes as many.
const DEAD_PROBES: u32 = 5;
const DEAD_TIME: Duration = Duration::from_secs(3);

/// What arrived on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathReceived {
    bytes: u64,
    /// Symbols and combinations.
    pub(crate) combinations: u64,
    /// Those of them that carried no new information.
    pub(crate) redundant: u64,
}

/// One path to the peer. Its addresses may change; its identity and packet numbers stay.
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) began: Instant,
    pub(crate) network: NetworkPath,
    /// The peer's connection id for packets of this path.
    pub(crate) destination: ConnectionId,
    pub(crate) sent: SentPackets<Contents>,
    pub(crate) acks: AckScheduler,
    pub(super) arrivals: Arrivals,
    pub(crate) ack_requests: AckRequests,
    pub(crate) replay: ReplayWindow,
    pub(crate) ecn: EcnState,
    pub(crate) measured: Measured,
    pub(crate) admission: Admission,
    pub(crate) owed: Owed,
    /// The validation of a path that is not usable yet.
    pub(crate) opening: Option<PathValidation>,
    /// One side has closed it, but no other path works yet.
    pub(crate) is_retiring: bool,
    /// It does not answer, and others have taken over.
    pub(crate) has_given_up_flight: bool,
    /// The client prefers paths with lower numbers.
    pub(crate) preference: u8,
    /// Symbols of which a copy goes on this path, oldest first.
    pub(crate) copies: Copies,
    pub(crate) received: PathReceived,
    pub(crate) silence: Silence,
    /// The validation of an address that the peer may have moved to.
    pub(crate) migration: Migration,
    /// The first packet number sent to the current address. Older packets say nothing about it.
    first_number: PacketNumber,
    /// The first packet number on the current network path. Another port of the same host is the same network path.
    first_number_of_route: PacketNumber,
    bytes_sent: u64,
    /// Scratch buffers, reused for every ACK.
    pub(crate) acked_scratch: Vec<AckedPacket<Contents>>,
    pub(crate) lost_scratch: Vec<LostPacket<Contents>>,
    profile: Profile,
    datagram_ceiling: u64,
    /// What is known of the hop that carries this path, if it is one through a relay.
    hop: Option<Hop>,
}

impl Path {
    /// A path whose addresses were validated by the handshake. `datagram_ceiling` is the largest datagram that both sides allow.
    pub(crate) fn new(now: Instant, network: NetworkPath, profile: Profile, datagram_ceiling: u64) -> Self {
        let fitting = if is_relayed(network.remote) { RELAYED_DATAGRAM_MAX } else { u64::MAX };
        let datagram_ceiling = datagram_ceiling.min(fitting);
        let owed = Owed::new(now, datagram_ceiling);
        Self {
            id: PathId(0),
            began: now,
            network,
            destination: ConnectionId::default(),
            sent: SentPackets::new(),
            acks: AckScheduler::new(MAX_ACK_DELAY, profile.acknowledges_every_packet()),
            arrivals: Arrivals::default(),
            ack_requests: AckRequests::new(),
            replay: ReplayWindow::new(),
            ecn: EcnState::new(profile.answers_to_marks()),
            measured: Measured::new(now, profile.rules),
            admission: Admission::new(now, profile.congestion, owed.mtu.current()),
            owed,
            opening: None,
            is_retiring: false,
            has_given_up_flight: false,
            preference: PREFERENCE_OF_FIRST,
            copies: Copies::default(),
            received: PathReceived::default(),
            silence: Silence::new(now),
            bytes_sent: 0,
            migration: Migration::default(),
            first_number: PacketNumber(0),
            first_number_of_route: PacketNumber(0),
            acked_scratch: Vec::new(),
            lost_scratch: Vec::new(),
            profile,
            datagram_ceiling,
            hop: None,
        }
        .through_relay_if_it_is()
    }

    /// A further path, which must be validated first.
    pub(crate) fn opening(self, id: PathId, validation: PathValidation) -> Self {
        Self { id, opening: Some(validation), ..self }
    }

    /// Sets the peer's connection id for packets of this path.
    pub(crate) fn with_destination(self, destination: ConnectionId) -> Self {
        Self { destination, ..self }
    }

    /// Sets how much the client prefers it.
    pub(crate) fn with_preference(self, preference: u8) -> Self {
        Self { preference, ..self }
    }

    /// Whether data may be sent on it.
    pub(crate) fn is_validated(&self) -> bool {
        self.opening.is_none()
    }

    /// Whether other paths are used instead, if there are any: nothing answered the last probes, or the path is about to be closed.
    pub(crate) fn is_avoided(&self) -> bool {
        self.is_retiring || self.has_failed()
    }

    /// Whether it may carry data, and no other path must be used instead.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_validated() && !self.is_avoided()
    }

    /// Whether enough probes went unanswered that other paths are used instead.
    pub(crate) fn has_failed(&self) -> bool {
        self.owed.probe.count() >= self.silent_probes()
    }

    /// An authentic datagram of `bytes` arrived.
    pub(crate) fn on_received(&mut self, now: Instant, bytes: u64) {
        self.silence.on_received(now);
        self.received.bytes += bytes;
    }

    pub(crate) fn stats(&self, now: Instant, is_spare: bool) -> PathStats {
        PathStats {
            id: self.id,
            local: self.network.local,
            remote: self.network.remote,
            is_validated: self.is_validated(),
            is_avoided: self.is_avoided(),
            is_spare,
            rtt: self.measured.rtt.stats(now),
            loss: self.measured.loss_average.value(),
            window: self.admission.controller.window(),
            bytes_sent: self.bytes_sent,
            bytes_received: self.received.bytes,
            combinations_received: self.received.combinations,
            redundant_received: self.received.redundant,
        }
    }

    /// Limits the packets in flight, whatever congestion control allows.
    pub(crate) fn with_window_max(self, packets: u32) -> Self {
        Self { admission: self.admission.with_window_max(packets), ..self }
    }

    /// Disables pacing if the scheme sends packets at times of its own. Paths through relays have none: each hop paces.
    pub(crate) fn with_unpaced(self, is_unpaced: bool) -> Self {
        let is_unpaced = is_unpaced || self.is_relayed();
        Self { admission: self.admission.with_unpaced(is_unpaced), ..self }
    }

    /// Uses an external controller, if there is one.
    pub(crate) fn with_controller(self, factory: Option<ControllerFactory>) -> Self {
        let Some(factory) = factory.filter(|_| !self.admission.is_unlimited()) else { return self };
        let datagram_size = self.owed.mtu.current();
        Self { admission: self.admission.with_controller(factory, datagram_size), ..self }
    }

    /// Moves to a new address of the peer, or of this end. A new port of the same host is the same network path. A new host is a new network
    /// path, of which nothing is known yet.
    pub(crate) fn migrate(&mut self, now: Instant, network: NetworkPath) {
        self.first_number = self.sent.next_number();
        self.ack_requests.reset();
        let hosts = |network: NetworkPath| (network.remote.ip(), network.local);
        if hosts(network) != hosts(self.network) {
            self.first_number_of_route = self.first_number;
            self.owed.mtu = MtuDiscovery::new(now, self.datagram_ceiling);
            self.ecn.on_new_route(self.profile.answers_to_marks());
            let measured = Measured::new(now, self.profile.rules);
            self.measured = if self.is_relayed() { measured.patient() } else { measured };
            self.admission.on_new_route(now, self.owed.mtu.current());
        }
        self.network = network;
    }

    /// A datagram of `size` bytes to the peer.
    pub(crate) fn transmit(&self, size: usize, ecn: Option<Ecn>) -> Transmit {
        Transmit { destination: self.network.remote, source: self.network.local, ecn, size }
    }

    /// The ECN codepoint of the next ack-eliciting packet: ECT(0) unless ECN failed on this path.
    pub(crate) fn next_codepoint(&mut self) -> Option<Ecn> {
        self.ecn.marks_next(self.owed.probe.count()).then_some(Ecn::Ect0)
    }

    /// Processes the ECN counts of an ACK that newly acknowledges the packets `acked`. `is_newest` if it raises the largest acknowledged
    /// number.
    pub(crate) fn on_ecn_counts(
        &mut self,
        is_newest: bool,
        acked: &[AckedPacket<Contents>],
        counts: Option<EcnCounts>,
    ) {
        let first = self.first_number_of_route;
        let is_marked =
            |acked: &&AckedPacket<Contents>| acked.packet.is_ecn_capable && acked.packet.number >= first;
        let newly = acked.iter().filter(is_marked).count() as u64;
        // The newest packet: congestion control cannot have responded to these marks yet.
        let bearer = acked.iter().rev().find(|acked| self.concerns_controller(acked));
        let bearer = bearer.map(|acked| acked.packet.number);
        self.ecn.on_ack(is_newest, newly, counts, bearer);
    }

    /// Whether the congestion controller is notified of this packet's acknowledgement.
    fn concerns_controller(&self, acked: &AckedPacket<Contents>) -> bool {
        acked.packet.in_flight && acked.packet.number >= self.first_number && acked.was_lost.is_none()
    }

    /// A snapshot of the delivery counters for a packet sent now.
    pub(crate) fn delivery_snapshot(&mut self, now: Instant) -> DeliverySnapshot {
        self.measured.delivery.on_sent(now, self.sent.bytes_in_flight())
    }

    /// Records a packet sent now.
    pub(crate) fn on_sent(&mut self, now: Instant, packet: SentPacket<Contents>) {
        let (number, size, in_flight) = (packet.number, packet.size, packet.in_flight);
        let is_mtu_probe = packet.is_mtu_probe;
        self.bytes_sent += size;
        self.sent.on_sent(packet);
        if self.sent.has_given_up() {
            self.owed.loss_deadline = Some(now);
        }
        if !in_flight {
            return;
        }
        self.silence.on_eliciting(now);
        self.take_room();
        self.admission.on_sent(now, size);
        self.owed.retransmission.on_sent(now);
        if !is_mtu_probe && !self.profile.counts_symbols() {
            let in_flight = self.sent.packets_in_flight();
            self.admission.controller.on_sent(&Sent {
                now,
                number,
                size,
                in_flight,
                rtt: self.measured.rtt.view(now),
            });
        }
        let begins = self.sent.packets_in_flight() <= 1;
        self.admission.spread_first_window(now, begins, &self.measured.rtt, self.owed.mtu.current());
    }

    /// The next packet number that will be skipped.
    #[cfg(test)]
    pub(crate) fn skips(&self) -> Option<PacketNumber> {
        self.owed.skips()
    }

    /// Skips a packet number now and then, as described at [`Owed::skip_number_sometimes`].
    pub(crate) fn skip_number_sometimes(&mut self, rng: &mut SecretRng) {
        self.owed.skip_number_sometimes(&mut self.sent, rng);
    }

    /// An MTU probe was acknowledged. Probes of another network path are ignored.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, number: PacketNumber, size: u64) {
        if number >= self.first_number_of_route {
            self.owed.mtu.on_probe_acked(now, size);
            self.on_datagram_size();
        }
    }

    /// An MTU probe was lost.
    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, number: PacketNumber, size: u64) {
        if number >= self.first_number_of_route {
            self.owed.mtu.on_probe_lost(now, size);
            self.on_datagram_size();
        }
    }

    /// A packet was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Instant, acked: &AckedPacket<Contents>) {
        let packet = &acked.packet;
        if !packet.in_flight || packet.number < self.first_number {
            return;
        }
        self.owed.mtu.on_packet_acked(now, packet.size);
        self.measured.delivery.on_packet_acked(now, packet.delivery, packet.time, packet.size);
        if acked.was_lost.is_some() {
            return;
        }
        if !packet.is_mtu_probe {
            self.measured.loss_average.on_ack();
        }
        if self.profile.counts_symbols() {
            return;
        }
        self.admission.controller.on_ack(&Acked {
            now,
            number: packet.number,
            sent_time: packet.time,
            sample: Some(now - packet.time),
            size: packet.size,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.measured.rtt.view(now),
            loss_average: self.measured.loss_average.value(),
            is_app_limited: packet.delivery.is_app_limited && !self.admission.has_limited(packet.number),
            delivery_rate: self.measured.delivery.maximum(),
            ecn_ce: self.ecn.is_bearer(packet.number),
        });
    }

    /// A packet that counts against the window was lost.
    pub(crate) fn on_lost(&mut self, now: Instant, packet: &SentPacket<Contents>) {
        // RFC 9000 section 9.4: losses at the old address do not count for the new one.
        if packet.number < self.first_number {
            return;
        }
        self.owed.mtu.on_packet_lost(packet.size);
        if packet.is_ecn_capable {
            self.ecn.on_lost();
        }
        self.measured.loss_average.on_loss(packet.number);
        if self.profile.counts_symbols() {
            return;
        }
        self.admission.controller.on_loss(&Lost {
            now,
            number: packet.number,
            sent_time: packet.time,
            size: packet.size,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.measured.rtt.view(now),
            loss_average: self.measured.loss_average.value(),
        });
    }

    /// Nothing was acknowledged for gamma RTT: the congestion state is discarded (CTCP sections 4.1 and 4.3).
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        self.owed.retransmission.on_timeout(now);
        self.ack_requests.reset();
        self.measured.loss_average.on_timeout();
        self.admission.controller.on_timeout(&TimedOut {
            now,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.measured.rtt.view(now),
        });
        // Packets unanswered for so long are treated as lost and no longer count as in flight (CTCP section 4.3, RFC 6298).
        self.sent.give_up_flight(self.sent.next_number());
    }

    /// Processes a round-trip sample.
    pub(crate) fn on_rtt_sample(&mut self, now: Instant, rtt: Duration, ack_delay: Duration) {
        if self.sent.largest_acked().is_some_and(|largest| largest < self.first_number) {
            return;
        }
        self.measured.rtt.on_sample(now, rtt, ack_delay);
        self.acks.set_round_trip(self.measured.rtt.smoothed());
    }

    /// The round trip of a validation, so that the first window on a new network path is paced.
    pub(crate) fn on_first_rtt_sample(&mut self, now: Instant, rtt: Duration) {
        if !self.measured.rtt.has_sample() {
            self.measured.rtt.on_sample(now, rtt, Duration::ZERO);
            self.acks.set_round_trip(self.measured.rtt.smoothed());
        }
    }

    /// An ACK newly acknowledged an ack-eliciting packet.
    pub(crate) fn on_progress(&mut self, now: Instant) {
        if self.owed.probe.count() >= DEAD_PROBES && self.is_long_unanswered(now) {
            self.revive(now);
        }
        self.has_given_up_flight = false;
        self.owed.probe.on_ack();
        self.owed.probes = self.owed.probes.min(1);
        self.on_hop_answer(now);
        self.owed.retransmission.on_ack(now, self.sent.has_ack_eliciting_outstanding());
    }

    /// The path answers again after an outage. What was lost meanwhile says nothing about it, and its capacity may differ, so congestion
    /// control begins anew (RFC 9002 section 7.6).
    fn revive(&mut self, now: Instant) {
        self.first_number = self.sent.next_number();
        self.sent.give_up_flight(self.first_number);
        self.ack_requests.reset();
        self.measured.forget_loss(self.profile.rules);
        self.admission.on_new_route(now, self.owed.mtu.current());
    }

    /// Ends the processing of an ACK that was the first to acknowledge so many packets: updates the delivery rate and the pacing rate.
    pub(crate) fn finish_ack(&mut self, now: Instant, acked: usize) {
        self.measured.delivery.finish_ack(now, self.measured.rtt.minimum(now));
        self.admission.update_rate(now, &self.measured.rtt, self.owed.mtu.current());
        self.request_acks(now, acked);
    }

    /// The datagram size of the path changed.
    pub(crate) fn on_datagram_size(&mut self) {
        self.admission.on_datagram_size(self.owed.mtu.current());
    }

    /// The largest datagram to send now.
    pub(crate) fn datagram_size(&self) -> u64 {
        self.owed.datagram_size()
    }

    /// True if the congestion window has room for another packet.
    pub(crate) fn has_window(&self) -> bool {
        let in_flight = self.sent.packets_in_flight();
        self.hop_takes(in_flight)
            .unwrap_or_else(|| self.admission.has_window(in_flight, self.ack_requests.waiting()))
    }

    /// When the pacer allows the next full datagram. `None` means now.
    pub(crate) fn next_paced(&self, now: Instant) -> Option<Instant> {
        self.admission.next_paced(now, self.owed.mtu.current())
    }

    /// How long to wait for an acknowledgement before the path is probed.
    pub(crate) fn probe_interval(&self) -> Duration {
        self.owed.probe.interval(&self.measured.rtt, self.ack_requests.delay())
    }

    /// When to send a probe. `None` if no packet is waiting for an acknowledgement.
    pub(crate) fn probe_deadline(&self) -> Option<Instant> {
        let delay = self.ack_requests.delay();
        self.owed.probe_deadline(&self.sent, &self.measured.rtt, delay, self.unanswered_since())
    }

    /// See [`Owed::set_hasty_rtt`].
    pub(crate) fn set_hasty_rtt(&mut self, rtt: Duration) {
        self.owed.set_hasty_rtt(rtt);
    }

    /// The deadline of the retransmission timeout of Algorithm 2.
    pub(crate) fn retransmission_deadline(&self) -> Option<Instant> {
        if self.profile.counts_symbols() {
            return None;
        }
        self.owed.retransmission.deadline(&self.measured.rtt, self.ack_requests.delay())
    }

    /// Whether the profile sends everything as latency-sensitive data.
    pub(crate) fn hurries_everything(&self) -> bool {
        self.profile.code == Code::SLIDING
    }

    /// The age at which a packet no longer counts as in flight: 1.5 RTT (CTCP section 4.5). Profiles that do not acknowledge every packet
    /// allow at least the measured variation, and add the delay of an ACK.
    ///
    /// Requirement: C5
    pub(crate) fn expiry_age(&self) -> Option<Duration> {
        // Hops repair: what is old is still on its way.
        if self.is_relayed() || !self.profile.code.expires() || !self.measured.rtt.has_sample() {
            return None;
        }
        let smoothed = self.measured.rtt.smoothed();
        if self.profile.acknowledges_every_packet() {
            return Some(smoothed * 3 / 2);
        }
        Some((smoothed * 3 / 2).max(smoothed + 4 * self.measured.rtt.variance()) + self.ack_requests.delay())
    }

    /// True if expired packets leave the congestion window, so that new packets may be sent in their place. Otherwise, after the loss of a
    /// whole window, the path stays silent until later packets are acknowledged. With periodic losses the next loss period begins just
    /// then. False after a retransmission timeout, which backs off while nothing is acknowledged.
    pub(crate) fn frees_what_expires(&self) -> bool {
        self.profile.rules.expiry == ExpiryRule::Free && !self.owed.retransmission.has_fired()
    }

    /// When the oldest packet in flight expires.
    pub(crate) fn expiry_deadline(&self) -> Option<Instant> {
        let age = self.expiry_age()?;
        // One nanosecond later, because a packet expires only when it is older than this age.
        Some(self.sent.next_to_expire()? + age + Duration::from_nanos(1))
    }

    /// The deadline for an MTU probe. A probe also needs room in the window and permission from the pacer; without them the deadline would
    /// be due without effect.
    pub(crate) fn mtu_deadline(&self) -> Option<Instant> {
        self.send_time(self.owed.mtu.next_timeout().filter(|_| self.is_validated())?)
    }

    /// The first time from `due` on at which the pacer allows a packet. `None` while the window is full.
    pub(crate) fn send_time(&self, due: Instant) -> Option<Instant> {
        self.has_window().then(|| self.next_paced(due).map_or(due, |paced| paced.max(due)))
    }

    /// When to send another challenge, or to give up the address. The path `main` works.
    pub(crate) fn validation_deadline(&self, main: &Self) -> Option<Instant> {
        let Some(opening) = &self.opening else {
            return self.migration.candidate.as_ref()?.validation.next_timeout(main.probe_interval());
        };
        let too_old = self.began + OPENING_MAX;
        Some(opening.next_timeout(main.probe_interval()).map_or(too_old, |deadline| deadline.min(too_old)))
    }

    /// The validation of an address of the peer, if it is not finished.
    pub(crate) fn validation_of(&mut self, remote: SocketAddr) -> Option<&mut PathValidation> {
        if remote == self.network.remote {
            return self.opening.as_mut();
        }
        let candidate = self.migration.candidate.as_mut()?;
        (candidate.network.remote == remote).then_some(&mut candidate.validation)
    }

    fn largest_sent(&self) -> PacketNumber {
        PacketNumber(self.sent.next_number().0.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests;
