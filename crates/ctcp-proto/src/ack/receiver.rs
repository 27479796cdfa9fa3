//! When to acknowledge, and what an ACK must repeat (RFC 9000 section 13.2, PROTOCOL.md section 4.1).
//!
//! An ACK is due with every second packet that asks for one, after the acknowledgement delay, and at once when a
//! number is missing or a gap is filled: the sender's loss detection lives on it. A sender of bulk asks for fewer
//! ([`super::frequency`]). Profile `ctcp` acknowledges each packet, as the paper's receiver does.
//!
//! Requirement: C6

use core::time::Duration;

use ctcp_base::Instant;

use super::frequency::{AckFrequency, MAX_ACK_DELAY};
use super::ranges::{Inserted, ReceivedNumbers};
use crate::network::Ecn;
use crate::wire::EcnCounts;

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
    /// How often, by default or as the peer asked.
    frequency: AckFrequency,
    /// When the last packet came that asks for an ACK.
    last_arrival: Instant,
    /// The number of the peer's newest request.
    request: Option<u64>,
    every_packet: bool,
    ecn: EcnCounts,
    /// When an ACK was last sent in a packet that will be acknowledged itself.
    last_confirmable: Option<Instant>,
    round_trip: Duration,
}

impl AckScheduler {
    /// A scheduler by the default rule, or one that acknowledges `every_packet`.
    pub(crate) fn new(every_packet: bool) -> Self {
        Self {
            received: ReceivedNumbers::new(),
            largest_time: Instant::ZERO,
            pending: 0,
            due: None,
            frequency: AckFrequency { delay: MAX_ACK_DELAY, ..AckFrequency::default_of(Duration::ZERO) },
            last_arrival: Instant::ZERO,
            request: None,
            every_packet,
            ecn: EcnCounts::default(),
            last_confirmable: None,
            round_trip: crate::recovery::rtt::INITIAL_RTT,
        }
    }

    /// The round trip is known now: a delay beyond a quarter of it would be the sender's lull.
    pub(crate) fn set_round_trip(&mut self, smoothed: Duration) {
        self.round_trip = smoothed;
        if self.request.is_none() {
            self.frequency = AckFrequency::default_of(smoothed);
        }
    }

    /// The peer asks for ACKs so often; `sequence` numbers its requests.
    pub(crate) fn on_request(&mut self, sequence: u64, frequency: AckFrequency) {
        if self.request.is_none_or(|newest| sequence > newest) {
            self.request = Some(sequence);
            self.frequency = frequency;
        }
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
            let AckFrequency { packets, delay, gap_delay } = self.frequency;
            // RFC 9000 13.2.1: also a congestion mark is news that should not wait.
            let is_urgent = self.every_packet || ecn == Some(Ecn::Ce) || self.pending >= packets;
            self.be_due(match (is_urgent, is_out_of_order) {
                (true, _) => now,
                (false, true) => now + gap_delay,
                (false, false) => now + delay.min(self.patience(now)),
            });
            self.last_arrival = now;
        }
        true
    }

    /// How long a packet that arrives now may wait, whatever was asked: behind a silence it is a probe or the beginning of
    /// something, whose sender may wait for the answer.
    fn patience(&self, now: Instant) -> Duration {
        if now - self.last_arrival > self.frequency.delay { MAX_ACK_DELAY } else { Duration::MAX }
    }

    /// Something else became worth telling: a symbol became decodable. It waits no longer than news of a gap.
    pub(crate) fn on_news(&mut self, now: Instant) {
        if !self.received.is_empty() {
            self.be_due(now + self.frequency.gap_delay);
        }
    }

    /// The peer asks for an ACK at once.
    pub(crate) fn on_immediate(&mut self, now: Instant) {
        self.be_due(now);
    }

    fn be_due(&mut self, deadline: Instant) {
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    /// Whether an ACK must be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether there is enough to acknowledge for a packet that leaves anyway to say it.
    pub(crate) fn has_news(&self) -> bool {
        self.pending > 0 && self.pending >= self.frequency.packets / 2
    }

    /// When an ACK becomes due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// An ACK of everything in [`Self::ranges`] leaves, in a packet that is `ack_eliciting` itself or not.
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
