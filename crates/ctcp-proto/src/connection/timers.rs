//! Deadlines: which ones exist, which is next, and what happens when one has passed.

use core::time::Duration;

use ctcp_base::Instant;

use super::Established;
use crate::error::ConnectionError;
use crate::handshake::HALF_OPEN_LIFETIME;
use crate::id::Role;

/// How long the peer must be silent during an exchange before a client checks that it is still there. A restarted server answers with a
/// stateless reset, so an application learns of the restart after this time and a round trip.
const SILENCE: Duration = Duration::from_millis(500);

/// How long after it last received stream data the client keeps checking.
const SILENCE_MEMORY: Duration = Duration::from_secs(5);

/// Why a connection needs to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TimerKind {
    /// Send the INITIATE again, or give up.
    Handshake,
    /// An acknowledgement is due.
    Acknowledgement,
    /// A packet may be lost.
    Loss,
    /// Nothing was acknowledged: probe the path.
    Probe,
    /// Nothing was acknowledged for so long that the congestion state is discarded.
    Retransmission,
    /// A packet is too old to be counted in flight.
    Expiry,
    /// The pacer allows the next packet.
    Pacing,
    /// The coding scheme wants to send a repair.
    Repair,
    /// The peer was silent for the idle timeout.
    Idle,
    /// Keep the connection and the NATs on the path alive.
    KeepAlive,
    /// The peer went silent during an exchange.
    Silence,
    /// Probe for a larger datagram size.
    PathMtu,
    /// Send another challenge to a new address, or abandon it.
    PathValidation,
    /// The closing period is over.
    Close,
}

/// Times from which deadlines are computed.
#[derive(Debug)]
pub(crate) struct Timers {
    /// When the last authentic packet was received.
    pub(crate) last_received: Instant,
    /// When the last ack-eliciting packet was sent.
    pub(crate) last_eliciting: Instant,
    /// When stream data was last received.
    pub(crate) last_activity: Instant,
    /// Probes to send even if the congestion window is full.
    pub(crate) probes_owed: u8,
    /// When the pacer allows the next packet, if one is waiting.
    pub(crate) pacing: Option<Instant>,
}

/// The peer was silent for the idle timeout, or a client was not confirmed in time.
#[derive(Debug)]
pub(super) struct IdleTimedOut;

impl Timers {
    pub(super) fn new(now: Instant) -> Self {
        Self { last_received: now, last_eliciting: now, last_activity: now, probes_owed: 0, pacing: None }
    }

    pub(super) fn on_received(&mut self, now: Instant) {
        self.last_received = now;
    }

    pub(super) fn on_sent(&mut self, now: Instant, ack_eliciting: bool) {
        if ack_eliciting {
            self.last_eliciting = now;
        }
    }
}

impl Established {
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), IdleTimedOut> {
        if self.is_idle_time_over(now) {
            return Err(IdleTimedOut);
        }
        // A half-open server connection has no other deadline. A spurious call must not change anything.
        if self.is_gated() {
            return Ok(());
        }
        if self.path.owed.loss_deadline.is_some_and(|deadline| deadline <= now) {
            self.detect_losses(now);
        }
        self.expire_old_packets(now);
        if self.path.retransmission_deadline().is_some_and(|deadline| deadline <= now) {
            self.path.on_retransmission_timeout(now);
        }
        let scheme = self.contexts.streams_mut().sender.scheme_mut();
        if scheme.next_timeout().is_some_and(|deadline| deadline <= now) {
            scheme.handle_timeout(now);
            if !scheme.is_unpaced() {
                // Packets unanswered for so long, including repairs, count as lost. This frees the window for retransmission.
                self.path.sent.give_up_flight(self.path.sent.next_number());
            }
            self.counts.timeouts += 1;
            self.tell_controller();
        }
        if self.probe_deadline().is_some_and(|deadline| deadline <= now) {
            self.path.owed.probe.on_timeout();
            self.timers.probes_owed = self.path.owed.probe.packets();
            self.counts.timeouts += 1;
            self.tell_control_again();
        }
        self.ping |= self.keep_alive_deadline().is_some_and(|deadline| deadline <= now)
            || self.silence_deadline().is_some_and(|deadline| deadline <= now);
        self.path.owed.mtu.on_timeout(now);
        self.candidate_timeout(now);
        Ok(())
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, TimerKind)> {
        let path = &self.path;
        let is_gated = self.is_gated();
        let sending = [
            (path.acks.next_timeout(), TimerKind::Acknowledgement),
            (path.owed.loss_deadline, TimerKind::Loss),
            (self.probe_deadline(), TimerKind::Probe),
            (path.retransmission_deadline(), TimerKind::Retransmission),
            (self.scheme_deadline(), TimerKind::Retransmission),
            (self.expiry_deadline(), TimerKind::Expiry),
            (self.timers.pacing, TimerKind::Pacing),
            (self.repair_deadline(), TimerKind::Repair),
            (self.keep_alive_deadline(), TimerKind::KeepAlive),
            (self.silence_deadline(), TimerKind::Silence),
            (self.mtu_deadline(), TimerKind::PathMtu),
            (self.candidate_deadline(), TimerKind::PathValidation),
        ];
        let sending = sending.into_iter().filter(|_| !is_gated);
        sending
            .chain([(self.idle_deadline(), TimerKind::Idle)])
            .filter_map(|(deadline, kind)| Some((deadline?, kind)))
            .min()
    }

    /// The probe deadline, unless the coding scheme has a timer of its own and probes with it.
    fn probe_deadline(&self) -> Option<Instant> {
        self.path.probe_deadline().filter(|_| self.scheme_deadline().is_none())
    }

    /// The timer of a scheme whose window counts symbols.
    fn scheme_deadline(&self) -> Option<Instant> {
        self.contexts.streams().sender.scheme().next_timeout()
    }

    /// Queues the control frames of all packets in flight again, since those packets may be lost and the peer may be waiting for the
    /// frames.
    fn tell_control_again(&mut self) {
        for packet in self.path.sent.outstanding() {
            packet.contents.tell_again(&mut self.streams, &mut self.resets, &mut self.keys, &mut self.early);
        }
    }

    /// Whether the peer was silent for the idle timeout, after which it may have discarded the connection.
    pub(super) fn is_idle_time_over(&self, now: Instant) -> bool {
        self.idle_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Whether a client has received nothing under the connection's keys. A server forgets a client of which it received nothing after
    /// [`HALF_OPEN_LIFETIME`], and its resets reach only the address of the handshake.
    fn is_unheard(&self) -> bool {
        self.role == Role::Client && self.path.replay.largest().is_none()
    }

    /// Why the connection ends when the peer was silent for too long.
    pub(super) fn silence_error(&self) -> ConnectionError {
        if self.is_unheard() {
            ConnectionError::HandshakeTimedOut { rejected: false }
        } else {
            ConnectionError::TimedOut
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        match &self.response {
            Some(response) => Some(response.deadline),
            None if self.is_unheard() => {
                let patience = self.config.handshake_timeout.max(HALF_OPEN_LIFETIME);
                Some(self.timers.last_received + patience)
            }
            None => self.negotiated.idle_timeout.map(|timeout| self.timers.last_received + timeout),
        }
    }

    fn keep_alive_deadline(&self) -> Option<Instant> {
        let interval = self.config.keep_alive.filter(|_| !self.ping)?;
        Some(self.timers.last_received.max(self.timers.last_eliciting) + interval)
    }

    /// When the coding scheme sends a repair of its own accord. As for [`Self::mtu_deadline`], only when it may be sent.
    fn repair_deadline(&self) -> Option<Instant> {
        let due = self.contexts.used().filter_map(|context| context.sender.scheme().next_repair()).min();
        let due = due.filter(|_| self.path.has_window())?;
        Some(self.path.next_paced(due).map_or(due, |paced| paced.max(due)))
    }

    /// The deadline for an MTU probe. A probe also needs room in the window and permission from the pacer; without them the deadline would
    /// be due without effect.
    fn mtu_deadline(&self) -> Option<Instant> {
        let due = self.path.owed.mtu.next_timeout().filter(|_| self.path.has_window())?;
        Some(self.path.next_paced(due).map_or(due, |paced| paced.max(due)))
    }

    /// The deadline for checking a silent peer. Only a client checks: a server has no one to reconnect to.
    fn silence_deadline(&self) -> Option<Instant> {
        if self.role != Role::Client || self.ping || self.streams.open_streams() == 0 {
            return None;
        }
        let interval = SILENCE.max(2 * self.path.measured.rtt.smoothed());
        let deadline = self.timers.last_received.max(self.timers.last_eliciting) + interval;
        let is_unanswered = self.timers.last_eliciting > self.timers.last_received;
        (is_unanswered || deadline < self.timers.last_activity + SILENCE_MEMORY).then_some(deadline)
    }

    fn expiry_deadline(&self) -> Option<Instant> {
        let age = self.path.expiry_age()?;
        // One nanosecond later, because a packet expires only when it is older than this age.
        Some(self.path.sent.next_to_expire()? + age + Duration::from_nanos(1))
    }
}
