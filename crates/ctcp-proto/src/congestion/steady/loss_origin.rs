//! Distinguishes the path's own (innocent) loss from congestion loss.
//!
//! A controller that compensates for loss by sending more makes matters worse if the loss is due to an overflowing queue. Two tests
//! distinguish innocent loss from congestion loss:
//!
//! - *Calm.* A queue that overflows is long. So the innocent loss is averaged only over packets whose neighbours took little longer than
//!   the empty path. The drops of a long queue never count as innocent.
//! - *Experiment.* A queue too short to be seen drops packets in calm moments. So when the calm loss rises above the proven loss, the
//!   controller briefly sends less: loss that persists is innocent, loss that disappears was congestion. Until then only a margin beyond
//!   the proven loss is accepted.

use core::time::Duration;

use ctcp_base::Instant;

use crate::PacketNumber;
use crate::recovery::bursts::{Bursts, Doubt};

/// The weight of one packet in the calm average.
const WEIGHT: f64 = 1.0 / 128.0;

/// Number of packets for which the initial value of an average counts.
const PRIOR: u64 = 16;

/// How far the calm average may exceed the proven loss. An error sends five packets in a hundred too many.
const MARGIN: f64 = 0.05;

/// Number of lost packets on which a verdict should rest. If eight are expected, fewer than four are found by chance once in 25 times, and
/// the next experiment corrects it.
const LOSSES_WANTED: f64 = 8.0;

/// Minimum number of bursts for a verdict.
const BURSTS_WANTED: f64 = 3.0;

/// Minimum number of packets in an experiment.
const PACKETS_MIN: f64 = 32.0;

/// Maximum number of windows in an experiment, which costs a fifth of the rate while it lasts.
const WINDOWS_MAX: f64 = 4.0;

/// A queue that was once longer than this, and than three tenths of the path, is visible before it overflows.
const VISIBLE_MIN: Duration = Duration::from_millis(4);

/// Below this window an error costs only a few packets.
const WINDOW_TOO_SMALL: f64 = 3.0;

/// Below this window an experiment takes more than [`WINDOWS_MAX`] round trips, in which the window does not grow.
const WINDOW_TO_EXPERIMENT: f64 = PACKETS_MIN / WINDOWS_MAX;

/// Minimum interval until loss found to be congestion is tested again.
const REST: Duration = Duration::from_secs(3);

/// How long, and for how many round trips, the average is kept without a calm moment. After that it is multiplied by `FADING` every round
/// trip.
const BELIEF: Duration = Duration::from_millis(750);
const BELIEF_ROUNDS: u32 = 6;
const FADING: f64 = 0.9;

/// Maximum innocent loss: about three packets sent for two that arrive. A path that loses more is congested, whatever it looks like.
const INNOCENT_MAX: f64 = 0.35;

/// The result of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The path loses packets whatever the rate.
    Innocent,
    /// The loss was caused by sending too much.
    Ours,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) now: Instant,
    pub(super) number: PacketNumber,
    pub(super) is_lost: bool,
    /// Neighbouring packets took little longer than the empty path.
    pub(super) is_calm: bool,
}

#[derive(Clone, Copy, Debug)]
struct Experiment {
    /// Packets after this number belong to the experiment ...
    first: PacketNumber,
    /// ... up to this one, once sending for it is over.
    last: Option<PacketNumber>,
    wanted: u64,
    /// The loss before, and its variance relative to independent losses.
    calm: f64,
    dispersion: f64,
    arrived: u64,
    lost: u64,
}

/// Estimates the fraction of packets that the path loses by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossOrigin {
    calm: f64,
    bursts: Bursts,
    /// Packets in the average. The first ones weigh more, so that it is close after one window.
    samples: u64,
    proven: f64,
    experiment: Option<Experiment>,
    found_ours: Option<Instant>,
    /// When an experiment was last too short for the bursts in which packets are lost.
    unclear_at: Option<Instant>,
    calm_at: Option<Instant>,
    /// The queue gets long enough to be seen, so that calm is sufficient proof.
    is_queue_visible: bool,
    /// Packets up to this number do not count.
    ignored: Option<PacketNumber>,
}

impl LossOrigin {
    /// The fraction of packets that the path loses by itself, as far as it may be relied on.
    pub(super) fn innocent(&self, window: f64) -> f64 {
        let is_believed = self.is_queue_visible || window < WINDOW_TOO_SMALL;
        let believed = if is_believed { self.calm } else { self.calm.min(self.proven + self.margin()) };
        believed.min(INNOCENT_MAX)
    }

    /// The fraction of packets lost in calm moments, proven to be innocent or not.
    pub(super) fn seen(&self) -> f64 {
        self.calm.min(INNOCENT_MAX)
    }

    /// Records that queues of `highest` were seen on a path of `base`.
    pub(super) fn on_queue(&mut self, highest: Duration, base: Duration) {
        self.is_queue_visible = highest > VISIBLE_MIN.max(base * 3 / 10);
    }

    /// A round trip of `rtt` is over. Without a recent calm moment, the average decays.
    pub(super) fn on_round(&mut self, now: Instant, rtt: Duration) {
        if self.calm_at.is_some_and(|at| now - at > BELIEF.max(rtt * BELIEF_ROUNDS)) {
            self.calm *= FADING;
        }
    }

    /// Whether the loss requires an experiment.
    pub(super) fn is_suspicious(&self, now: Instant, window: f64) -> bool {
        let is_rested = |last: Option<Instant>| last.is_none_or(|last| now - last >= REST);
        let is_high = self.calm > self.proven + self.margin();
        is_high && is_rested(self.found_ours) && is_rested(self.unclear_at) && self.may_experiment(window)
    }

    /// Whether much depends on an old verdict.
    pub(super) fn is_worth_checking(&self, window: f64) -> bool {
        self.calm > MARGIN && self.may_experiment(window)
    }

    fn may_experiment(&self, window: f64) -> bool {
        self.experiment.is_none() && !self.is_queue_visible && window >= WINDOW_TO_EXPERIMENT
    }

    /// Three standard deviations of the average, but at least the plain margin.
    fn margin(&self) -> f64 {
        (3.0 * (self.proven * (1.0 - self.proven) * WEIGHT / 2.0).sqrt()).max(MARGIN)
    }

    /// The variance of the number of lost packets relative to independent losses.
    pub(super) fn dispersion(&self) -> f64 {
        self.bursts.dispersion(self.calm)
    }

    /// The mean length of the row of losses that a lost packet belongs to.
    pub(super) fn row_length(&self) -> f64 {
        self.bursts.row_length()
    }

    /// Begins an experiment: the controller yields, and packets after `largest_sent` count.
    pub(super) fn begin(&mut self, largest_sent: PacketNumber, window: f64) {
        let most = (WINDOWS_MAX * window).max(PACKETS_MIN);
        let wanted = (LOSSES_WANTED / self.calm.max(1e-3)).clamp(PACKETS_MIN, most) as u64;
        let (calm, dispersion) = (self.calm, self.dispersion());
        let first = largest_sent;
        self.experiment =
            Some(Experiment { first, last: None, wanted, calm, dispersion, arrived: 0, lost: 0 });
    }

    /// Whether enough packets were sent for the running experiment; true if none is running.
    pub(super) fn has_enough(&self, largest_sent: PacketNumber) -> bool {
        self.experiment.is_none_or(|experiment| largest_sent.0 >= experiment.first.0 + experiment.wanted)
    }

    /// The controller stops yielding: packets after `largest_sent` do not count.
    pub(super) fn stop_sending(&mut self, largest_sent: PacketNumber) {
        if let Some(experiment) = &mut self.experiment {
            experiment.last.get_or_insert(largest_sent);
        }
    }

    /// Processes the fate of a packet. `doubt` is how far it counts for bursts if it is lost in a moment that is not calm. Returns the verdict
    /// once a packet after the experiment is acknowledged or lost. The calm average is over `memory` packets if that is more than usual.
    pub(super) fn on_fate(&mut self, fate: Fate, doubt: Doubt, memory: f64) -> Option<Verdict> {
        self.calm_at = self.calm_at.filter(|_| !fate.is_calm).or(Some(fate.now));
        let counts = self.ignored.is_none_or(|last| fate.number > last);
        if counts && fate.is_lost {
            if fate.is_calm {
                self.bursts.on_loss(fate.number);
            } else {
                self.bursts.on_doubtful_loss(fate.number, doubt);
            }
        }
        if fate.is_calm && counts {
            self.samples += 1;
            let single = WEIGHT.min(1.0 / memory.max(1.0));
            let weight = self.bursts.weight(single, self.calm).max(1.0 / (self.samples + PRIOR) as f64);
            self.calm += weight * (f64::from(u8::from(fate.is_lost)) - self.calm);
            self.proven = self.proven.min(self.calm + self.margin());
        }
        let experiment = self.experiment.as_mut()?;
        if fate.number <= experiment.first {
            return None;
        }
        if experiment.last.is_none_or(|last| fate.number <= last) {
            experiment.arrived += u64::from(!fate.is_lost);
            experiment.lost += u64::from(fate.is_lost);
            return None;
        }
        let all = (experiment.arrived + experiment.lost).max(1) as f64;
        let found = experiment.lost as f64 / all;
        let (calm, dispersion) = (experiment.calm, experiment.dispersion);
        self.experiment = None;
        if all * calm < BURSTS_WANTED * dispersion {
            self.unclear_at = Some(fate.now);
            return None;
        }
        Some(self.judge(fate.now, found, calm))
    }

    /// Whether the loss `found` is that of `before` the experiment.
    fn judge(&mut self, now: Instant, found: f64, before: f64) -> Verdict {
        if found < before / 2.0 {
            self.calm = found;
            self.proven = found;
            self.found_ours = Some(now);
            return Verdict::Ours;
        }
        self.proven = self.calm.max(found);
        Verdict::Innocent
    }

    /// Packets up to `largest_sent` were sent too fast. If the queue was not visible, their loss says nothing, and the path's loss before,
    /// `share`, is used.
    pub(super) fn on_overshoot(&mut self, largest_sent: PacketNumber, share: f64) {
        if !self.is_queue_visible {
            let (bursts, ignored) = (self.bursts, Some(largest_sent));
            *self = Self { calm: share, proven: share, bursts, ignored, ..Self::default() };
        }
    }

    /// Slow start measured this loss while ever more packets arrived, so it is innocent.
    pub(super) fn on_slow_start(&mut self, share: f64) {
        self.calm = self.calm.max(share);
        self.proven = self.proven.max(share);
    }

    /// Smaller windows lost this fraction, so the path loses no more by itself.
    pub(super) fn limit(&mut self, share: f64) {
        self.calm = self.calm.min(share);
        self.proven = self.proven.min(share);
    }

    /// Ends an experiment without a verdict.
    pub(super) fn abandon(&mut self) {
        self.experiment = None;
    }
}

#[cfg(test)]
mod tests;
