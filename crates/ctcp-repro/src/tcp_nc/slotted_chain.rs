//! The chain of TCP/NC, section VI-B, in slotted time: how many packets each node has seen, and what it knows about the
//! sink.
//!
//! A slot has these steps:
//! 1. A packet arrives at the source with probability lambda. The source may send it in the same slot.
//! 2. Every node sends over its channel, which is on with probability mu, based on its state before the slot. If the
//!    channel is on and the node has seen more than the next one, the next one sees one more. The next one also learns
//!    which packet the sink requests, as this node knew it before the slot.
//! 3. The source learns what the sink has seen.
//!
//! A node's queue holds the packets that it has seen and that, as far as the node knows, the sink has not. Every
//! combination that can be innovative is innovative (Lemma 1 with a large field), so the state of a node is a number.
//! [`CodedChain`](super::coded_chain::CodedChain) does not make this assumption.

use ctcp_base::Prng;

use crate::theory::queues::Chain;

/// Draws the arrivals and channel states of slots, always in the same order, so that two chains can have the same
/// random events.
#[derive(Clone, Debug)]
pub(super) struct Luck {
    prng: Prng,
    arrivals: u64,
    channels: Vec<u64>,
}

impl Luck {
    pub(super) fn new(chain: &Chain, prng: Prng) -> Self {
        // A number below 2^64 is below p 2^64 with probability p.
        let threshold = |p: f64| (p * 2_f64.powi(64)) as u64;
        let channels = chain.channels.iter().map(|&mu| threshold(mu)).collect();
        Self { prng, arrivals: threshold(chain.arrivals), channels }
    }

    pub(super) fn has_arrival(&mut self) -> bool {
        self.prng.next_u64() < self.arrivals
    }

    pub(super) fn is_on(&mut self, channel: usize) -> bool {
        self.prng.next_u64() < self.channels[channel]
    }
}

/// A chain of nodes with queues, and a sink.
#[derive(Clone, Debug)]
pub(super) struct SlottedChain {
    luck: Luck,
    /// Packets seen by each node; the last node is the sink.
    seen: Vec<u64>,
    /// Packets seen by the sink, as known by each node with a queue.
    known: Vec<u64>,
}

impl SlottedChain {
    pub(super) fn new(chain: &Chain, prng: Prng) -> Self {
        let nodes = chain.channels.len();
        Self { luck: Luck::new(chain, prng), seen: vec![0; nodes + 1], known: vec![0; nodes] }
    }

    pub(super) fn run_slot(&mut self) {
        let nodes = self.known.len();
        self.seen[0] += u64::from(self.luck.has_arrival());
        // From the sink backwards, so that a node sends in its state before the slot.
        for node in (0..nodes).rev() {
            if !self.luck.is_on(node) {
                continue;
            }
            self.seen[node + 1] += u64::from(self.seen[node] > self.seen[node + 1]);
            if node + 1 < nodes {
                self.known[node + 1] = self.known[node];
            }
        }
        self.known[0] = self.seen[nodes];
    }

    /// Returns the packets in each node's queue.
    pub(super) fn queues(&self) -> impl Iterator<Item = u64> {
        self.seen.iter().zip(&self.known).map(|(seen, known)| seen - known)
    }

    /// Returns the mean queues over `slots` slots, after a tenth of them to settle.
    pub(super) fn mean_queues(mut self, slots: u64) -> Vec<f64> {
        let mut sums = vec![0; self.known.len()];
        (0..slots / 10).for_each(|_| self.run_slot());
        for _ in 0..slots {
            self.run_slot();
            sums.iter_mut().zip(self.queues()).for_each(|(sum, queue)| *sum += queue);
        }
        sums.into_iter().map(|sum| sum as f64 / slots as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(arrivals: f64, channels: &[f64]) -> Chain {
        Chain { arrivals, channels: channels.to_vec() }
    }

    #[test]
    fn over_perfect_channels_packets_and_feedback_take_one_slot_per_hop() {
        // mu = 1 and lambda = 1, up to the precision of 64 bits.
        let mut always = SlottedChain::new(&chain(1.0, &[1.0, 1.0, 1.0]), Prng::new(1));
        (0..10).for_each(|_| always.run_slot());
        // One arrival per slot: the source sends it at once, node 1 a slot later, node 2 another slot later.
        assert_eq!(always.seen, [10, 10, 9, 8]);
        // The source knows at once, each other node a slot after the one before it.
        assert_eq!(always.known, [8, 7, 6]);
    }

    // Requirement: N6
    #[test]
    fn a_million_slots_agree_with_the_corrected_theorem_and_not_with_the_printed_one() {
        let chain = chain(0.48, &[0.8, 0.6, 0.7]);
        let found = SlottedChain::new(&chain, Prng::new(1)).mean_queues(1_000_000);
        for (node, found) in found.into_iter().enumerate() {
            let error = |formula: f64| (formula / found - 1.0).abs();
            assert!(error(chain.queue(node)) < 0.03, "node {node}: {found} and {}", chain.queue(node));
            assert!(error(chain.queue_printed(node)) > 0.1, "node {node}: {found}");
        }
    }
}
