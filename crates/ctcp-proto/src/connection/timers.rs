//! Deadlines: which ones exist, which is next, and what happens when one has passed.

use core::time::Duration;

use ctcp_base::Instant;

use super::Established;
use crate::error::ConnectionError;
use crate::handshake::HALF_OPEN_LIFETIME;
use crate::id::{PathId, Role};
use crate::path::Path;
use crate::path::scheduler::Ranking;

/// How long the peer must be silent during an exchange before a client checks that it is still there. A restarted server answers with a
/// stateless reset, so an application learns of the restart after this time and a round trip.
const SILENCE: Duration = Duration::from_millis(500);

/// A side whose deadlines are handled this much too late was suspended.
pub(super) const SUSPENDED: Duration = Duration::from_secs(2);

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
    /// The pacer allows the next packet, or a report is due.
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

/// A request just before the idle timeout has this long to be answered, in round trips and at least.
const ANSWER_RTTS: u32 = 6;
const ANSWER_MIN: Duration = Duration::from_millis(500);

/// Times from which deadlines are computed.
#[derive(Debug)]
pub(crate) struct Timers {
    /// When the last authentic packet was received.
    pub(crate) last_received: Instant,
    /// When this side last resumed after it was suspended.
    last_resumed: Instant,
    /// Streams were open when something was last handled, so that the silence of the peer counted. Callers poll after they open one.
    was_waiting: bool,
    /// When the last ack-eliciting packet was sent, and the first one since the last authentic packet was received.
    pub(crate) last_eliciting: Instant,
    first_unanswered: Instant,
    /// When coded data was last received.
    pub(crate) last_activity: Instant,
    /// When the pacer allows the next packet, if one is waiting, or a report is due.
    pub(crate) pacing: Option<Instant>,
}

/// The peer was silent for the idle timeout, or a client was not confirmed in time.
#[derive(Debug)]
pub(super) struct IdleTimedOut;

impl Timers {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            last_received: now,
            last_resumed: now,
            was_waiting: false,
            last_eliciting: now,
            first_unanswered: now,
            last_activity: now,
            pacing: None,
        }
    }

    pub(super) fn on_received(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// A packet waits until `time`: for the pacer of its path, or because it is not due yet.
    pub(super) fn wait_until(&mut self, time: Instant) {
        self.pacing = Some(self.pacing.map_or(time, |pacing| pacing.min(time)));
    }

    pub(super) fn on_sent(&mut self, now: Instant, ack_eliciting: bool) {
        if ack_eliciting {
            if self.last_eliciting <= self.last_received {
                self.first_unanswered = now;
            }
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
        let mut position = 0;
        while let Some(id) = self.paths.id_at(position) {
            self.on_path_timeout(now, id);
            position += 1;
        }
        let scheme = self.contexts.streams_mut().sender.scheme_mut();
        if scheme.next_timeout().is_some_and(|deadline| deadline <= now) {
            scheme.handle_timeout(now);
            if !scheme.is_unpaced() {
                // Packets unanswered for so long, including repairs, count as lost. This frees the window for retransmission.
                for path in self.paths.iter_mut() {
                    path.sent.give_up_flight(path.sent.next_number());
                }
            }
            self.counts.timeouts += 1;
            self.tell_controller();
        }
        self.on_probe_timeouts(now);
        self.ping |= self.keep_alive_deadline().is_some_and(|deadline| deadline <= now)
            || self.silence_deadline().is_some_and(|deadline| deadline <= now);
        self.on_validation_timeouts(now);
        Ok(())
    }

    /// Handles the deadlines of a path's packets.
    fn on_path_timeout(&mut self, now: Instant, id: PathId) {
        if self.paths[id].owed.loss_deadline.is_some_and(|deadline| deadline <= now) {
            self.detect_losses(now, id);
        }
        self.expire_old_packets(now, id);
        let path = &mut self.paths[id];
        if path.retransmission_deadline().is_some_and(|deadline| deadline <= now) {
            path.on_retransmission_timeout(now);
        }
        path.owed.mtu.on_timeout(now);
        if self.check_deadline(&self.paths[id]).is_some_and(|deadline| deadline <= now) {
            let path = &mut self.paths[id];
            path.silence.on_check();
            path.owed.probes = path.owed.probes.max(1);
        }
    }

    fn on_probe_timeouts(&mut self, now: Instant) {
        let mut position = 0;
        while let Some(id) = self.paths.id_at(position) {
            position += 1;
            if self.probe_deadline(now, &self.paths[id]).is_some_and(|deadline| deadline <= now) {
                self.paths[id].on_probe_timeout(now);
                self.counts.timeouts += 1;
                self.tell_control_again(id);
                // Another path may have opened since the first time.
                if self.paths[id].has_failed() {
                    self.on_path_failed(id);
                }
            }
        }
    }

    fn on_validation_timeouts(&mut self, now: Instant) {
        let mut position = 0;
        while let Some(id) = self.paths.id_at(position) {
            if self.on_validation_timeout(now, id) {
                // The server may have heard of it, and keeps a place for it. The client may take it for usable.
                self.path_changes.tell(id);
                self.close_path(id);
            } else {
                position += 1;
            }
        }
    }

    pub(super) fn next_timeout(&self, now: Instant) -> Option<(Instant, TimerKind)> {
        self.next_timeout_of(now, |_| true)
    }

    /// The first deadline of the kinds that count.
    fn next_timeout_of(
        &self,
        now: Instant,
        counts: impl Fn(TimerKind) -> bool,
    ) -> Option<(Instant, TimerKind)> {
        let is_gated = self.is_gated();
        let sending = [
            (self.scheme_deadline(), TimerKind::Retransmission),
            (self.timers.pacing, TimerKind::Pacing),
            (self.repair_deadline(now), TimerKind::Repair),
            (self.keep_alive_deadline(), TimerKind::KeepAlive),
            (self.silence_deadline(), TimerKind::Silence),
        ];
        let sending =
            sending.into_iter().chain(self.paths.iter().flat_map(|path| self.path_deadlines(now, path)));
        let sending = sending.filter(|_| !is_gated);
        sending
            .chain([(self.idle_deadline(), TimerKind::Idle)])
            .filter_map(|(deadline, kind)| Some((deadline?, kind)))
            .filter(|&(_, kind)| counts(kind))
            .min()
    }

    fn path_deadlines(&self, now: Instant, path: &Path) -> [(Option<Instant>, TimerKind); 8] {
        [
            (path.acks.next_timeout().filter(|_| path.is_validated()), TimerKind::Acknowledgement),
            (path.owed.loss_deadline, TimerKind::Loss),
            (self.probe_deadline(now, path), TimerKind::Probe),
            (path.retransmission_deadline(), TimerKind::Retransmission),
            (path.expiry_deadline(), TimerKind::Expiry),
            (path.mtu_deadline(), TimerKind::PathMtu),
            (path.validation_deadline(self.paths.main()), TimerKind::PathValidation),
            (self.check_deadline(path), TimerKind::Silence),
        ]
    }

    /// The probe deadline, unless the coding scheme has a timer of its own and probes with it. None passes while probes wait for the pacer.
    fn probe_deadline(&self, now: Instant, path: &Path) -> Option<Instant> {
        let deadline =
            path.probe_deadline().filter(|_| path.is_validated() && self.scheme_deadline().is_none())?;
        Some(path.probes_wait(now).map_or(deadline, |paced| deadline.max(paced)))
    }

    /// When a client checks a path on which a flow has stopped, and one of several paths on which nothing happens, so that NATs keep it.
    fn check_deadline(&self, path: &Path) -> Option<Instant> {
        if self.role != Role::Client || !path.is_validated() || path.owed.probes > 0 {
            return None;
        }
        let check = path.silence.check_deadline(path.measured.rtt.smoothed());
        let check = check.filter(|_| self.streams.open_streams() > 0);
        let is_further = self.paths.len() > 1;
        let idle = self.config.keep_alive.filter(|_| is_further);
        let idle = idle.map(|interval| path.silence.last_packet() + interval);
        check.into_iter().chain(idle).min()
    }

    /// The timer of a scheme whose window counts symbols.
    fn scheme_deadline(&self) -> Option<Instant> {
        self.contexts.streams().sender.scheme().next_timeout()
    }

    /// Queues the control frames of all packets in flight on a path again, since those packets may be lost and the peer may be waiting for the
    /// frames.
    fn tell_control_again(&mut self, id: PathId) {
        for packet in self.paths[id].sent.outstanding() {
            packet.contents.tell_again(
                &mut self.streams,
                &mut self.resets,
                &mut self.keys,
                &mut self.early,
                &mut self.path_changes,
            );
        }
    }

    /// Something is about to be handled.
    pub(super) fn on_handling(&mut self) {
        self.timers.was_waiting = self.streams.open_streams() > 0;
    }

    /// Nothing was handled for longer than [`SUSPENDED`]. If deadlines have passed meanwhile, this side was suspended, and could not hear the
    /// peer: its silence counts from now, as long as the peer keeps the connection. The peer may have to learn a new address at once.
    pub(super) fn on_pause(&mut self, now: Instant) {
        // Opening a stream after a pause puts the deadline for checking a silent peer in the past, for which no timer was set.
        let was_due = self.next_timeout_of(now, |kind| kind != TimerKind::Silence || self.timers.was_waiting);
        let was_suspended = was_due.is_some_and(|(deadline, _)| now - deadline > SUSPENDED);
        let silence = now - self.timers.last_received;
        let is_kept = self.negotiated.peer_idle_timeout.is_none_or(|timeout| silence < timeout);
        if was_suspended && is_kept && !self.is_gated() {
            self.timers.last_resumed = now;
            self.ping = true;
        }
    }

    /// Whether the peer was silent for the idle timeout, after which it may have discarded the connection.
    pub(super) fn is_idle_time_over(&self, now: Instant) -> bool {
        self.idle_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Whether a client has received nothing under the connection's keys. A server forgets a client of which it received nothing after
    /// [`HALF_OPEN_LIFETIME`], and its resets reach only the address of the handshake.
    fn is_unheard(&self) -> bool {
        self.role == Role::Client && self.paths.iter().all(|path| path.replay.largest().is_none())
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
            None => {
                let since = self.timers.last_received.max(self.timers.last_resumed);
                let answered_by = self.timers.first_unanswered + self.patience();
                self.negotiated.idle_timeout.map(|timeout| (since + timeout).max(answered_by))
            }
        }
    }

    /// How long a peer may take to answer, even at the end of the idle timeout: some three probe timeouts (RFC 9000 section 10.1).
    fn patience(&self) -> Duration {
        (ANSWER_RTTS * self.paths.main().measured.rtt.smoothed()).max(ANSWER_MIN)
    }

    fn keep_alive_deadline(&self) -> Option<Instant> {
        let interval = self.config.keep_alive.filter(|_| !self.ping)?;
        Some(self.timers.last_received.max(self.timers.last_eliciting) + interval)
    }

    /// When the coding scheme sends a repair of its own accord. As for [`Path::mtu_deadline`], only when it may be sent.
    fn repair_deadline(&self, now: Instant) -> Option<Instant> {
        let used = self.contexts.used_with_ids();
        let repairs = used.filter_map(|(id, context)| Some((context.sender.scheme().next_repair()?, id)));
        let times = repairs.filter_map(|(due, context)| {
            let ranking = Ranking::new(due.max(now), &self.paths);
            // Other paths may not be allowed to send it, and would be woken for nothing.
            let path = if self.must_hurry(context) { ranking.urgent() } else { ranking.first() };
            self.paths[path?].send_time(due)
        });
        times.min()
    }

    /// The deadline for checking a silent peer. Only a client checks: a server has no one to reconnect to.
    fn silence_deadline(&self) -> Option<Instant> {
        if self.role != Role::Client || self.ping || self.streams.open_streams() == 0 {
            return None;
        }
        let rtt = self.paths.main().measured.rtt.smoothed();
        let interval = SILENCE.max(2 * rtt);
        let deadline = self.timers.last_received.max(self.timers.last_eliciting) + interval;
        let is_unanswered = self.timers.last_eliciting > self.timers.last_received;
        (is_unanswered || deadline < self.timers.last_activity + SILENCE_MEMORY).then_some(deadline)
    }
}
