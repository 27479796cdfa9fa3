//! When to acknowledge, and what an ACK must repeat (RFC 9000 section 13.2, PROTOCOL.md section 4.1).
//!
//! An ACK is due with every second packet that asks for one, after the acknowledgement delay, and at once when a
//! number is missing or a gap is filled: the sender's loss detection lives on it. Some profiles acknowledge
//! each packet, as the papers' receivers do.
//!
//! Requirement: C6

use core::time::Duration;

use ctcp_base::Instant;

use super::ranges::{Inserted, ReceivedNumbers};
use crate::code::DecoderReport;
use crate::id::PathId;
use crate::network::Ecn;
use crate::wire::{AckFrame, AckRanges, DatagramBuilder, EcnCounts, Frame};

/// How long an ACK may wait by default. The sender takes the wait off its samples, so it costs little accuracy;
/// it is 5 ms because a quarter of the papers' 20 ms round trip is what a coded flow can wait for its feedback.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

/// Whatever the round trip, timers are no finer than this.
const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// Room for an ACK in a packet: enough for the longest lists, and it leaves a symbol worth sending behind it.
const ACK_SIZE_MAX: usize = 700;

/// How many ack-eliciting packets one ACK covers.
const PACKETS_PER_ACK: u32 = 2;

/// From how many ranges on an ACK is long enough to ask for its own acknowledgement, so that the old ranges can
/// be forgotten (RFC 9000 section 13.2.4).
const RANGES_WORTH_A_PING: usize = 8;

/// Decides when to acknowledge the packets of one path.
#[derive(Clone, Debug)]
pub(crate) struct AckScheduler {
    received: ReceivedNumbers,
    /// When the largest number arrived.
    largest_time: Instant,
    /// Ack-eliciting packets since the last ACK.
    pending: u32,
    /// An ACK is due at this time, `Instant::ZERO` standing for at once; `None`: nothing to say.
    due: Option<Instant>,
    max_ack_delay: Duration,
    /// The delay in force: the configured one, or a quarter of the round trip.
    ack_delay: Duration,
    every_packet: bool,
    ecn: EcnCounts,
    /// When an ACK was last sent in a packet that will be acknowledged itself.
    last_confirmable: Option<Instant>,
    round_trip: Duration,
}

impl AckScheduler {
    /// A scheduler that delays at most `max_ack_delay`, or acknowledges `every_packet`.
    pub(crate) fn new(max_ack_delay: Duration, every_packet: bool) -> Self {
        Self {
            received: ReceivedNumbers::new(),
            largest_time: Instant::ZERO,
            pending: 0,
            due: None,
            max_ack_delay,
            ack_delay: max_ack_delay,
            every_packet,
            ecn: EcnCounts::default(),
            last_confirmable: None,
            round_trip: crate::recovery::rtt::INITIAL_RTT,
        }
    }

    /// The round trip is known now: a delay beyond a quarter of it would be the sender's lull.
    pub(crate) fn set_round_trip(&mut self, smoothed: Duration) {
        self.round_trip = smoothed;
        self.ack_delay = self.max_ack_delay.min((smoothed / 4).max(MIN_ACK_DELAY));
    }

    /// An authentic packet arrived. Returns whether its number is new.
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
            // RFC 9000 13.2.1: also a congestion mark is news that should not wait.
            let is_urgent = is_out_of_order || self.every_packet || ecn == Some(Ecn::Ce);
            let deadline =
                if is_urgent || self.pending >= PACKETS_PER_ACK { now } else { now + self.ack_delay };
            self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        }
        true
    }

    /// Something else became worth telling at once: a symbol became decodable.
    pub(crate) fn on_news(&mut self, now: Instant) {
        if !self.received.is_empty() {
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    /// Whether an ACK must be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether there is something to acknowledge, so that a packet which leaves anyway should say it.
    pub(crate) fn has_news(&self) -> bool {
        self.pending > 0
    }

    /// When an ACK becomes due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Writes an ACK with what the decoder has to tell, and a PING if the ACK should be acknowledged itself. The largest number in it, if it
    /// fits; [`Self::on_ack_sent`] follows if the packet leaves.
    pub(crate) fn write(
        &self,
        now: Instant,
        path: PathId,
        report: DecoderReport,
        builder: &mut DatagramBuilder,
    ) -> Option<u64> {
        let frame = AckFrame {
            path,
            ranges: AckRanges::from_descending(self.ranges())?,
            delay: self.delay(now),
            oldest_undecoded: report.oldest_undecoded,
            oldest_unseen: report.oldest_unseen,
            known_end: report.known_end,
            intervals: report.intervals,
            reported_end: report.reported_end,
            ecn: self.ecn_counts(),
        };
        // A side that only receives would repeat its ranges for ever: now and then it asks for a confirmation.
        if self.wants_confirmation(now) {
            builder.write(&Frame::Ping);
        }
        builder.write_ack(&frame, ACK_SIZE_MAX).then(|| self.largest()).flatten()
    }

    /// An ACK of everything received leaves, in a packet that is `ack_eliciting` itself or not.
    pub(crate) fn on_ack_sent(&mut self, now: Instant, ack_eliciting: bool) {
        self.pending = 0;
        self.due = None;
        if ack_eliciting {
            self.last_confirmable = Some(now);
        }
    }

    /// The peer acknowledged a packet of ours that held an ACK up to `largest`: what lies at or below it need
    /// not be repeated (RFC 9000 section 13.2.4).
    pub(crate) fn on_ack_of_ack(&mut self, largest: u64) {
        self.received.forget_below(largest.saturating_add(1).min(self.received.largest().unwrap_or(0)));
    }

    /// Whether the next ACK should ask for an acknowledgement (a PING beside it): it is long, and no ACK that
    /// could be confirmed left for a round trip. Otherwise a side that only receives repeats its ranges for ever.
    pub(crate) fn wants_confirmation(&self, now: Instant) -> bool {
        self.received.range_count() >= RANGES_WORTH_A_PING
            && self.last_confirmable.is_none_or(|last| now - last >= self.round_trip)
    }

    /// How long the largest number has been waiting for its acknowledgement.
    pub(crate) fn delay(&self, now: Instant) -> Duration {
        now - self.largest_time
    }

    /// The largest number received.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.received.largest()
    }

    /// The numbers to acknowledge, as inclusive `(first, last)`, from the largest downwards.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.received.descending()
    }

    /// The ECN marks so far, if there was any.
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
