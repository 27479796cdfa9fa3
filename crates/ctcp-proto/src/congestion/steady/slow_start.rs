//! When to stop doubling: at a queue, or when more packets bring no more. Loss alone is no reason.

use core::time::Duration;

use super::super::Acked;
use super::super::round::Plateau;
use super::tally::Tally;
use crate::recovery::rtt::RttView;

/// A queue of an eighth of the path ends slow start, as in HyStart++ (RFC 9406), but noise does not. (It has 4 ms there.
/// Two are enough for the minimum of a whole round trip, and find short queues in time.)
const ROUND_QUEUE_MIN: Duration = Duration::from_millis(2);

/// How many samples of the round trip must have seen it.
const ROUND_SAMPLES: u32 = 8;

/// The same for the newest samples, which see the queue up to a round trip earlier.
const RECENT_QUEUE_MIN: Duration = Duration::from_millis(4);

/// A round trip with samples no higher than this had no queue.
const CALM: Duration = Duration::from_millis(1);

/// More loss by this that brings less than a quarter more packets is a full queue, too short to be seen.
const MORE_LOSS: f64 = 0.2;
const MORE_PACKETS: f64 = 1.25;

/// How many packets say something of the path's loss.
const PACKETS_MIN: u32 = 24;

/// Where delay varies by itself, slow start is over when twice in a row less than this factor more arrives.
const SLOW: f64 = 1.3;
const SLOW_ROUNDS: u32 = 2;

/// Looking for the capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    plateau: Plateau,
    least_loss: Option<f64>,
    /// Packets acknowledged and lost in round trips without a moving queue: all of them, and all but the last one's.
    calm: (u32, u32),
    calm_before: (u32, u32),
    acked_before: u32,
    /// Round trips in a row in which hardly more arrived than before.
    slow_rounds: u32,
    rounds: u32,
    /// A queue was seen: does the next round trip see it, too?
    suspects: Option<u32>,
}

impl SlowStart {
    /// The path's own loss: that of the round trips without a moving queue, or the smallest of one without any.
    pub(super) fn least_loss(&self) -> f64 {
        let (acked, lost) = self.calm_before;
        let all = acked + lost;
        let calm = (all >= PACKETS_MIN).then(|| f64::from(lost) / f64::from(all));
        calm.or(self.least_loss).unwrap_or(0.0)
    }

    /// A packet was acknowledged. `round`: the round trip so far; `recent`: a whole stretch of newest samples, if there is
    /// one; `mean`: the empty path, where its delay varies by itself. Returns whether the link is full.
    pub(super) fn on_ack(
        &mut self,
        acked: &Acked,
        round: &Tally,
        recent: Option<&Tally>,
        mean: Option<Duration>,
    ) -> bool {
        let base = acked.rtt.minimum;
        let visible = Self::visible(&acked.rtt);
        let has_queue = |tally: &Tally, least: Duration| tally.queue(base) > least;
        // In the first round trips the delivery rate is not known yet.
        let is_recent =
            self.rounds > 1 && recent.is_some_and(|recent| has_queue(recent, visible.max(RECENT_QUEUE_MIN)));
        let is_flat = self.plateau.on_ack(acked);
        let is_seen = is_recent || round.acked >= ROUND_SAMPLES && has_queue(round, visible);
        if let Some(mean) = mean {
            self.suspects = None;
            let is_late =
                recent.is_some_and(|recent| has_queue(recent, mean.saturating_sub(base) + mean / 8));
            return is_flat || self.slow_rounds >= if is_late { 1 } else { SLOW_ROUNDS };
        }
        let is_confirmed = is_seen && self.suspects.is_some_and(|since| since < self.rounds);
        if is_seen {
            self.suspects.get_or_insert(self.rounds);
        }
        is_flat || is_confirmed
    }

    /// The shortest queue that is told from noise.
    pub(super) fn visible(rtt: &RttView) -> Duration {
        ROUND_QUEUE_MIN.max(rtt.minimum / 8).max(rtt.variance * 2)
    }

    /// Whether the window waits for a second look at what may be a queue.
    pub(super) fn waits(&self) -> bool {
        self.suspects.is_some()
    }

    /// A round trip is over. Returns whether the link is full.
    pub(super) fn on_round(&mut self, round: &Tally, base: Duration, is_restless: bool) -> bool {
        let mut is_full = false;
        self.calm_before = self.calm;
        if !round.is_moving(base) {
            self.calm.0 += round.acked;
            self.calm.1 += round.lost;
        }
        let is_slow = f64::from(round.acked) < SLOW * f64::from(self.acked_before);
        self.slow_rounds = if is_slow && is_restless { self.slow_rounds + 1 } else { 0 };
        if let Some(loss) = round.loss() {
            let is_flat = f64::from(round.acked) < MORE_PACKETS * f64::from(self.acked_before);
            is_full = is_flat && loss > self.least_loss.unwrap_or(1.0) + MORE_LOSS;
            if !is_full && round.highest <= base + CALM {
                self.least_loss = Some(self.least_loss.map_or(loss, |least| least.min(loss)));
            }
        }
        self.acked_before = round.acked;
        self.rounds += 1;
        // Behind a whole round trip that did not see it.
        if self.suspects.is_some_and(|since| since + 1 < self.rounds) {
            self.suspects = None;
        }
        is_full
    }
}
