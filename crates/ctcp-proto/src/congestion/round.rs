//! Round trips by packet number: one ends when a packet sent after its beginning is acknowledged.

use super::Acked;
use crate::PacketNumber;

/// Detects the end of a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    ends_after: Option<PacketNumber>,
}

impl Round {
    /// Begins a round trip. It ends with the acknowledgement of a packet after `largest_sent`.
    pub fn begin(&mut self, largest_sent: PacketNumber) {
        self.ends_after = Some(largest_sent);
    }

    /// Whether `number` was sent after the beginning of this round trip.
    #[must_use]
    pub fn is_after(&self, number: PacketNumber) -> bool {
        self.ends_after.is_none_or(|last| number > last)
    }
}

/// Number of round trips without growth that indicate a full link.
const FLAT_ROUNDS: u32 = 3;

/// Minimum factor that counts as growth; slow start doubles.
const GROWTH: f64 = 1.25;

/// Detects that the delivery rate no longer grows though the window does: the link is full, even if no queue shows it (links with very
/// short queues, policers). This is the rule of BBR's start-up (draft-ietf-ccwg-bbr 4.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    round: Round,
    best: f64,
    flat_rounds: u32,
}

impl Plateau {
    /// Processes an acknowledgement. Returns whether the rate has not grown for three round trips.
    pub(super) fn on_ack(&mut self, acked: &Acked) -> bool {
        let Some(rate) = acked.delivery_rate else { return false };
        if !self.round.is_after(acked.number) {
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
