//! The delay line: packets in transit, in the order of their delivery.

use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::Instant;

/// The maximum number of packets that a link holds, queued and in transit, independent of its queue limit. 1 Gbit/s
/// over a geostationary hop of 300 ms is 25,000 full packets, and as many again may be queued.
pub const MAX_HELD_PACKETS: usize = 65_536;

/// The maximum payload bytes that a link holds: [`MAX_HELD_PACKETS`] of about 2 KiB.
pub const MAX_HELD_BYTES: usize = 128 * 1024 * 1024;

/// A packet with its schedule.
#[derive(Clone, Debug)]
pub(crate) struct Flying<P> {
    /// When its last bit leaves the transmitter.
    pub(crate) departure: Instant,
    /// The time from departure to delivery, including jitter but not the time held back.
    pub(crate) propagation: Duration,
    /// How long the packet is held back so that others overtake it.
    pub(crate) held_back: Duration,
    /// The packet itself.
    pub(crate) packet: P,
}

#[derive(Clone, Debug)]
struct Entry<P> {
    due: Instant,
    /// Sequence number in the order in which packets were pushed.
    order: u64,
    flying: Flying<P>,
}

/// A packet that leaves a [`DelayLine`].
pub(crate) struct Delivery<P> {
    pub(crate) packet: P,
    /// Whether a packet that was pushed later has already been delivered.
    pub(crate) was_overtaken: bool,
}

/// Packets sorted by delivery time, and by arrival order for equal times.
///
/// Unless it is held back, no packet is delivered before one that was pushed earlier.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine<P> {
    entries: VecDeque<Entry<P>>,
    bytes: usize,
    pushed: u64,
    /// No packet may be delivered before this instant, or it would overtake another one.
    not_before: Instant,
    latest_delivered: Option<u64>,
}

impl<P: AsRef<[u8]>> DelayLine<P> {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            pushed: 0,
            not_before: Instant::ZERO,
            latest_delivered: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the memory limits of the model allow one more packet of `bytes`, with the given numbers of
    /// packets and bytes held elsewhere.
    pub(crate) fn has_room(
        &self,
        bytes: usize,
        (packets_elsewhere, bytes_elsewhere): (usize, usize),
    ) -> bool {
        self.entries.len() + packets_elsewhere < MAX_HELD_PACKETS
            && self.bytes.saturating_add(bytes_elsewhere).saturating_add(bytes) <= MAX_HELD_BYTES
    }

    pub(crate) fn push(&mut self, flying: Flying<P>) {
        self.bytes += flying.packet.as_ref().len();
        self.pushed += 1;
        self.insert(self.pushed, flying);
    }

    fn insert(&mut self, order: u64, flying: Flying<P>) {
        self.not_before = self.not_before.max(flying.departure + flying.propagation);
        let due = self.not_before + flying.held_back;
        let entry = Entry { due, order, flying };
        // In nearly all cases the position is the end, and nothing has to be searched or moved.
        if self.entries.back().is_none_or(|last| (last.due, last.order) < (due, order)) {
            self.entries.push_back(entry);
            return;
        }
        let place = self.entries.partition_point(|other| (other.due, other.order) < (due, order));
        self.entries.insert(place, entry);
    }

    pub(crate) fn next_delivery(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.due)
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<Delivery<P>> {
        if self.next_delivery()? > now {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.flying.packet.as_ref().len();
        let was_overtaken = self.latest_delivered.is_some_and(|latest| latest > entry.order);
        self.latest_delivered = self.latest_delivered.max(Some(entry.order));
        Some(Delivery { packet: entry.flying.packet, was_overtaken })
    }

    /// Changes the departures of the packets that have not left by `now`. `departures` are the new instants, in the
    /// order in which the packets were pushed.
    pub(crate) fn reschedule(&mut self, now: Instant, departures: impl Iterator<Item = Instant>) {
        let (mut waiting, left): (Vec<_>, Vec<_>) =
            self.entries.drain(..).partition(|entry| entry.flying.departure > now);
        waiting.sort_by_key(|entry| entry.order);
        self.not_before = left
            .iter()
            .map(|entry| entry.due.saturating_back(entry.flying.held_back))
            .fold(now, Instant::max);
        self.entries = left.into();
        for (mut entry, departure) in waiting.into_iter().zip(departures) {
            entry.flying.departure = departure;
            self.insert(entry.order, entry.flying);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flying(name: u8, departure: u64, propagation: u64, held_back: u64) -> Flying<Vec<u8>> {
        Flying {
            departure: Instant::from_millis(departure),
            propagation: Duration::from_millis(propagation),
            held_back: Duration::from_millis(held_back),
            packet: vec![name],
        }
    }

    fn drain(line: &mut DelayLine<Vec<u8>>) -> Vec<(u64, u8, bool)> {
        let mut deliveries = Vec::new();
        while let Some(due) = line.next_delivery() {
            let delivery = line.poll(due).expect("a packet is due");
            deliveries.push((due.as_nanos() / 1_000_000, delivery.packet[0], delivery.was_overtaken));
        }
        deliveries
    }

    #[test]
    fn a_packet_with_less_delay_does_not_overtake() {
        let mut line = DelayLine::new();
        line.push(flying(1, 0, 10, 0));
        line.push(flying(2, 1, 2, 0));
        line.push(flying(3, 2, 20, 0));
        assert_eq!(drain(&mut line), [(10, 1, false), (10, 2, false), (22, 3, false)]);
    }

    #[test]
    fn a_packet_held_back_is_overtaken_and_delays_no_other_packet() {
        let mut line = DelayLine::new();
        line.push(flying(1, 0, 10, 5));
        line.push(flying(2, 1, 10, 0));
        line.push(flying(3, 2, 10, 0));
        line.push(flying(4, 9, 10, 0));
        assert_eq!(drain(&mut line), [(11, 2, false), (12, 3, false), (15, 1, true), (19, 4, false)]);
    }

    #[test]
    fn new_departures_apply_only_to_packets_that_have_not_left() {
        let mut line = DelayLine::new();
        for (name, departure) in [(1, 1), (2, 2), (3, 3)] {
            line.push(flying(name, departure, 10, 0));
        }
        let slower = [4, 7].into_iter().map(Instant::from_millis);
        line.reschedule(Instant::from_millis(1), slower);
        assert_eq!(drain(&mut line), [(11, 1, false), (14, 2, false), (17, 3, false)]);
    }

    #[test]
    fn new_departures_keep_the_order_of_arrival_and_the_packets_held_back() {
        let mut line = DelayLine::new();
        for (name, held_back) in [(1, 30), (2, 20), (3, 0), (4, 0)] {
            line.push(flying(name, u64::from(name), 10, held_back));
        }
        let later = [5, 6, 7].into_iter().map(Instant::from_millis);
        line.reschedule(Instant::from_millis(1), later);
        assert_eq!(drain(&mut line), [(16, 3, false), (17, 4, false), (35, 2, true), (41, 1, true)]);
    }

    #[test]
    fn memory_is_bounded_in_packets_and_in_bytes() {
        let mut line = DelayLine::new();
        assert!(line.has_room(MAX_HELD_BYTES, (0, 0)) && !line.has_room(MAX_HELD_BYTES + 1, (0, 0)));
        assert!(!line.has_room(1, (MAX_HELD_PACKETS, 0)) && !line.has_room(1, (1, MAX_HELD_BYTES)));
        for _ in 0..MAX_HELD_PACKETS {
            line.push(flying(0, 0, 10, 0));
        }
        assert!(!line.has_room(0, (0, 0)));
        line.poll(Instant::from_millis(10));
        assert!(line.has_room(1, (0, 0)));
    }
}
