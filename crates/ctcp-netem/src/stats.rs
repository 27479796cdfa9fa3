//! The statistics of a link.

use core::time::Duration;

/// The counters of one direction. Every packet is counted in exactly one place:
/// `offered + duplicated = lost + dropped + overflowed + delivered + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets offered to the link.
    pub offered: u64,
    /// Payload bytes offered to the link.
    pub bytes_offered: u64,
    /// Packets lost by the loss model, before or after the queue, or because the link was down.
    pub lost: u64,
    /// The packets in `lost` that were offered while the link was down.
    pub lost_while_down: u64,
    /// Packets dropped by the policer, by a full queue, or by the queue's [`Discipline`](crate::Discipline).
    pub dropped: u64,
    /// The packets in `dropped` that exceeded the policer's rate.
    pub policed: u64,
    /// Packets marked "congestion experienced" by the queue.
    pub marked: u64,
    /// Packets dropped by the memory limit of the model. If this is not zero, the other figures reflect that limit and
    /// not the link.
    pub overflowed: u64,
    /// Extra copies created.
    pub duplicated: u64,
    /// Packets or copies of which a byte was changed.
    pub corrupted: u64,
    /// Packets delivered, including copies.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes_delivered: u64,
    /// Packets delivered after one that entered the queue later.
    pub reordered: u64,
    /// Packets queued, being transmitted or in transit now.
    pub held: u64,
    /// The maximum number of packets in the queue so far.
    pub queue_max_packets: u64,
    /// The maximum number of bytes in the queue so far, including overhead.
    pub queue_max_bytes: u64,
    /// The total waiting time of all packets in `transmitted`: from their arrival to the beginning of their
    /// transmission, at the rate at the time of their arrival.
    pub waited: Duration,
    /// The number of packets transmitted.
    pub transmitted: u64,
}

impl LinkStats {
    /// Returns the mean waiting time of a packet, or zero if none was transmitted.
    #[must_use]
    pub fn mean_wait(&self) -> Duration {
        let seconds = self.waited.as_secs_f64() / self.transmitted.max(1) as f64;
        Duration::from_secs_f64(seconds)
    }
}
