//! Per-flow queues served in turn, with CoDel in each (RFC 8290).
//!
//! ```text
//!            hash of the flow
//!   packet ------------------> [ queue 17 ] --+
//!                              [ queue 80 ] --+--> new flows first, then old ones, each up to its credit --> CoDel --> packet
//!                              [   ...    ] --+
//! ```
//!
//! A new flow stays new until it has used up its first credit or its queue is empty, so that sparse flows overtake the
//! others. Unlike the other queues, this one makes its decisions when a packet departs, and holds the packets itself.

use std::collections::VecDeque;

use ctcp_base::{Instant, mix};

use crate::codel::{Codel, PACKET_MAX};
use crate::{CodelConfig, LinkStats, Packet, QueueLimit};

/// Number of queues, the default of RFC 8290 section 5.2.5. Flows with the same hash share one.
const QUEUES: u64 = 1_024;

/// Bytes that a flow may send per turn: one maximum packet (RFC 8290 section 5.2.4).
const QUANTUM: i64 = PACKET_MAX as i64;

/// All queues of one link.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<P> {
    config: CodelConfig,
    queues: Vec<FlowQueue<P>>,
    /// Numbers of the queues to serve. New flows come first.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
    /// Payload bytes without overhead, for the memory limit.
    payload: usize,
    max_packets: usize,
    max_bytes: u64,
}

/// The packets of one flow.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// Bytes that the flow may still send in its turn.
    credit: i64,
    /// Whether the queue is in one of the two lists.
    is_listed: bool,
    codel: Codel,
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) packet: P,
    /// Bytes charged for the packet, including overhead.
    pub(crate) bytes: u64,
    pub(crate) arrival: Instant,
}

impl<P: Packet> FlowQueues<P> {
    pub(crate) fn new(config: CodelConfig) -> Self {
        let queue = || FlowQueue {
            waiting: VecDeque::new(),
            bytes: 0,
            credit: 0,
            is_listed: false,
            codel: Codel::default(),
        };
        Self {
            config,
            queues: (0..QUEUES).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            payload: 0,
            max_packets: 0,
            max_bytes: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the number of queued packets and their bytes without overhead.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.packets, self.payload)
    }

    /// Returns the maximum number of packets and bytes ever queued.
    pub(crate) fn max(&self) -> (usize, u64) {
        (self.max_packets, self.max_bytes)
    }

    /// Appends a packet to the queue of its flow (RFC 8290 section 4.1), then drops packets until `limit` holds.
    pub(crate) fn push(&mut self, waiting: Waiting<P>, limit: QueueLimit, stats: &mut LinkStats) {
        let number = (mix(waiting.packet.flow()) % QUEUES) as usize;
        self.packets += 1;
        self.bytes += waiting.bytes;
        self.payload += waiting.packet.as_ref().len();
        let queue = &mut self.queues[number];
        queue.bytes += waiting.bytes;
        queue.waiting.push_back(waiting);
        if !queue.is_listed {
            queue.is_listed = true;
            queue.credit = QUANTUM;
            self.new.push_back(number);
        }
        while self.packets > 1 && !limit.holds(self.packets as u64, self.bytes) {
            self.drop_from_longest();
            stats.dropped += 1;
        }
        self.max_packets = self.max_packets.max(self.packets);
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    /// Returns the packet whose turn it is at `now` (RFC 8290 section 4.2).
    pub(crate) fn pop(&mut self, now: Instant, stats: &mut LinkStats) -> Option<Waiting<P>> {
        loop {
            let (number, is_new) = match (self.new.front(), self.old.front()) {
                (Some(&number), _) => (number, true),
                (None, Some(&number)) => (number, false),
                (None, None) => return None,
            };
            if self.queues[number].credit <= 0 {
                self.queues[number].credit += QUANTUM;
                self.unlist_front(is_new);
                self.old.push_back(number);
                continue;
            }
            if let Some(waiting) = self.pop_of(number, now, stats) {
                let bytes = i64::try_from(waiting.bytes).unwrap_or(i64::MAX);
                let credit = &mut self.queues[number].credit;
                *credit = credit.saturating_sub(bytes);
                return Some(waiting);
            }
            self.unlist_front(is_new);
            // A new flow becomes an old one first. Otherwise it could stay new by sending packet after packet.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                self.queues[number].is_listed = false;
            }
        }
    }

    /// Returns any queued packet, regardless of turns and CoDel, to empty the queues.
    pub(crate) fn pop_unmanaged(&mut self) -> Option<Waiting<P>> {
        loop {
            let &number = self.new.front().or(self.old.front())?;
            if let Some(waiting) = self.take_oldest(number) {
                return Some(waiting);
            }
            let is_new = !self.new.is_empty();
            self.unlist_front(is_new);
        }
    }

    /// Returns the first packet of a queue that CoDel does not drop.
    fn pop_of(&mut self, number: usize, now: Instant, stats: &mut LinkStats) -> Option<Waiting<P>> {
        loop {
            let Some(mut waiting) = self.take_oldest(number) else {
                self.queues[number].codel.on_empty();
                return None;
            };
            let queue = &mut self.queues[number];
            let wait = now - waiting.arrival;
            if !queue.codel.on_departure(now, wait, queue.bytes, &self.config) {
                return Some(waiting);
            }
            if waiting.packet.is_ecn_capable() {
                waiting.packet.set_congestion_experienced();
                stats.marked += 1;
                return Some(waiting);
            }
            stats.dropped += 1;
        }
    }

    fn take_oldest(&mut self, number: usize) -> Option<Waiting<P>> {
        let queue = &mut self.queues[number];
        let waiting = queue.waiting.pop_front()?;
        queue.bytes -= waiting.bytes;
        self.packets -= 1;
        self.bytes -= waiting.bytes;
        self.payload -= waiting.packet.as_ref().len();
        Some(waiting)
    }

    fn unlist_front(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }

    fn drop_from_longest(&mut self) {
        let listed = self.new.iter().chain(&self.old);
        if let Some(&longest) = listed.max_by_key(|&&number| self.queues[number].bytes) {
            self.take_oldest(longest);
        }
    }
}

#[cfg(test)]
mod tests;
