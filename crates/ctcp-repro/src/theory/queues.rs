//! TCP/NC, Theorem 2: mean queues along a chain of erasure channels in slotted time.
//!
//! ```text
//!   arrivals       mu_0         mu_1              mu_(N-1)
//!   lambda ---> 0 ------> 1 ------> 2 --- ... ---------> N  sink
//!               ^                                        |
//!               +------ oldest unseen, immediately ------+      and from 0 on along with the packets
//! ```
//!
//! With `rho_i = lambda / mu_i`, as printed: `E[Q_k] = sum_{i=k}^{N-1} rho_i (1-mu_i)/(1-rho_i) + sum_{i=1}^{k-1} rho_i`.
//!
//! By Little's law `E[Q_k]` is lambda times the time a packet stays at node k. In the model as described, this time has
//! two parts:
//!
//! - Until the next node has seen it. At the source this takes `(1-mu)/(mu(1-rho))`, because a packet can be sent in
//!   the slot in which it arrived. At a relay it takes one slot more, because "the node may use the newly received
//!   packet only in the next slot's transmission". From k on there are N - max(k, 1) relays. The printed form omits
//!   their slots.
//! - Until node k knows that the sink has seen it. The source knows at once, and every channel from there to k takes
//!   `1/mu_i`. The printed sum begins at i = 1 and therefore omits channel 0.
//!
//! Hence `E[Q_k] = sum_{i=k}^{N-1} rho_i (1-mu_i)/(1-rho_i) + (N - max(k,1)) lambda + sum_{i=0}^{k-1} rho_i`. This is
//! exact, for two reasons. The output of a virtual queue is again a Bernoulli process of rate lambda (Hsu and Burke,
//! 1976). The outcomes on a channel after the sink has seen a packet are independent of when it saw the packet.

/// Arrivals and channels of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// lambda: packets that arrive at the source per slot, below the mu of every channel.
    pub arrivals: f64,
    /// mu: the probability that a channel is on, from the source to the sink; at least one channel.
    pub channels: Vec<f64>,
}

impl Chain {
    /// Returns `rho_i`, the load of channel i.
    #[must_use]
    pub fn load(&self, channel: usize) -> f64 {
        self.arrivals / self.channels[channel]
    }

    /// Returns Theorem 2 as printed, for a node below N.
    #[must_use]
    pub fn queue_printed(&self, node: usize) -> f64 {
        self.unseen_downstream(node) + (1..node).map(|channel| self.load(channel)).sum::<f64>()
    }

    /// Returns Theorem 2 as it follows from the model.
    #[must_use]
    pub fn queue(&self, node: usize) -> f64 {
        let relays = self.channels.len() - node.max(1);
        let news: f64 = (0..node).map(|channel| self.load(channel)).sum();
        self.unseen_downstream(node) + relays as f64 * self.arrivals + news
    }

    /// Returns the sum of the virtual queues from a node to the sink.
    fn unseen_downstream(&self, node: usize) -> f64 {
        let virtual_queue = |channel: usize| {
            let load = self.load(channel);
            load * (1.0 - self.channels[channel]) / (1.0 - load)
        };
        (node..self.channels.len()).map(virtual_queue).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: N6
    #[test]
    fn both_forms_of_theorem_2_match_manual_computation() {
        // rho = 0.5, 2/3, 0.8; virtual queues 0.5*0.2/0.5 = 0.2, (2/3)*0.4/(1/3) = 0.8, 0.8*0.5/0.2 = 2.
        let chain = Chain { arrivals: 0.4, channels: vec![0.8, 0.6, 0.5] };
        let close = |found: [f64; 3], wanted: [f64; 3]| {
            found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12)
        };
        let printed = [0, 1, 2].map(|node| chain.queue_printed(node));
        assert!(close(printed, [3.0, 2.8, 2.0 + 2.0 / 3.0]), "{printed:?}");
        // Two relays wait a slot each after nodes 0 and 1, one after node 2. The feedback takes rho_0, then rho_0 +
        // rho_1.
        let corrected = [0, 1, 2].map(|node| chain.queue(node));
        assert!(close(corrected, [3.8, 2.8 + 0.8 + 0.5, 2.0 + 0.4 + 0.5 + 2.0 / 3.0]), "{corrected:?}");
    }

    // Requirement: N6
    #[test]
    fn both_forms_of_theorem_2_agree_for_a_single_channel() {
        let chain = Chain { arrivals: 0.6, channels: vec![0.8] };
        assert_eq!(chain.queue(0), chain.queue_printed(0));
        assert!((chain.queue(0) - 0.6).abs() < 1e-12, "0.75 * 0.2 / 0.25");
    }
}
