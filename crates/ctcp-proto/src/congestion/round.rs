//! Round trips by packet number: one is over when a packet sent after its beginning is acknowledged.

use super::Acked;
use crate::PacketNumber;

/// Says when a round trip is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    ends_behind: Option<PacketNumber>,
}

impl Round {
    /// Begins a round trip: it ends with the acknowledgement of a packet behind `largest_sent`.
    pub fn begin(&mut self, largest_sent: PacketNumber) {
        self.ends_behind = Some(largest_sent);
    }

    /// Whether `number` was sent behind the beginning of this round trip.
    #[must_use]
    pub fn is_behind(&self, number: PacketNumber) -> bool {
        self.ends_behind.is_none_or(|last| number > last)
    }
}

/// How many round trips without growth mean a full link.
const FLAT_ROUNDS: u32 = 3;

/// Growth by less than a quarter is none: slow start doubles.
const GROWTH: f64 = 1.25;

/// Notices that the delivery rate stopped growing though the window did not: the link is full, whether a queue
/// tells so or not (links with a very short queue, policers). Rule of BBR's start-up (draft-ietf-ccwg-bbr 4.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    round: Round,
    best: f64,
    flat_rounds: u32,
}

impl Plateau {
    /// Counts an acknowledgement. Returns whether the rate has stood still for three round trips.
    pub(super) fn on_ack(&mut self, acked: &Acked) -> bool {
        let Some(rate) = acked.delivery_rate else { return false };
        if !self.round.is_behind(acked.number) {
            return false;
        }
        self.round.begin(acked.largest_sent);
        if rate > self.best * GROWTH {
            self.best = rate;
            self.flat_rounds = 0;
        } else if !acked.is_app_limited {
            self.flat_rounds += 1;
        }
        self.flat_rounds >= FLAT_ROUNDS
    }
}
