//! A path: its identity, its own packet numbers, and every policy that is about one way through the network.

use core::time::Duration;

use ctcp_base::Instant;

use super::ecn::EcnState;
use super::mtu::{BASE, MtuDiscovery};
use crate::ack::receiver::{AckScheduler, MAX_ACK_DELAY};
use crate::congestion::{self, Acked, Controller, ControllerFactory, Lost, Sent, TimedOut};
use crate::connection::Contents;
use crate::crypto::ReplayWindow;
use crate::crypto::random::SecretRng;
use crate::id::{PacketNumber, PathId};
use crate::network::{Ecn, NetworkPath, Transmit};
use crate::profile::Profile;
use crate::recovery::delivery_rate::{DeliveryRate, DeliverySnapshot};
use crate::recovery::loss::{INITIAL_LOSS, LossAverage, LossDetector, MU};
use crate::recovery::pacer::Pacer;
use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};
use crate::recovery::sent::{AckedPacket, LostPacket, SentPacket, SentPackets, SpuriousLoss};
use crate::recovery::timeout::{GAMMA, ProbeTimeout, RetransmissionTimeout};
use crate::wire::EcnCounts;

/// Probe time-outs in a row before which packets are as large as ever: as many as probes of a size must be lost for it
/// to count as too big.
const LARGE_PROBES: u32 = crate::path::mtu::PROBES_MAX;

/// Probes that do not wait for the whole time-out, before anything is acknowledged.
const HASTY_PROBES: u32 = 2;

/// Within so many packets the first number is left out, in the middle of slow start, where a lie would pay most.
const SKIP_FIRST: u64 = 128;

/// How fast packets leave at most where congestion control has no rate of its own: slow start doubles in a round trip.
const WINDOWS_A_ROUND_TRIP: f64 = 2.0;

/// The least distance of numbers left out, and by how much it varies: a gap costs each ACK two bytes until it is old.
const SKIP_MIN: u64 = 256;
const SKIP_RANGE: u64 = 1024;

/// One way to the peer. Its addresses may change; its identity and packet numbers stay.
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) network: NetworkPath,
    pub(crate) sent: SentPackets<Contents>,
    pub(crate) rtt: RttEstimator,
    pub(crate) losses: LossDetector,
    pub(crate) loss_average: LossAverage,
    /// When [`SentPackets::detect_losses`] wants to be asked again.
    pub(crate) loss_deadline: Option<Instant>,
    pub(crate) probe: ProbeTimeout,
    pub(crate) retransmission: RetransmissionTimeout,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) delivery: DeliveryRate,
    pub(crate) acks: AckScheduler,
    pub(crate) replay: ReplayWindow,
    pub(crate) mtu: MtuDiscovery,
    pub(crate) ecn: EcnState,
    /// New congestion marks were reported that congestion control has not heard of.
    has_new_marks: bool,
    /// The acknowledged packet with which it hears of them.
    bearer_of_marks: Option<PacketNumber>,
    /// The least that the round trip can be, for the first probes.
    hasty_rtt: Option<Duration>,
    /// The next packet number to leave out.
    skips: Option<PacketNumber>,
    /// The first packet number that went to the present address. What becomes of older ones says nothing of this way.
    first_number: PacketNumber,
    /// The same for the present way through the network: another port of the same host is no other way.
    first_number_of_way: PacketNumber,
    /// The window had room, but there was nothing to send.
    is_app_limited: bool,
    /// Reused from ACK to ACK.
    pub(crate) acked_scratch: Vec<AckedPacket<Contents>>,
    pub(crate) lost_scratch: Vec<LostPacket<Contents>>,
    pacer: Pacer,
    profile: Profile,
    datagram_ceiling: u64,
    window_max: f64,
    factory: Option<ControllerFactory>,
    /// A controller that has no rate of its own is not paced.
    unpaced_classic: bool,
}

impl Path {
    /// A path whose addresses the handshake has proved. `datagram_ceiling`: the largest datagram both sides allow.
    pub(crate) fn new(now: Instant, network: NetworkPath, profile: Profile, datagram_ceiling: u64) -> Self {
        let mtu = MtuDiscovery::new(now, datagram_ceiling);
        Self {
            id: PathId(0),
            network,
            sent: SentPackets::new(),
            rtt: RttEstimator::new(INITIAL_RTT),
            losses: LossDetector::new(),
            loss_average: loss_average(profile),
            loss_deadline: None,
            probe: ProbeTimeout::new(),
            retransmission: RetransmissionTimeout::new(GAMMA),
            controller: profile.congestion.controller(mtu.current()),
            delivery: DeliveryRate::new(now),
            acks: AckScheduler::new(MAX_ACK_DELAY, profile.acknowledges_every_packet()),
            replay: ReplayWindow::new(),
            ecn: EcnState::new(profile.answers_to_marks()),
            has_new_marks: false,
            bearer_of_marks: None,
            hasty_rtt: None,
            skips: None,
            first_number: PacketNumber(0),
            first_number_of_way: PacketNumber(0),
            is_app_limited: true,
            acked_scratch: Vec::new(),
            lost_scratch: Vec::new(),
            pacer: pacer(now, mtu.current(), profile),
            mtu,
            profile,
            datagram_ceiling,
            window_max: f64::INFINITY,
            factory: None,
            unpaced_classic: false,
        }
    }

    /// With at most so many packets under way, whatever congestion control allows.
    pub(crate) fn with_window_max(self, packets: u32) -> Self {
        Self { window_max: f64::from(packets), ..self }
    }

    /// As [`crate::TransportConfig::unpaced_classic`] says.
    pub(crate) fn with_unpaced_classic(self, unpaced_classic: bool) -> Self {
        Self { unpaced_classic, ..self }
    }

    /// With a controller from outside, if there is one.
    pub(crate) fn with_controller(self, factory: Option<ControllerFactory>) -> Self {
        let Some(factory) = factory else { return self };
        Self { controller: factory.controller(self.mtu.current()), factory: Some(factory), ..self }
    }

    /// The peer is at another address now. Another port of the same host is the same way through the network; another
    /// host is another way, of which nothing is known yet.
    pub(crate) fn migrate(&mut self, now: Instant, network: NetworkPath) {
        self.first_number = self.sent.next_number();
        if network.remote.ip() != self.network.remote.ip() {
            self.first_number_of_way = self.first_number;
            self.mtu = MtuDiscovery::new(now, self.datagram_ceiling);
            self.ecn.on_new_way(self.profile.answers_to_marks());
            self.has_new_marks = false;
            self.rtt = RttEstimator::new(INITIAL_RTT);
            self.losses = LossDetector::new();
            self.loss_average = loss_average(self.profile);
            self.delivery = DeliveryRate::new(now);
            let datagram_size = self.mtu.current();
            self.controller = match &self.factory {
                Some(factory) => factory.controller(datagram_size),
                None => self.profile.congestion.controller(datagram_size),
            };
            self.pacer = pacer(now, self.mtu.current(), self.profile);
        }
        self.network = network;
    }

    /// A datagram of `size` bytes to the peer.
    pub(crate) fn transmit(&self, size: usize, ecn: Option<Ecn>) -> Transmit {
        Transmit { destination: self.network.remote, source: self.network.local, ecn, size }
    }

    /// The codepoint of the next packet that counts against the window: ECT(0) where the path is not known to object.
    pub(crate) fn next_codepoint(&mut self) -> Option<Ecn> {
        self.ecn.marks_next(self.probe.count()).then_some(Ecn::Ect0)
    }

    /// An ACK that is the first to name the packets `acked` reports these counts of marks. `is_newest`: it names a larger number
    /// than all before.
    pub(crate) fn on_ecn_counts(
        &mut self,
        is_newest: bool,
        acked: &[AckedPacket<Contents>],
        counts: Option<EcnCounts>,
    ) {
        let first = self.first_number_of_way;
        let is_marked =
            |acked: &&AckedPacket<Contents>| acked.packet.is_ecn_capable && acked.packet.number >= first;
        let newly = acked.iter().filter(is_marked).count() as u64;
        self.has_new_marks |= self.ecn.on_ack(is_newest, newly, counts);
        self.bearer_of_marks = None;
        if self.has_new_marks {
            // The newest packet, which no back-off before it can have answered to.
            let bearer = acked.iter().rev().find(|acked| self.concerns_controller(acked));
            self.bearer_of_marks = bearer.map(|acked| acked.packet.number);
            self.has_new_marks = bearer.is_none();
        }
    }

    /// Congestion control hears of this packet's acknowledgement.
    fn concerns_controller(&self, acked: &AckedPacket<Contents>) -> bool {
        acked.packet.in_flight && acked.packet.number >= self.first_number && acked.was_lost.is_none()
    }

    /// What is delivered when a packet leaves now.
    pub(crate) fn delivery_snapshot(&mut self, now: Instant) -> DeliverySnapshot {
        self.delivery.on_sent(now, self.sent.bytes_in_flight())
    }

    /// Records a packet that leaves now.
    pub(crate) fn on_sent(&mut self, now: Instant, packet: SentPacket<Contents>) {
        let (number, size, in_flight) = (packet.number, packet.size, packet.in_flight);
        let is_mtu_probe = packet.is_mtu_probe;
        self.sent.on_sent(packet);
        if self.sent.has_given_up() {
            self.loss_deadline = Some(now);
        }
        if !in_flight {
            return;
        }
        self.pacer.on_sent(now, size);
        self.retransmission.on_sent(now);
        if !is_mtu_probe && !self.profile.is_classic() {
            let in_flight = self.sent.packets_in_flight();
            self.controller.on_sent(&Sent {
                now,
                number,
                size,
                in_flight,
                rtt: self.rtt.view(now),
                is_app_limited: self.is_app_limited,
            });
        }
        // The first window is spread over the round trip that the handshake measured.
        if !self.pacer.has_rate() && self.rtt.has_sample() {
            self.pacer.set_rate(now, self.pacing_rate());
        }
    }

    /// The number that is left out next.
    #[cfg(test)]
    pub(crate) fn skips(&self) -> Option<PacketNumber> {
        self.skips
    }

    /// Leaves out a packet number now and then, where `rng` says, which no peer can guess: one that acknowledges it lies.
    pub(crate) fn skip_number_sometimes(&mut self, rng: &mut SecretRng) {
        let next = self.sent.next_number();
        let skips = *self.skips.get_or_insert_with(|| PacketNumber(next.0 + rng.below(SKIP_FIRST)));
        if next >= skips {
            self.sent.skip_number();
            self.skips = Some(PacketNumber(next.0 + SKIP_MIN + rng.below(SKIP_RANGE)));
        }
    }

    /// A probe for a larger datagram arrived. What fitted through another way says nothing of this one.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, number: PacketNumber, size: u64) {
        if number >= self.first_number_of_way {
            self.mtu.on_probe_acked(now, size);
            self.on_datagram_size();
        }
    }

    /// A probe for a larger datagram was lost.
    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, number: PacketNumber, size: u64) {
        if number >= self.first_number_of_way {
            self.mtu.on_probe_lost(now, size);
            self.on_datagram_size();
        }
    }

    /// A packet was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Instant, acked: &AckedPacket<Contents>) {
        let packet = &acked.packet;
        if !packet.in_flight || packet.number < self.first_number {
            return;
        }
        self.mtu.on_packet_acked(now, packet.size);
        self.delivery.on_packet_acked(now, packet.delivery, packet.time, packet.size);
        if acked.was_lost.is_some() {
            return;
        }
        if !packet.is_mtu_probe {
            self.loss_average.on_ack();
        }
        if self.profile.is_classic() {
            return;
        }
        self.controller.on_ack(&Acked {
            now,
            number: packet.number,
            sent_time: packet.time,
            sample: Some(now - packet.time),
            size: packet.size,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.rtt.view(now),
            loss_average: self.loss_average.value(),
            is_app_limited: packet.delivery.is_app_limited,
            delivery_rate: self.delivery.maximum(),
            ecn_ce: self.bearer_of_marks == Some(packet.number),
        });
    }

    /// A packet that had been declared lost arrived after all.
    pub(crate) fn on_spurious_loss(&mut self, now: Instant, number: PacketNumber, spurious: SpuriousLoss) {
        // Its loss was not counted either.
        if number < self.first_number {
            return;
        }
        self.losses.on_spurious_loss(now, spurious, &self.rtt);
        self.loss_average.on_spurious_loss(spurious.outcomes_since);
    }

    /// A packet was lost that counts.
    pub(crate) fn on_lost(&mut self, now: Instant, packet: &SentPacket<Contents>) {
        // RFC 9000 9.4: losses of the old address do not count for the new one.
        if packet.number < self.first_number {
            return;
        }
        self.mtu.on_packet_lost(packet.size);
        if packet.is_ecn_capable {
            self.ecn.on_lost();
        }
        self.loss_average.on_loss(packet.number);
        if self.profile.is_classic() {
            return;
        }
        self.controller.on_loss(&Lost {
            now,
            number: packet.number,
            sent_time: packet.time,
            size: packet.size,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.rtt.view(now),
            loss_average: self.loss_average.value(),
        });
    }

    /// Nothing was acknowledged for gamma RTT: what was known of the path is void (CTCP sections 4.1 and 4.3).
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        self.retransmission.on_timeout(now);
        self.loss_average.on_timeout();
        self.controller.on_timeout(&TimedOut {
            now,
            in_flight: self.sent.packets_in_flight(),
            largest_sent: self.largest_sent(),
            rtt: self.rtt.view(now),
        });
        // What is unanswered for so long is as good as lost, and counts as in flight no more (CTCP section 4.3, RFC 6298).
        self.sent.give_up_flight(self.sent.next_number());
    }

    /// A round trip was measured.
    pub(crate) fn on_rtt_sample(&mut self, now: Instant, rtt: Duration, ack_delay: Duration) {
        if self.sent.largest_acked().is_some_and(|largest| largest < self.first_number) {
            return;
        }
        self.rtt.on_sample(now, rtt, ack_delay);
        self.acks.set_round_trip(self.rtt.smoothed());
    }

    /// An ACK brought something new.
    pub(crate) fn on_progress(&mut self, now: Instant) {
        self.probe.on_ack();
        self.retransmission.on_ack(now, self.sent.has_ack_eliciting_outstanding());
    }

    /// An ACK was processed: window, rate and datagram size may be others.
    pub(crate) fn finish_ack(&mut self, now: Instant) {
        self.delivery.finish_ack(now, self.rtt.minimum(now));
        self.pacer.set_rate(now, self.pacing_rate());
    }

    /// The controller's, or what spreads its window over half a round trip, if it has none: what follows a classical TCP to the letter
    /// relies on the clock of its acknowledgements, which says nothing of repairs.
    fn pacing_rate(&self) -> Option<f64> {
        let rate = self.controller.pacing_rate();
        if rate.is_some() || self.unpaced_classic || !self.rtt.has_sample() {
            return rate;
        }
        let window = self.controller.window().min(self.window_max);
        Some(congestion::pacing_rate(WINDOWS_A_ROUND_TRIP, window, self.mtu.current(), self.rtt.smoothed()))
    }

    /// Another datagram size was found to pass.
    pub(crate) fn on_datagram_size(&mut self) {
        self.pacer.set_datagram_size(self.mtu.current());
        self.controller.on_datagram_size(self.mtu.current());
    }

    /// The window has room, but there is nothing to send; or there is again.
    pub(crate) fn set_app_limited(&mut self, is_app_limited: bool) {
        self.is_app_limited = is_app_limited;
        if is_app_limited {
            self.delivery.on_app_limited(self.sent.bytes_in_flight());
        }
    }

    /// The largest datagram to send now. After several probes without an answer only what every path carries: it may be
    /// that all were too large, and without an answer nothing would ever be known to be lost.
    pub(crate) fn datagram_size(&self) -> u64 {
        if self.probe.count() >= LARGE_PROBES { BASE } else { self.mtu.current() }
    }

    /// True when the congestion window takes another packet.
    pub(crate) fn has_window(&self) -> bool {
        (self.sent.packets_in_flight() as f64) < self.controller.window().min(self.window_max)
    }

    /// When the pacer lets the next full datagram go; `None`: now.
    pub(crate) fn next_paced(&self, now: Instant) -> Option<Instant> {
        self.pacer.next_time(now, self.mtu.current()).filter(|&time| time > now)
    }

    /// How long to wait for an acknowledgement before the path is probed.
    pub(crate) fn probe_interval(&self) -> Duration {
        self.probe.interval(&self.rtt, MAX_ACK_DELAY)
    }

    /// When to probe; `None` when nothing is to be acknowledged.
    pub(crate) fn probe_deadline(&self) -> Option<Instant> {
        let outstanding = self.sent.has_ack_eliciting_outstanding();
        let last = self.sent.last_ack_eliciting_sent().filter(|_| outstanding)?;
        let deadline = self.probe.deadline(last, &self.rtt, MAX_ACK_DELAY);
        let hasty = self
            .hasty_rtt
            .filter(|_| self.sent.largest_acked().is_none() && self.probe.count() < HASTY_PROBES);
        Some(hasty.map_or(deadline, |rtt| deadline.min(last + 2 * rtt + MAX_ACK_DELAY)))
    }

    /// The handshake's round trip was at least this, though it may have been longer: until something is acknowledged, a probe that
    /// turns out to be needless costs less than a lost request.
    pub(crate) fn set_hasty_rtt(&mut self, rtt: Duration) {
        self.hasty_rtt = Some(rtt);
    }

    /// When to assume the retransmission time-out of Algorithm 2.
    pub(crate) fn retransmission_deadline(&self) -> Option<Instant> {
        if self.profile.is_classic() {
            return None;
        }
        self.retransmission.deadline(&self.rtt, MAX_ACK_DELAY)
    }

    /// Packets sent before are no longer counted in flight: 1.5 RTT (CTCP section 4.5), and but for
    /// the paper's own profile never less than what a delayed acknowledgement or the measured variation explain.
    ///
    /// Requirement: C5
    pub(crate) fn expiry_age(&self) -> Option<Duration> {
        if !self.profile.expires_old_packets() || !self.rtt.has_sample() {
            return None;
        }
        let smoothed = self.rtt.smoothed();
        if self.profile.acknowledges_every_packet() {
            return Some(smoothed * 3 / 2);
        }
        Some((smoothed * 3 / 2).max(smoothed + 4 * self.rtt.variance()) + MAX_ACK_DELAY)
    }

    /// True when what expires has spent its token: a new packet may leave in its place. Without, a window that was lost whole keeps the
    /// path silent until news of the packets behind it, and where losses come and go with a period, that is when the next begin.
    /// Only until the retransmission time-out, which is rarer the longer nothing is heard.
    pub(crate) fn frees_what_expires(&self) -> bool {
        self.profile.is_to_the_letter() && !self.retransmission.has_fired()
    }

    fn largest_sent(&self) -> PacketNumber {
        PacketNumber(self.sent.next_number().0.saturating_sub(1))
    }
}

fn pacer(now: Instant, datagram_size: u64, profile: Profile) -> Pacer {
    let pacer = Pacer::new(now, datagram_size);
    // Where the driver has a timer for it.
    if profile.paces_punctually() && cfg!(target_os = "linux") { pacer.punctual() } else { pacer }
}

/// The paper's, to the letter or steadied.
fn loss_average(profile: Profile) -> LossAverage {
    let average = LossAverage::new(INITIAL_LOSS, MU);
    if profile.is_to_the_letter() { average } else { average.steadied() }
}

#[cfg(test)]
mod tests;
