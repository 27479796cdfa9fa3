//! The loss of the path itself, as far as BBR is told to tolerate it.

use core::time::Duration;

/// The weight of one packet, and the number of packets for which the initial value counts.
const WEIGHT: f64 = 1.0 / 128.0;
const PRIOR: u64 = 16;

/// Maximum of the tolerated loss.
const MAX: f64 = 0.35;

/// A round trip up to this multiple of the smallest one, plus this time, shows no queue.
const CALM: f64 = 1.1;
const CALM_FOR: Duration = Duration::from_millis(2);

/// The average loss of packets that saw no queue; always zero if none is tolerated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Innocent {
    is_tolerated: bool,
    average: f64,
    packets: u64,
}

impl Innocent {
    pub(super) fn new(is_tolerated: bool) -> Self {
        Self { is_tolerated, average: 0.0, packets: 0 }
    }

    /// Processes the fate of a packet while round trips take `latest`, and `minimum` without a queue.
    pub(super) fn on_fate(&mut self, is_lost: bool, latest: Duration, minimum: Duration) {
        if !self.is_tolerated || latest > minimum.mul_f64(CALM) + CALM_FOR {
            return;
        }
        self.packets += 1;
        let weight = WEIGHT.max(1.0 / (self.packets + PRIOR) as f64);
        self.average += weight * (f64::from(u8::from(is_lost)) - self.average);
    }

    pub(super) fn is_tolerated(&self) -> bool {
        self.is_tolerated
    }

    pub(super) fn loss(&self) -> f64 {
        self.average.min(MAX)
    }

    /// The share of packets that arrive.
    pub(super) fn arrives(&self) -> f64 {
        1.0 - self.loss()
    }

    /// The loss from which a sample of `packets` shows congestion, if `margin` does on a path without loss. Independent losses seldom exceed
    /// it by chance; bursts may.
    pub(super) fn threshold(&self, margin: f64, packets: f64) -> f64 {
        let loss = self.loss();
        let scatter = 3.0 * (loss * (1.0 - loss) / packets.max(1.0)).sqrt();
        loss + margin.max(scatter)
    }
}
