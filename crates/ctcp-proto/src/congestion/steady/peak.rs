//! Back-offs of others. An overflowing queue drops packets of flows that send in bursts and often spares a paced one. The queue then falls
//! though this flow did not send less. A flow that kept its window would take more than its share alongside the Reno and Cubic of a kernel.

use core::time::Duration;

use super::loss::BACK_OFF_OVERFLOW;
use super::{Acked, Steady};

/// A queue that is shorter than its peak by this fraction, and by this time, has not become so by chance.
const FALLEN: u32 = 8;
const FALLEN_MIN: Duration = Duration::from_millis(1);

/// Round trips after a back-off that may still show its effect.
const SETTLING: u32 = 2;

/// The longest queue since this flow last backed off, of the smallest sample of each round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    queue: Duration,
    rounds: u32,
}

impl Peak {
    /// A round trip with a queue of `queue` is over. Returns whether it has fallen from one of at least `full`.
    fn on_round(&mut self, queue: Duration, full: Duration) -> bool {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= SETTLING {
            return false;
        }
        self.queue = self.queue.max(queue);
        self.queue >= full && queue + (self.queue / FALLEN).max(FALLEN_MIN) < self.queue
    }
}

impl Steady {
    /// A round trip whose smallest sample was `lowest` is over while competing. Answers back-offs of others, unless noise would look like them.
    pub(super) fn on_compete_round(&mut self, acked: &Acked, lowest: Duration) {
        if self.is_recovering || self.yielding.is_some() || self.base.is_restless() {
            self.peak = Peak::default();
            return;
        }
        let queue = lowest.saturating_sub(acked.rtt.minimum_ever);
        let full = self.full_queue();
        if self.peak.on_round(queue, full) {
            self.back_off_once(acked.number, acked.largest_sent, BACK_OFF_OVERFLOW);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_millis(14);

    /// Whether the queue has fallen in one of the round trips with queues of these milliseconds.
    fn has_fallen(millis: &[u64]) -> bool {
        let mut peak = Peak::default();
        millis.iter().any(|&queue| peak.on_round(Duration::from_millis(queue), FULL))
    }

    #[test]
    fn a_full_queue_that_falls_is_a_back_off_of_another_flow() {
        assert!(has_fallen(&[0, 0, 16, 18, 15]));
        assert!(!has_fallen(&[0, 0, 16, 18, 17]), "less than an eighth");
        assert!(!has_fallen(&[0, 0, 10, 13, 8]), "it was never full");
        assert!(!has_fallen(&[19, 18, 15]), "the effect of the own back-off");
        assert!(!has_fallen(&[18, 15, 12, 14, 16]), "it is filling again");
        let is_short = Duration::from_millis(1);
        let mut peak = Peak::default();
        let micros = [0, 0, 1_800, 1_200].map(Duration::from_micros);
        assert!(!micros.into_iter().any(|queue| peak.on_round(queue, is_short)), "within a packet's time");
    }
}
