//! The chain of TCP/NC, section VI-B, with coefficients: nodes keep witnesses and combine them at random over GF(256).
//!
//! The same slots as in [`SlottedChain`](super::slotted_chain::SlottedChain), met with the same luck, but nothing is assumed of what a
//! reception brings: a node has seen what its elimination says. A combination that is not innovative is as if the channel had
//! been off. That is one in 256 when the next node lacks a single packet of the sender's, and far fewer when it lacks more: so
//! the queues lie between those of counting with mu and with mu (1 - 1/256).

use ctcp_base::Prng;
use ctcp_coding::{Recoder, RecoderConfig, SymbolRange};

use super::slotted_chain::Luck;
use crate::theory::queues::Chain;

/// Packets from the oldest that any node keeps to the newest: far more than the loads used here need.
const WINDOW: u16 = 4095;

/// Nodes that keep rows: the source, relays and the sink.
pub(super) struct CodedChain {
    luck: Luck,
    coefficients: Prng,
    /// The source's are its packets as they came.
    nodes: Vec<Recoder>,
    arrived: u64,
    /// The oldest packet that the sink has not seen.
    oldest_unseen: u64,
    /// The same, as far as each node knows. The sink keeps its rows from there on as well, since combinations still begin there.
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

    /// A uniform combination of all witnesses of `node`, which the next one receives.
    fn send(&mut self, node: usize) {
        let Some(span) = self.nodes[node].span() else { return };
        let mut weights = vec![0; self.nodes[node].rank()];
        self.coefficients.fill(&mut weights);
        let (mut coefficients, mut payload) = (Vec::new(), Vec::new());
        // All weights can be zero.
        let made = self.nodes[node].combine(span, &weights, &mut coefficients, &mut payload);
        let Ok(range): Result<SymbolRange, _> = made else { return };
        self.nodes[node + 1].handle_combination(range, &coefficients, &payload).expect("within the window");
    }

    /// Drops the witnesses of packets older than the one that the sink asks for.
    fn know(&mut self, node: usize, oldest_unseen: u64) {
        self.known[node] = oldest_unseen;
        self.nodes[node].release_before(oldest_unseen);
    }

    /// Mean queues over `slots` slots, after a tenth of them to settle.
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
    fn counting_is_the_same_as_coding_but_for_at_most_one_combination_in_256() {
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
