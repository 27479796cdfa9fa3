//! The chain of TCP/NC, section VI-B, with coefficients: nodes keep witnesses and combine them at random over GF(256).
//!
//! It uses the same slots as [`SlottedChain`](super::slotted_chain::SlottedChain) with the same random numbers, but
//! makes no assumption about receptions: elimination determines what a node has seen. A combination that is not
//! innovative has the same effect as a channel that is off. This happens once in 256 if the next node lacks a single
//! packet of the sender's, and far less often if it lacks more. The queues therefore lie between those of counting with
//! mu and with mu (1 - 1/256).

use ctcp_base::Prng;
use ctcp_coding::{Recoder, RecoderConfig, SymbolRange};

use super::slotted_chain::Luck;
use crate::theory::queues::Chain;

/// The maximum number of packets from the oldest kept to the newest, far more than the loads used here need.
const WINDOW: u16 = 4095;

/// Nodes that keep rows: the source, relays and the sink.
pub(super) struct CodedChain {
    luck: Luck,
    coefficients: Prng,
    /// The source keeps its packets uncoded.
    nodes: Vec<Recoder>,
    arrived: u64,
    /// The oldest packet that the sink has not seen.
    oldest_unseen: u64,
    /// The same, as known by each node. The sink also keeps its rows from there on, since combinations still begin
    /// there.
    known: Vec<u64>,
}

impl CodedChain {
    pub(super) fn new(chain: &Chain, prng: Prng) -> Self {
        let nodes = chain.channels.len() + 1;
        let node = || Recoder::new(RecoderConfig { symbol_size_max: 1, window: WINDOW });
        let coefficients = prng.fork("coefficients");
        Self {
            luck: Luck::new(chain, prng),
            coefficients,
            nodes: (0..nodes).map(|_| node()).collect(),
            arrived: 0,
            oldest_unseen: 0,
            known: vec![0; nodes],
        }
    }

    pub(super) fn run_slot(&mut self) {
        if self.luck.has_arrival() {
            self.nodes[0].handle_source(self.arrived, &[]).expect("within the window");
            self.arrived += 1;
        }
        let sink = self.nodes.len() - 1;
        for node in (0..sink).rev() {
            if !self.luck.is_on(node) {
                continue;
            }
            self.send(node);
            self.know(node + 1, self.known[node]);
        }
        while self.nodes[sink].is_seen(self.oldest_unseen) {
            self.oldest_unseen += 1;
        }
        self.know(0, self.oldest_unseen);
    }

    /// Sends a uniform combination of all witnesses of `node` to the next node.
    fn send(&mut self, node: usize) {
        let Some(span) = self.nodes[node].span() else { return };
        let mut weights = vec![0; self.nodes[node].rank()];
        self.coefficients.fill(&mut weights);
        let (mut coefficients, mut payload) = (Vec::new(), Vec::new());
        // All weights may be zero.
        let made = self.nodes[node].combine(span, &weights, &mut coefficients, &mut payload);
        let Ok(range): Result<SymbolRange, _> = made else { return };
        self.nodes[node + 1].handle_combination(range, &coefficients, &payload).expect("within the window");
    }

    /// Records the oldest packet that the sink has not seen, as known by a node, and drops witnesses of older packets.
    fn know(&mut self, node: usize, oldest_unseen: u64) {
        self.known[node] = oldest_unseen;
        self.nodes[node].release_before(oldest_unseen);
    }

    /// Returns the mean queues over `slots` slots, after a tenth of them to settle.
    pub(super) fn mean_queues(mut self, slots: u64) -> Vec<f64> {
        let queues = self.nodes.len() - 1;
        let mut sums = vec![0; queues];
        (0..slots / 10).for_each(|_| self.run_slot());
        for _ in 0..slots {
            self.run_slot();
            sums.iter_mut().zip(&self.nodes).for_each(|(sum, node)| *sum += node.rank() as u64);
        }
        sums.into_iter().map(|sum| sum as f64 / slots as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_nc::slotted_chain::SlottedChain;

    // Requirement: N6
    #[test]
    fn counting_differs_from_coding_by_at_most_one_combination_in_256() {
        const SLOTS: u64 = 20_000;
        let chain = Chain { arrivals: 0.42, channels: vec![0.7, 0.6, 0.8] };
        let weaker = chain.channels.iter().map(|mu| mu * (1.0 - 1.0 / 256.0)).collect();
        let weaker = Chain { channels: weaker, ..chain.clone() };
        let coded = CodedChain::new(&chain, Prng::new(5)).mean_queues(SLOTS);
        let counted = SlottedChain::new(&chain, Prng::new(5)).mean_queues(SLOTS);
        let weaker = SlottedChain::new(&weaker, Prng::new(5)).mean_queues(SLOTS);
        println!("{coded:?} {counted:?} {weaker:?}");
        for ((coded, counted), weaker) in coded.into_iter().zip(counted).zip(weaker) {
            assert!((counted..1.01 * weaker).contains(&coded), "{counted} {coded} {weaker}");
        }
    }
}
