//! What happened on a link so far.

use core::time::Duration;

/// Counters of one direction. Every packet is in exactly one place:
/// `offered + duplicated = lost + dropped + overflowed + delivered + held`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets handed to the link.
    pub offered: u64,
    /// Payload bytes handed to the link: what the sender spent.
    pub bytes_offered: u64,
    /// Packets lost, by the loss model before or behind the queue, or because the link was down.
    pub lost: u64,
    /// Those of `lost` that were offered while the link was down.
    pub lost_while_down: u64,
    /// Packets dropped by the policer, because the queue was full, or by its [`Discipline`](crate::Discipline).
    pub dropped: u64,
    /// Those of `dropped` that exceeded the policer's rate.
    pub policed: u64,
    /// Packets that got the mark "congestion experienced" from the queue.
    pub marked: u64,
    /// Packets dropped by the model's own memory limit. Not zero means that the figures describe the
    /// limit and not the link.
    pub overflowed: u64,
    /// Extra copies made.
    pub duplicated: u64,
    /// Packets, or copies, that had a byte changed.
    pub corrupted: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes_delivered: u64,
    /// Packets delivered after one that entered the queue later.
    pub reordered: u64,
    /// Packets waiting, being transmitted or under way now.
    pub held: u64,
    /// The most packets that the queue ever held.
    pub queue_max_packets: u64,
    /// The most bytes, overhead included, that the queue ever held.
    pub queue_max_bytes: u64,
    /// The time that the packets which the queue let through have waited, all together: from their arrival to the
    /// beginning of their transmission, at the rate of the time of their arrival.
    pub waited: Duration,
    /// How many packets that are.
    pub transmitted: u64,
}

impl LinkStats {
    /// How long a packet waited on average; zero when none was transmitted.
    #[must_use]
    pub fn mean_wait(&self) -> Duration {
        let seconds = self.waited.as_secs_f64() / self.transmitted.max(1) as f64;
        Duration::from_secs_f64(seconds)
    }
}
