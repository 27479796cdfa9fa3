//! When to send an ACK, and what it must repeat (RFC 9000 section 13.2, PROTOCOL.md section 4.1).
//!
//! An ACK is due for every second ack-eliciting packet, and after the acknowledgement delay. It is due at once if a number is missing or a
//! gap is filled, since the sender's loss detection depends on it. Some profiles acknowledge every packet, like the papers' receivers. On a
//! path through relays every eighth packet is enough, and gaps do not hurry. A sender may ask for other values ([`AckFrequency`]).
//!
//! Requirement: C6

use core::time::Duration;

use ctcp_base::Instant;

use super::ranges::{Inserted, ReceivedNumbers};
use crate::id::PathId;
use crate::network::Ecn;
use crate::wire::{AckFrequency, AckRanges, DatagramBuilder, EcnCounts, Frame, PathAck};

/// The default delay of an ACK. The sender subtracts it from its samples, so it costs little accuracy. A coded flow can wait a quarter of
/// the papers' 20 ms round trip for its feedback, hence 5 ms.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

/// Minimum delay, because timers are no finer, whatever the round trip.
const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// Maximum length of a PATH_ACK in a packet: a bitmap of nearly 4000 packets, and room for a report and a useful symbol.
const PATH_ACK_SIZE_MAX: usize = 500;

/// The same while every second packet and each gap is acknowledged: a bitmap of a thousand packets, most of which hundreds of others cover,
/// too.
const PATH_ACK_SIZE_MAX_FREQUENT: usize = 128;

/// Number of ack-eliciting packets covered by one ACK.
pub(crate) const PACKETS_PER_ACK: u32 = 2;

/// The same through relays, which repair losses and control congestion themselves: nothing waits for such an ACK, and it costs a symbol on
/// each hop.
const PACKETS_PER_ACK_PATIENT: u32 = 8;

/// The longest delay that a sender may ask for.
const REQUESTED_DELAY_MAX: Duration = Duration::from_secs(1);

/// Number of ranges from which an ACK is long enough to request its own acknowledgement, so that old ranges can be dropped (RFC 9000
/// section 13.2.4).
const RANGES_WORTH_A_PING: usize = 8;

/// How many numbers a path through relays goes back: more than a relay holds of each of several hops.
const REMEMBERED: u64 = 2048;

/// Decides when to acknowledge the packets of one path.
#[derive(Clone, Debug)]
pub(crate) struct AckScheduler {
    received: ReceivedNumbers,
    /// When the largest number was received.
    largest_time: Instant,
    /// Ack-eliciting packets since the last ACK.
    pending: u32,
    /// When an ACK is due; `None` if there is nothing to acknowledge.
    due: Option<Instant>,
    max_ack_delay: Duration,
    /// The current delay: the configured one, or a quarter of the round trip if that is less.
    ack_delay: Duration,
    every_packet: bool,
    /// The packets covered by one ACK.
    packets: u32,
    /// Whether a gap or its filling is acknowledged at once.
    hurries_at_gaps: bool,
    /// The number of the packet in which the sender last asked for another frequency.
    asked_in: Option<u64>,
    ecn: EcnCounts,
    /// When an ACK was last sent in an ack-eliciting packet.
    last_confirmable: Option<Instant>,
    round_trip: Duration,
    /// How many numbers below what need not be repeated may still arrive and count.
    remembered: u64,
}

impl AckScheduler {
    /// Creates a scheduler that delays ACKs by at most `max_ack_delay`, or acknowledges `every_packet`.
    pub(crate) fn new(max_ack_delay: Duration, every_packet: bool) -> Self {
        Self {
            received: ReceivedNumbers::new(),
            largest_time: Instant::ZERO,
            pending: 0,
            due: None,
            max_ack_delay,
            ack_delay: max_ack_delay,
            every_packet,
            packets: PACKETS_PER_ACK,
            hurries_at_gaps: true,
            asked_in: None,
            ecn: EcnCounts::default(),
            last_confirmable: None,
            round_trip: crate::recovery::rtt::INITIAL_RTT,
            remembered: 0,
        }
    }

    /// For a path through relays, on which packets may arrive long after later ones.
    pub(crate) fn patient(self) -> Self {
        Self { remembered: REMEMBERED, packets: PACKETS_PER_ACK_PATIENT, hurries_at_gaps: false, ..self }
    }

    fn is_patient(&self) -> bool {
        self.remembered > 0
    }

    /// Adapts the delay to the round trip: more than a quarter of it could stall the sender.
    pub(crate) fn set_round_trip(&mut self, smoothed: Duration) {
        self.round_trip = smoothed;
        self.ack_delay = self.max_ack_delay.min((smoothed / 4).max(MIN_ACK_DELAY));
    }

    /// Processes an authentic packet. Returns whether its number is new.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        number: u64,
        ack_eliciting: bool,
        ecn: Option<Ecn>,
    ) -> bool {
        let inserted = self.received.insert(number);
        let is_out_of_order = match inserted {
            Inserted::Duplicate | Inserted::Forgotten => return false,
            Inserted::InOrder => false,
            Inserted::Gap | Inserted::Filled => true,
        };
        count(&mut self.ecn, ecn);
        if self.received.largest() == Some(number) {
            self.largest_time = now;
        }
        if ack_eliciting {
            self.pending += 1;
            // RFC 9000 13.2.1: a congestion mark should not wait, either.
            let is_late = is_out_of_order && self.hurries_at_gaps;
            let is_urgent = is_late || self.every_packet || ecn == Some(Ecn::Ce);
            let deadline = if is_urgent || self.pending >= self.packets { now } else { now + self.ack_delay };
            self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        }
        true
    }

    /// The sender asks for another frequency in packet `number`.
    pub(crate) fn on_request(&mut self, number: u64, request: &AckFrequency) {
        if self.is_patient() || self.asked_in.is_some_and(|newest| newest > number) {
            return;
        }
        self.asked_in = Some(number);
        self.packets = u32::try_from(request.packets).unwrap_or(u32::MAX).max(1);
        self.max_ack_delay = request.delay.min(REQUESTED_DELAY_MAX);
        self.hurries_at_gaps = request.hurries_at_gaps;
        self.set_round_trip(self.round_trip);
    }

    /// A repair ended a stall. The ACK is sent at once so that the sender knows that nothing is missing any more, unless it wants fewer.
    pub(crate) fn on_repaired(&mut self, now: Instant) {
        if self.hurries_at_gaps || self.is_patient() {
            self.on_news(now);
        }
    }

    /// Requests an ACK at once for another reason: a symbol was decoded.
    pub(crate) fn on_news(&mut self, now: Instant) {
        if !self.received.is_empty() {
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    /// Whether an ACK must be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether there is something to acknowledge, so that a packet sent anyway should contain an ACK.
    pub(crate) fn has_news(&self) -> bool {
        self.pending > 0
    }

    /// When an ACK becomes due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Writes an ACK, and a PING if the ACK should be acknowledged itself. Returns the largest number in it, if it fits. The caller calls
    /// [`Self::on_ack_sent`] if the packet is sent.
    pub(crate) fn write(&self, now: Instant, path: PathId, builder: &mut DatagramBuilder) -> Option<u64> {
        let frame = PathAck {
            path,
            ranges: AckRanges::from_descending(self.ranges())?,
            delay: self.delay(now),
            ecn: self.ecn_counts(),
        };
        // A side that only receives would otherwise repeat its ranges for ever.
        if self.wants_confirmation(now) {
            builder.write(&Frame::Ping);
        }
        let is_frequent = self.packets <= PACKETS_PER_ACK && self.hurries_at_gaps;
        let size_max = if is_frequent { PATH_ACK_SIZE_MAX_FREQUENT } else { PATH_ACK_SIZE_MAX };
        builder.write_path_ack(&frame, size_max).then(|| self.largest()).flatten()
    }

    /// An ACK of everything received was sent, in a packet that is ack-eliciting itself or not.
    pub(crate) fn on_ack_sent(&mut self, now: Instant, ack_eliciting: bool) {
        self.pending = 0;
        self.due = None;
        if ack_eliciting {
            self.last_confirmable = Some(now);
        }
    }

    /// The peer acknowledged a packet with an ACK up to `largest`. Numbers at or below it need not be repeated (RFC 9000 section 13.2.4).
    pub(crate) fn on_ack_of_ack(&mut self, largest: u64) {
        let unneeded = largest.saturating_add(1).saturating_sub(self.remembered);
        self.received.forget_below(unneeded.min(self.received.largest().unwrap_or(0)));
    }

    /// Whether the next ACK should request an acknowledgement (with a PING): it is long, and no acknowledgeable ACK was sent for a round
    /// trip.
    pub(crate) fn wants_confirmation(&self, now: Instant) -> bool {
        self.received.range_count() >= RANGES_WORTH_A_PING
            && self.last_confirmable.is_none_or(|last| now - last >= self.round_trip)
    }

    /// How long ago the largest number was received.
    pub(crate) fn delay(&self, now: Instant) -> Duration {
        now - self.largest_time
    }

    /// The largest number received.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.received.largest()
    }

    /// The numbers to acknowledge, as inclusive `(first, last)` pairs in descending order.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.received.descending()
    }

    /// The ECN counts so far, if there are any.
    pub(crate) fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn != EcnCounts::default()).then_some(self.ecn)
    }
}

fn count(counts: &mut EcnCounts, mark: Option<Ecn>) {
    match mark {
        None | Some(Ecn::NotCapable) => {}
        Some(Ecn::Ect0) => counts.ect0 += 1,
        Some(Ecn::Ect1) => counts.ect1 += 1,
        Some(Ecn::Ce) => counts.ce += 1,
    }
}

#[cfg(test)]
mod tests;
