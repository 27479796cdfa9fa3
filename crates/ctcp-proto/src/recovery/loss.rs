//! When a packet counts as lost, and how many are.
//!
//! [`LossDetector`] holds the thresholds of RFC 9002 section 6.1 for one path: three newer packets acknowledged,
//! or 9/8 of a round trip passed since a packet older than an acknowledged one was sent. Reordering is not loss:
//! each declaration that proves wrong raises the thresholds, within bounds, and quiet round trips lower them again.
//!
//! [`LossAverage`] is the paper's `p` (CTCP Algorithm 1).

use core::time::Duration;

use ctcp_base::Instant;

use super::bursts::Bursts;
use super::rtt::{GRANULARITY, RttEstimator};
use super::sent::SpuriousLoss;
use crate::id::PacketNumber;

/// RFC 9002 6.1.1.
const PACKET_THRESHOLD: u64 = 3;

/// However much a path reorders, a packet this far behind is lost: the wait for it costs a round trip of repair.
const PACKET_THRESHOLD_MAX: u64 = 256;

/// RFC 9002 6.1.2: 9/8, in eighths of a round trip.
const TIME_EIGHTHS: u32 = 9;

/// Twice the round trip: a packet later than that is worth no wait.
const TIME_EIGHTHS_MAX: u32 = 16;

/// After how many round trips without a wrong declaration the thresholds come half the way back.
const QUIET_ROUNDS: u32 = 16;

/// The thresholds in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossThresholds {
    /// A packet this many numbers behind the largest acknowledged one is lost.
    pub(crate) packets: u64,
    /// An older packet than the largest acknowledged one is lost this long after it was sent.
    pub(crate) delay: Duration,
}

/// The thresholds of one path, which learn from reordering.
#[derive(Clone, Debug)]
pub(crate) struct LossDetector {
    packets: u64,
    eighths: u32,
    /// When the thresholds were last raised, or came back a step.
    changed: Instant,
}

impl LossDetector {
    /// The thresholds of RFC 9002.
    pub(crate) fn new() -> Self {
        Self { packets: PACKET_THRESHOLD, eighths: TIME_EIGHTHS, changed: Instant::ZERO }
    }

    /// The thresholds to detect losses with now.
    pub(crate) fn thresholds(&mut self, now: Instant, rtt: &RttEstimator) -> LossThresholds {
        if now - self.changed > rtt.smoothed() * QUIET_ROUNDS {
            self.packets = PACKET_THRESHOLD + (self.packets - PACKET_THRESHOLD) / 2;
            self.eighths = TIME_EIGHTHS + (self.eighths - TIME_EIGHTHS) / 2;
            self.changed = now;
        }
        let round = rtt.smoothed().max(rtt.latest());
        LossThresholds { packets: self.packets, delay: (round * self.eighths / 8).max(GRANULARITY) }
    }

    /// A packet declared lost arrived after all.
    pub(crate) fn on_spurious_loss(&mut self, now: Instant, spurious: SpuriousLoss, rtt: &RttEstimator) {
        self.packets = self.packets.max((spurious.distance + 1).min(PACKET_THRESHOLD_MAX));
        let round = rtt.smoothed().max(rtt.latest()).max(GRANULARITY);
        let mut needed = self.eighths;
        while needed < TIME_EIGHTHS_MAX && round * needed / 8 <= spurious.age {
            needed += 1;
        }
        self.eighths = needed;
        self.changed = now;
    }
}

/// The smoothing factor that the paper calls mu and leaves open. At 1/128 the average spans some three round
/// trips of a 25 Mbit/s, 20 ms path, and its deviation at p = 5 % is 1.4 points: a compromise between
/// following a path that changes and sending repair for noise.
pub(crate) const MU: f64 = 1.0 / 128.0;

/// What a path is believed to lose before it was measured, and again after a retransmission time-out ("default
/// values chosen with some care such that they estimate roughly what the network may look like").
pub(crate) const INITIAL_LOSS: f64 = 0.01;

/// The paper's `p`: exponential smoothing over a sequence of 0 (arrived) and 1 (lost), one term a packet.
///
/// Algorithm 1 has only cumulative ACKs: an ACK behind a gap of `losses` numbers stands for one 0 and `losses`
/// times 1, and `p <- p (1-mu)^(losses+1) + 1 - (1-mu)^losses`. With `losses = ack_seqno - seqno_una` (the
/// printed `+ 1` contradicts Eqs. 1 and 2), and also when it is 0. Here the ledger knows the fate of each packet
/// and feeds it term by term as it is settled, which is the same sum, and a packet that was only late is
/// taken out again.
///
/// Requirement: C3
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossAverage {
    value: f64,
    initial: f64,
    mu: f64,
    bursts: Bursts,
    /// Packets settled so far, where bursts lower the weight of one.
    steadied: Option<u32>,
}

impl LossAverage {
    /// An average that starts at `initial` and gives each packet the weight `mu`, both in `[0, 1]`.
    pub(crate) fn new(initial: f64, mu: f64) -> Self {
        let initial = initial.clamp(0.0, 1.0);
        Self { value: initial, initial, mu: mu.clamp(0.0, 1.0), bursts: Bursts::default(), steadied: None }
    }

    /// The same, over more packets where they are lost in bursts, so that it scatters no more than it would without; but never over more than
    /// were seen since the beginning or the last time-out.
    pub(crate) fn steadied(self) -> Self {
        Self { steadied: Some(0), ..self }
    }

    /// The average, in `[0, 1]`.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// A packet arrived.
    pub(crate) fn on_ack(&mut self) {
        self.value *= 1.0 - self.next_weight();
    }

    /// A packet was lost.
    pub(crate) fn on_loss(&mut self, number: PacketNumber) {
        self.bursts.on_loss(number);
        let weight = self.next_weight();
        self.value = self.value * (1.0 - weight) + weight;
    }

    /// See [`Bursts::dispersion`].
    pub(crate) fn dispersion(&self) -> f64 {
        self.bursts.dispersion(self.value)
    }

    fn next_weight(&mut self) -> f64 {
        if let Some(settled) = &mut self.steadied {
            *settled = settled.saturating_add(1);
        }
        self.weight()
    }

    fn weight(&self) -> f64 {
        let Some(settled) = self.steadied else { return self.mu };
        let all = self.mu / (1.0 + self.mu * f64::from(settled));
        self.bursts.weight(self.mu, self.value).max(all)
    }

    /// A packet counted as lost `outcomes_since` terms ago arrived: its 1 becomes a 0.
    pub(crate) fn on_spurious_loss(&mut self, outcomes_since: u64) {
        let one = self.weight();
        let mut weight = one;
        for _ in 0..outcomes_since {
            weight *= 1.0 - one;
            if weight < 1e-9 {
                return;
            }
        }
        self.value = (self.value - weight).max(0.0);
    }

    /// A retransmission time-out: what was known of the path is void (CTCP section 4.1).
    pub(crate) fn on_timeout(&mut self) {
        self.value = self.initial;
        self.bursts = Bursts::default();
        self.steadied = self.steadied.map(|_| 0);
    }
}

#[cfg(test)]
mod tests;
