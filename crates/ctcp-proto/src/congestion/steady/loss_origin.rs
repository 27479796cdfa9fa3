//! Which part of the loss is the path's, and which is ours?
//!
//! A controller that sends more because packets get lost pours oil on the fire where the loss is a queue that
//! overflows. Two things tell the innocent loss from ours:
//!
//! - *Calm.* A queue that overflows is a long one. So the innocent share is averaged only over packets whose
//!   neighbours took little longer than the empty path takes, and a full queue never looks innocent.
//! - *Experiment.* A queue too short to be seen loses packets in perfect calm. So when the calm share rises above
//!   what is proven, the controller sends less for a moment: loss that stays is innocent, loss that goes was ours.
//!   Until then no more than a margin beyond the proven share is believed.

use core::time::Duration;

use ctcp_base::Instant;

use crate::PacketNumber;
use crate::recovery::bursts::Bursts;

/// The weight of one packet in the calm average.
const WEIGHT: f64 = 1.0 / 128.0;

/// How many packets the share that an average begins with stands for.
const PRIOR: u64 = 16;

/// How far the calm average may rise above what is proven: a mistake sends five packets in a hundred too many.
const MARGIN: f64 = 0.05;

/// A verdict should rest on about so many lost packets: eight expected and fewer than four found is bad luck once
/// in 25 times, and the next experiment corrects it.
const LOSSES_WANTED: f64 = 8.0;

/// And on so many bursts, or it is none.
const BURSTS_WANTED: f64 = 3.0;

/// The fewest packets of an experiment.
const PACKETS_MIN: f64 = 32.0;

/// The most, in windows: an experiment costs a fifth of the rate while it lasts.
const WINDOWS_MAX: f64 = 4.0;

/// A queue that was this long once, and longer than three tenths of the path, shows itself before it overflows.
const VISIBLE_MIN: Duration = Duration::from_millis(4);

/// Below this window an experiment takes too many round trips, and the harm of a mistake is a few packets.
const WINDOW_TOO_SMALL: f64 = 3.0;

/// How long the loss found to be ours is not questioned again.
const REST: Duration = Duration::from_secs(3);

/// The average stands without a calm moment for so long and so many round trips. Then this is left of it each round trip.
const BELIEF: Duration = Duration::from_millis(750);
const BELIEF_ROUNDS: u32 = 6;
const FADING: f64 = 0.9;

/// No more than three packets are sent for two that arrive: a path that loses more is congested, whatever it looks like.
const INNOCENT_MAX: f64 = 0.35;

/// What an experiment found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The path loses packets whatever we do.
    Innocent,
    /// We sent too much.
    Ours,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) now: Instant,
    pub(super) number: PacketNumber,
    pub(super) is_lost: bool,
    /// Packets of that moment took little longer than the empty path takes.
    pub(super) is_calm: bool,
}

#[derive(Clone, Copy, Debug)]
struct Experiment {
    /// Packets behind this number belong to it,
    first: PacketNumber,
    /// up to this one, once sending for it is over.
    last: Option<PacketNumber>,
    wanted: u64,
    /// The share of lost packets before, and how much wider than single losses they scatter.
    calm: f64,
    dispersion: f64,
    arrived: u64,
    lost: u64,
}

/// Learns the share of packets that the path loses by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossOrigin {
    calm: f64,
    bursts: Bursts,
    /// Packets in the average; its first ones weigh more, so that it is near the truth after a window.
    samples: u64,
    proven: f64,
    experiment: Option<Experiment>,
    found_ours: Option<Instant>,
    /// An experiment was too short for the bursts in which packets are lost.
    unclear_at: Option<Instant>,
    calm_at: Option<Instant>,
    /// Where the queue is seen to be long, calm is proof enough.
    is_queue_visible: bool,
    /// Packets up to this number do not count.
    ignored: Option<PacketNumber>,
}

impl LossOrigin {
    /// The share of packets that the path loses by itself, as far as it may be believed.
    pub(super) fn innocent(&self, window: f64) -> f64 {
        let is_believed = self.is_queue_visible || window < WINDOW_TOO_SMALL;
        let believed = if is_believed { self.calm } else { self.calm.min(self.proven + self.margin()) };
        believed.min(INNOCENT_MAX)
    }

    /// The share of packets that is lost in calm moments, proven to be innocent or not.
    pub(super) fn seen(&self) -> f64 {
        self.calm.min(INNOCENT_MAX)
    }

    /// Learns that queues of `highest` were seen on a path of `base`.
    pub(super) fn on_queue(&mut self, highest: Duration, base: Duration) {
        self.is_queue_visible = highest > VISIBLE_MIN.max(base * 3 / 10);
    }

    /// A round trip of `rtt` is over: without a calm moment, what was believed fades.
    pub(super) fn on_round(&mut self, now: Instant, rtt: Duration) {
        if self.calm_at.is_some_and(|at| now - at > BELIEF.max(rtt * BELIEF_ROUNDS)) {
            self.calm *= FADING;
        }
    }

    /// Whether the loss asks for an experiment.
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
        self.experiment.is_none() && !self.is_queue_visible && window >= WINDOW_TOO_SMALL
    }

    /// Three deviations of the average, but at least the plain margin.
    fn margin(&self) -> f64 {
        (3.0 * (self.proven * (1.0 - self.proven) * WEIGHT / 2.0).sqrt()).max(MARGIN)
    }

    /// How much wider than that of single losses the number of lost packets scatters.
    pub(super) fn dispersion(&self) -> f64 {
        self.bursts.dispersion(self.calm)
    }

    /// An experiment begins: the controller yields, and packets behind `largest_sent` count.
    pub(super) fn begin(&mut self, largest_sent: PacketNumber, window: f64) {
        let most = (WINDOWS_MAX * window).max(PACKETS_MIN);
        let wanted = (LOSSES_WANTED / self.calm.max(1e-3)).clamp(PACKETS_MIN, most) as u64;
        let (calm, dispersion) = (self.calm, self.dispersion());
        let first = largest_sent;
        self.experiment =
            Some(Experiment { first, last: None, wanted, calm, dispersion, arrived: 0, lost: 0 });
    }

    /// Whether enough packets left for the running experiment. When none is running, they did.
    pub(super) fn has_enough(&self, largest_sent: PacketNumber) -> bool {
        self.experiment.is_none_or(|experiment| largest_sent.0 >= experiment.first.0 + experiment.wanted)
    }

    /// The controller yields no longer: packets behind `largest_sent` do not count.
    pub(super) fn stop_sending(&mut self, largest_sent: PacketNumber) {
        if let Some(experiment) = &mut self.experiment {
            experiment.last.get_or_insert(largest_sent);
        }
    }

    /// Takes the fate of a packet. Returns the verdict when the last packet of an experiment is settled.
    pub(super) fn on_fate(&mut self, fate: Fate) -> Option<Verdict> {
        self.calm_at = self.calm_at.filter(|_| !fate.is_calm).or(Some(fate.now));
        if fate.is_calm && self.ignored.is_none_or(|last| fate.number > last) {
            if fate.is_lost {
                self.bursts.on_loss(fate.number);
            }
            self.samples += 1;
            let weight = self.bursts.weight(WEIGHT, self.calm).max(1.0 / (self.samples + PRIOR) as f64);
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
        Some(self.judge(fate.now, found))
    }

    fn judge(&mut self, now: Instant, found: f64) -> Verdict {
        if found < self.calm / 2.0 {
            self.calm = found;
            self.proven = found;
            self.found_ours = Some(now);
            return Verdict::Ours;
        }
        self.proven = self.calm.max(found);
        Verdict::Innocent
    }

    /// Packets up to `largest_sent` were sent too fast. Where that was not visible their loss says nothing; before, the
    /// path lost `share`.
    pub(super) fn on_overshoot(&mut self, largest_sent: PacketNumber, share: f64) {
        if !self.is_queue_visible {
            let (bursts, ignored) = (self.bursts, Some(largest_sent));
            *self = Self { calm: share, proven: share, bursts, ignored, ..Self::default() };
        }
    }

    /// Ends an experiment without a verdict.
    pub(super) fn abandon(&mut self) {
        self.experiment = None;
    }
}

#[cfg(test)]
mod tests;
