//! When a packet is declared lost, and the loss average.
//!
//! [`LossDetector`] holds the thresholds of RFC 9002 section 6.1 for one path: three newer packets acknowledged, or 9/8 of a round trip
//! passed since a packet older than an acknowledged one was sent. Reordering is not loss: each spurious declaration raises the thresholds,
//! within bounds, and round trips without one lower them again. On a path through relays only time counts, and more of it: their repairs are
//! late, but not lost.
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

/// Maximum of the packet threshold, however much a path reorders. Waiting for a packet this late costs a round trip of repair.
const PACKET_THRESHOLD_MAX: u64 = 256;

/// RFC 9002 6.1.2: 9/8 of a round trip, in eighths.
const TIME_EIGHTHS: u32 = 9;

/// Maximum of the time threshold: twice the round trip. Waiting for a packet later than that is not worthwhile.
const TIME_EIGHTHS_MAX: u32 = 16;

/// The time threshold where hops repair what is lost: one and a half round trips, which is long enough for a repair on one hop. After
/// spurious losses it rises to three.
const TIME_EIGHTHS_PATIENT: u32 = 12;
const TIME_EIGHTHS_PATIENT_MAX: u32 = 24;

/// Number of round trips without a spurious loss after which the thresholds return half of the way.
const QUIET_ROUNDS: u32 = 16;

/// The same where hops repair. They make packets late at a steady rate, so what was learned is kept for longer.
const QUIET_ROUNDS_PATIENT: u32 = 512;

/// The current thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossThresholds {
    /// A packet is lost if its number is this far below the largest acknowledged one.
    pub(crate) packets: u64,
    /// A packet older than the largest acknowledged one is lost this long after it was sent.
    pub(crate) delay: Duration,
}

/// The thresholds of one path, which adapt to reordering.
#[derive(Clone, Debug)]
pub(crate) struct LossDetector {
    packets: u64,
    eighths: u32,
    /// To which the thresholds return.
    least: (u64, u32),
    /// Maximum of the time threshold.
    eighths_max: u32,
    /// Round trips after which they return half of the way.
    quiet_rounds: u32,
    /// When the thresholds were last changed.
    changed: Instant,
}

impl LossDetector {
    /// The thresholds of RFC 9002.
    pub(crate) fn new() -> Self {
        let (packets, eighths) = (PACKET_THRESHOLD, TIME_EIGHTHS);
        Self {
            packets,
            eighths,
            least: (packets, eighths),
            eighths_max: TIME_EIGHTHS_MAX,
            quiet_rounds: QUIET_ROUNDS,
            changed: Instant::ZERO,
        }
    }

    /// For a path on which packets are repaired and come late rather than not at all.
    pub(crate) fn patient() -> Self {
        let (packets, eighths) = (u64::MAX, TIME_EIGHTHS_PATIENT);
        Self {
            packets,
            eighths,
            least: (packets, eighths),
            eighths_max: TIME_EIGHTHS_PATIENT_MAX,
            quiet_rounds: QUIET_ROUNDS_PATIENT,
            ..Self::new()
        }
    }

    /// By how many packets others have come late, beyond what is assumed of any path.
    pub(crate) fn reordering(&self) -> u64 {
        self.packets.saturating_sub(PACKET_THRESHOLD)
    }

    /// The thresholds for detecting losses now.
    pub(crate) fn thresholds(&mut self, now: Instant, rtt: &RttEstimator) -> LossThresholds {
        if now - self.changed > rtt.smoothed() * self.quiet_rounds {
            let (packets, eighths) = self.least;
            self.packets = packets + (self.packets - packets) / 2;
            self.eighths = eighths + (self.eighths - eighths) / 2;
            self.changed = now;
        }
        let round = rtt.smoothed().max(rtt.latest());
        LossThresholds { packets: self.packets, delay: (round * self.eighths / 8).max(GRANULARITY) }
    }

    /// A packet that was declared lost was acknowledged.
    pub(crate) fn on_spurious_loss(&mut self, now: Instant, spurious: SpuriousLoss, rtt: &RttEstimator) {
        self.packets = self.packets.max((spurious.distance + 1).min(PACKET_THRESHOLD_MAX));
        let round = rtt.smoothed().max(rtt.latest()).max(GRANULARITY);
        let mut needed = self.eighths;
        while needed < self.eighths_max && round * needed / 8 <= spurious.age {
            needed += 1;
        }
        self.eighths = needed;
        self.changed = now;
    }
}

/// The smoothing factor that the paper calls mu and leaves open. With 1/128 the average spans some three round trips of a 25 Mbit/s, 20 ms
/// path, and its standard deviation at p = 5 % is 1.4 percentage points. This is a compromise between following changes of the path and
/// sending repair for noise.
pub(crate) const MU: f64 = 1.0 / 128.0;

/// The assumed loss before it is measured, and again after a retransmission timeout ("default values chosen with some care such that they
/// estimate roughly what the network may look like").
pub(crate) const INITIAL_LOSS: f64 = 0.01;

/// The paper's `p`: exponential smoothing over a sequence of 0 (arrived) and 1 (lost), one term per packet.
///
/// Algorithm 1 has only cumulative ACKs. An ACK after a gap of `losses` numbers stands for one 0 and `losses` times 1, so
/// `p <- p (1-mu)^(losses+1) + 1 - (1-mu)^losses`. This holds with `losses = ack_seqno - seqno_una`, also if it is 0; the printed `+ 1`
/// contradicts Eqs. 1 and 2. Here the fate of each packet is known and enters term by term, which gives the same sum. A packet that was
/// only late is taken out again.
///
/// Requirement: C3
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossAverage {
    value: f64,
    initial: f64,
    mu: f64,
    bursts: Bursts,
    /// Number of packets so far, if bursts lower the weight of one.
    steadied: Option<u32>,
}

impl LossAverage {
    /// Creates an average that starts at `initial` and gives each packet the weight `mu`, both in `[0, 1]`.
    pub(crate) fn new(initial: f64, mu: f64) -> Self {
        let initial = initial.clamp(0.0, 1.0);
        Self { value: initial, initial, mu: mu.clamp(0.0, 1.0), bursts: Bursts::default(), steadied: None }
    }

    /// Averages over more packets when they are lost in bursts, so that the variance is the same as without bursts. Never averages over
    /// more packets than were seen since the beginning or the last timeout.
    pub(crate) fn steadied(self) -> Self {
        Self { steadied: Some(0), ..self }
    }

    /// The average, in `[0, 1]`.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// A packet was acknowledged.
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

    /// A packet counted as lost `outcomes_since` terms ago was acknowledged: its 1 becomes a 0.
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

    /// A retransmission timeout: the estimate is discarded (CTCP section 4.1).
    pub(crate) fn on_timeout(&mut self) {
        self.value = self.initial;
        self.bursts = Bursts::default();
        self.steadied = self.steadied.map(|_| 0);
    }
}

#[cfg(test)]
mod tests;
