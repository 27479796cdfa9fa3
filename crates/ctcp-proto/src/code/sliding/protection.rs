//! How much repair the newest symbols are owed, and what may be spent on it.
//!
//! Each symbol is owed a share of a repair *sent after it*. The debt of any run of newest symbols is its share less the repairs sent after
//! its first symbol. Only the largest such debt is kept: a symbol adds its share, a repair takes one away, and the debt never falls below
//! zero, because a repair gives nothing to symbols sent after it.

use super::super::Situation;
use crate::code::redundancy::Redundancy;

/// The share of symbols that may have to wait for a repair longer than for the second symbol after the loss. A repair after every
/// `2 + SHARE_WAITING/p` symbols keeps it: a loss makes half of that number wait. A quarter of a per cent keeps the 99th percentile of
/// the delay free of losses, and half of it the 99.9th of a path that loses one packet in 400 (decision 0040).
const SHARE_WAITING: f64 = 1.0 / 200.0;

/// Packets per symbol at a loss of p, times 1-p. With the headers of messages of 1200 bytes (7 %) that makes 1.45 bytes on the wire per
/// useful byte, the budget of decision 0040.
const PACKETS_PER_SYMBOL: f64 = 1.35;

/// The number of repairs that may be saved up. A pause saves nothing for the burst of symbols after it.
const SAVINGS_MAX: f64 = 4.0;

/// The number of repairs by which the margin of a deficit may exceed the budget. After a burst of losses the deficit must be repaired
/// before the budget has grown; 40 let bursts of 6 packets be repaired in the first round trip (decision 0040).
const OVERDRAFT_MAX: f64 = 40.0;

/// The number of standard deviations by which the repairs in flight for a deficit exceed what loss takes. Hairpin (NSDI 2024) derives a
/// higher redundancy for retransmissions than for first transmissions, since fewer round trips are left to them. 3 was best in bursts of
/// 3 packets (decision 0040).
const DEVIATIONS: f64 = 3.0;

/// The part of the expected losses that is repaired ahead of feedback where rate counts. The rest follows feedback, so that nearly every
/// repair is useful.
const THRIFTY_PART: f64 = 0.5;

/// How many repairs for a deficit may be missing on average there, unless the flow is thin.
const THRIFTY_DEFICIT: f64 = 1.0;

/// Fewer symbols than this in a round trip, and than half of the window, are a thin flow, which gets all repairs for a deficit at once.
const THIN: f64 = 16.0;

/// The weight of one pause between symbols in their mean.
const PAUSE_WEIGHT: f64 = 1.0 / 16.0;

/// The loss that is assumed at first, and the number of packets that this assumption is worth.
const LOSS_FIRST: f64 = 0.01;
const PACKETS_FIRST: f64 = 16.0;

/// The number of packets over which losses are averaged. At 1 % loss the average varies by a fifth. The path's own average follows changes
/// faster and falls to a tenth between two losses, and with it the protection.
const PACKETS_AVERAGED: f64 = 1024.0;

/// A path that loses less is clean and gets no repair ahead: less than half a loss in [`PACKETS_AVERAGED`].
const LOSS_CLEAN: f64 = 0.5 / PACKETS_AVERAGED;

/// The maximum loss used. A higher estimate says little about the path.
const LOSS_MAX: f64 = 0.5;

/// How many repairs in flight a deficit needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::code) struct Margin {
    /// The share of packets that are lost.
    loss: f64,
    /// The variance of the losses of many packets relative to independent losses.
    dispersion: f64,
    /// So many may be missing on average; `None` if the [`DEVIATIONS`] decide.
    shortfall: Option<f64>,
    /// The budget has room for more than the deficit itself.
    has_budget: bool,
}

/// The repair rule of the sliding-window code.
#[derive(Debug)]
pub(in crate::code) struct Protection {
    redundancy: Redundancy,
    /// Repairs are counted for what loss takes on average, and not for every single symbol to be in time.
    is_thrifty: bool,
    /// The mean pause between symbols, in seconds, and whether the flow is thin ([`THIN`]).
    pause: f64,
    is_thin: bool,
    /// The average of the losses.
    loss: f64,
    /// Packets of which the fate is known.
    known: f64,
    /// What the newest symbols are owed, in repairs.
    debt: f64,
    /// Repairs that may be sent.
    budget: f64,
    /// When the last symbol was sent.
    last_symbol: Option<ctcp_base::Instant>,
}

impl Protection {
    pub(in crate::code) fn new(redundancy: Redundancy) -> Self {
        let (loss, known) = (LOSS_FIRST, PACKETS_FIRST);
        let budget = SAVINGS_MAX;
        Self {
            redundancy,
            is_thrifty: false,
            pause: 0.0,
            is_thin: false,
            loss,
            known,
            debt: 0.0,
            budget,
            last_symbol: None,
        }
    }

    /// For data of which the rate counts as much as the delay.
    pub(in crate::code) fn thrifty(self) -> Self {
        Self { is_thrifty: true, ..self }
    }

    /// A packet was acknowledged or lost.
    pub(in crate::code) fn on_fate(&mut self, is_lost: bool) {
        self.known = (self.known + 1.0).min(PACKETS_AVERAGED);
        self.loss += (f64::from(u8::from(is_lost)) - self.loss) / self.known;
    }

    /// A packet that counts as lost was only late.
    pub(in crate::code) fn on_spurious_loss(&mut self) {
        self.loss = (self.loss - 1.0 / self.known).max(0.0);
    }

    /// A new symbol was sent.
    pub(in crate::code) fn on_symbol(&mut self, situation: &Situation) {
        let pause = self.last_symbol.map_or(situation.rtt, |last| situation.now - last);
        self.last_symbol = Some(situation.now);
        self.pause += (pause.min(situation.rtt).as_secs_f64() - self.pause) * PAUSE_WEIGHT;
        self.is_thin = situation.rtt.as_secs_f64() < self.pause * THIN.min(situation.window / 2.0);
        self.debt += self.share();
        let thin = pause.as_secs_f64() * situation.thin_repairs;
        let earned = self.earned().max(thin.min(1.0));
        self.budget = (self.budget + earned).min(SAVINGS_MAX.max(earned));
    }

    /// A repair was sent. One for a known deficit protects nothing else.
    pub(in crate::code) fn on_repair(&mut self, is_for_deficit: bool) {
        self.budget = (self.budget - 1.0).max(-OVERDRAFT_MAX);
        if !is_for_deficit {
            self.debt = (self.debt - 1.0).max(0.0);
        }
    }

    /// Whether a repair of the newest symbols should be sent. At the tail any debt is enough.
    pub(in crate::code) fn is_owed(&self, is_tail: bool) -> bool {
        let has_debt = if is_tail { self.is_exposed() } else { self.debt >= 1.0 };
        has_debt && self.budget >= 1.0
    }

    /// Whether some symbols have less than what they are owed.
    pub(in crate::code) fn is_exposed(&self) -> bool {
        self.debt > 1e-6
    }

    /// The margin of deficits.
    pub(in crate::code) fn margin(&self, dispersion: f64) -> Margin {
        let loss = self.loss.min(LOSS_MAX);
        Margin {
            loss,
            dispersion,
            shortfall: self.is_thrifty.then_some(if self.is_thin { 0.0 } else { THRIFTY_DEFICIT }),
            has_budget: self.redundancy != Redundancy::FEEDBACK && self.budget > -OVERDRAFT_MAX,
        }
    }

    /// Repairs that a symbol is owed.
    fn share(&self) -> f64 {
        if self.redundancy.ratio().is_some() || self.redundancy == Redundancy::FEEDBACK {
            return self.redundancy.ratio_or(1.0) - 1.0;
        }
        let loss = self.loss.min(LOSS_MAX);
        if loss < LOSS_CLEAN {
            return 0.0;
        }
        if self.is_thrifty {
            return THRIFTY_PART * loss;
        }
        (loss / (1.0 - loss) + 1.0 / (2.0 + SHARE_WAITING / loss)).min(self.earned())
    }

    /// Repairs that a symbol earns.
    fn earned(&self) -> f64 {
        let packets = PACKETS_PER_SYMBOL / (1.0 - self.loss.min(LOSS_MAX));
        self.redundancy.ratio().unwrap_or(packets) - 1.0
    }
}

impl Margin {
    /// Whether `in_flight` repairs are too few for a deficit of `missing`.
    pub(in crate::code) fn is_short(&self, in_flight: u64, missing: u64) -> bool {
        let (sent, missing) = (in_flight as f64, missing as f64);
        // All packets have one fate at most, so their dispersion is at most their number.
        let variance = self.dispersion.min(sent) * sent * self.loss * (1.0 - self.loss);
        let surplus = (1.0 - self.loss) * sent - missing;
        let wanted = self.shortfall.map_or_else(|| DEVIATIONS * variance.sqrt(), |shortfall| -shortfall);
        sent < missing || self.has_budget && surplus < wanted
    }
}

#[cfg(test)]
mod tests;
