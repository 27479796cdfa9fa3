//! The drop-tail queue in front of the transmitter.
//!
//! It keeps only the accounts. The packets themselves are already in the delay line with a known departure, because in
//! a first-in first-out queue with a given rate every departure is determined on arrival.

use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::{Instant, Rate};

/// A full Ethernet packet, including headers: the unit for converting bandwidth-delay products to packets, as in the
/// experiments of the papers.
pub const FULL_PACKET_BYTES: u64 = 1_500;

/// The smallest queue for a bandwidth-delay product: one packet in transmission and one behind it, without which the
/// link could not be kept busy.
const MIN_QUEUE_PACKETS: u64 = 2;

/// The capacity of a queue, including the packet in transmission. An empty queue accepts any packet, regardless of the
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// As much as the memory limit of the model allows ([`MAX_HELD_PACKETS`](crate::MAX_HELD_PACKETS)).
    #[default]
    Unlimited,
    /// A number of packets.
    Packets(u64),
    /// A number of bytes, including each packet's overhead.
    Bytes(u64),
}

impl QueueLimit {
    /// Returns `count` times `rate` x `rtt` in full packets, rounded up and at least two. Without a rate limit no
    /// packet ever waits, and the result is [`QueueLimit::Unlimited`].
    #[must_use]
    pub fn bandwidth_delay_products(count: f64, rate: Rate, rtt: Duration) -> Self {
        if rate.as_bits_per_second() == 0 {
            return Self::Unlimited;
        }
        let packets = count * rate.as_bits_per_second() as f64 * rtt.as_secs_f64() / 8.0;
        Self::Packets(((packets / FULL_PACKET_BYTES as f64).ceil() as u64).max(MIN_QUEUE_PACKETS))
    }

    /// Returns whether this many packets and bytes are within the limit.
    pub(crate) fn holds(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets <= limit,
            Self::Bytes(limit) => bytes <= limit,
        }
    }

    /// Returns the limit raised to at least `packets`, if it counts packets.
    #[must_use]
    pub fn at_least(self, packets: u64) -> Self {
        match self {
            Self::Packets(limit) => Self::Packets(limit.max(packets)),
            other => other,
        }
    }
}

/// A packet that has not yet left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// When its last bit is transmitted.
    pub(crate) departure: Instant,
    /// Bytes charged for the packet, including overhead.
    pub(crate) bytes: u64,
    /// Whether the packet is lost after transmission. It still takes its time on the link.
    pub(crate) is_lost: bool,
}

/// The packets not yet transmitted, in the order of departure.
#[derive(Clone, Debug)]
pub(crate) struct DropTailQueue {
    limit: QueueLimit,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    max_packets: u64,
    max_bytes: u64,
}

impl DropTailQueue {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: 0, max_packets: 0, max_bytes: 0 }
    }

    /// Sets a new limit for future packets. Packets already queued stay.
    pub(crate) fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    /// Removes the packets that have left by `now`.
    pub(crate) fn on_time(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front().filter(|first| first.departure <= now) {
            self.bytes -= first.bytes;
            self.waiting.pop_front();
        }
    }

    /// Returns the number of packets that have not left by `now`.
    pub(crate) fn packets_at(&self, now: Instant) -> u64 {
        let left = self.waiting.partition_point(|waiting| waiting.departure <= now);
        (self.waiting.len() - left) as u64
    }

    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.waiting.is_empty()
            || self.limit.holds(self.waiting.len() as u64 + 1, self.bytes.saturating_add(bytes))
    }

    pub(crate) fn push(&mut self, packet: Waiting) {
        self.bytes += packet.bytes;
        self.waiting.push_back(packet);
        self.max_packets = self.max_packets.max(self.waiting.len() as u64);
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    /// Returns all queued packets in the order of departure, for a change of the rate.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.waiting.iter_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    pub(crate) fn max_packets(&self) -> u64 {
        self.max_packets
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_delay_product_is_counted_in_full_packets() {
        let rate = Rate::from_megabits_per_second(25);
        let rtt = Duration::from_millis(20);
        // 62,500 bytes are 41.7 packets.
        assert_eq!(QueueLimit::bandwidth_delay_products(1.0, rate, rtt), QueueLimit::Packets(42));
        assert_eq!(QueueLimit::bandwidth_delay_products(0.25, rate, rtt), QueueLimit::Packets(11));
        assert_eq!(QueueLimit::bandwidth_delay_products(0.0, rate, rtt), QueueLimit::Packets(2));
        assert_eq!(QueueLimit::bandwidth_delay_products(1.0, Rate::default(), rtt), QueueLimit::Unlimited);
    }

    #[test]
    fn room_is_counted_in_the_unit_of_the_limit() {
        let packet = Waiting { departure: Instant::from_millis(1), bytes: 1_000, is_lost: false };
        let mut by_packets = DropTailQueue::new(QueueLimit::Packets(2));
        let mut by_bytes = DropTailQueue::new(QueueLimit::Bytes(1_999));
        for queue in [&mut by_packets, &mut by_bytes] {
            assert!(queue.has_room(5_000), "an empty queue takes any packet");
            queue.push(packet);
        }
        assert!(by_packets.has_room(1_000));
        assert!(by_bytes.has_room(999) && !by_bytes.has_room(1_000));
        by_packets.push(packet);
        assert!(!by_packets.has_room(1));
        by_packets.on_time(Instant::from_millis(1));
        assert!(by_packets.has_room(1_000));
        assert_eq!((by_packets.max_packets(), by_packets.max_bytes()), (2, 2_000));
    }
}
