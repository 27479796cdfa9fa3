//! Back-offs of others. An overflowing queue drops the packets of flows that send in bursts and often spares a paced one. The queue then falls
//! though this flow did not send less. If it went on, it would take more than its share beside the Reno and Cubic of a kernel.

use core::time::Duration;

use super::loss::{BACK_OFF_OVERFLOW, OVERFLOW_AT};
use super::{Acked, Steady};

/// A queue that is shorter than its peak by this fraction has not become so by chance.
const FALLEN: u32 = 8;

/// Round trips after a back-off that may still show its effect.
const SETTLING: u32 = 2;

/// The longest queue since this flow last backed off, by round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    queue: Duration,
    rounds: u32,
}

impl Peak {
    /// A round trip with a queue of `queue` is over. Returns whether the queue has fallen from one longer than `full`.
    fn on_round(&mut self, queue: Duration, full: Duration) -> bool {
        self.rounds += 1;
        if self.rounds <= SETTLING {
            return false;
        }
        self.queue = self.queue.max(queue);
        self.queue >= full && queue < self.queue - self.queue / FALLEN
    }
}

impl Steady {
    /// A round trip with a queue of `queue` is over while competing: answers back-offs of others, unless noise would look like them.
    pub(super) fn on_compete_round(&mut self, acked: &Acked, queue: Duration) {
        if self.is_recovering || self.yielding.is_some() || self.base.is_restless() {
            self.peak = Peak::default();
            return;
        }
        let full = self.highest_queue.mul_f64(OVERFLOW_AT);
        if self.peak.on_round(queue, full) {
            self.back_off_once(acked.number, acked.largest_sent, BACK_OFF_OVERFLOW);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_millis(14);

    /// Whether the queue has fallen in the last of round trips with queues of these milliseconds.
    fn has_fallen(millis: &[u64]) -> bool {
        let mut peak = Peak::default();
        millis.iter().fold(false, |_, &queue| peak.on_round(Duration::from_millis(queue), FULL))
    }

    #[test]
    fn a_full_queue_that_falls_is_a_back_off_of_another_flow() {
        assert!(has_fallen(&[0, 0, 16, 18, 15]));
        assert!(!has_fallen(&[0, 0, 16, 18, 17]), "less than an eighth");
        assert!(!has_fallen(&[0, 0, 10, 13, 8]), "it was never full");
        assert!(!has_fallen(&[18, 15]), "the effect of the own back-off");
        assert!(!has_fallen(&[18, 15, 12, 14, 16]), "it is filling again");
    }
}
