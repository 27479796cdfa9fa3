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

/// The delivery rate that grows by a smaller power of the window does not follow it,
const SLOW: f64 = 0.4;

/// and twice is no accident.
const SLOW_ROUNDS: u32 = 2;

/// The same where much is lost.
const SLOW_AT_LOSS: f64 = 0.5;

/// How often too much may be lost before it ends without that.
const TRIPS_MAX: u32 = 2;

/// How many packets say something of the path's loss.
const PACKETS_MIN: u32 = 24;

/// Standard deviations of the path's own noise that a queue exceeds.
const DEVIATIONS: u32 = 4;

/// Looking for the capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    plateau: Plateau,
    least_loss: Option<f64>,
    /// Packets acknowledged and lost in calm round trips: all of them, and all but the last one's.
    calm: (u32, u32),
    calm_before: (u32, u32),
    acked_before: u32,
    /// Round trips in a row in which the delivery rate did not follow the window.
    slow_rounds: u32,
    /// How often the loss was too much.
    trips: u32,
    rounds: u32,
    /// A queue was seen: does the next round trip see it, too?
    suspects: Option<u32>,
}

impl SlowStart {
    /// The path's own loss: that of the round trips without a queue.
    pub(super) fn least_loss(&self) -> f64 {
        let (acked, lost) = self.calm_before;
        let all = acked + lost;
        if all < PACKETS_MIN { self.least_loss.unwrap_or(0.0) } else { f64::from(lost) / f64::from(all) }
    }

    /// Too much is lost, and the delivery rate followed the window to the power of `rise`. Returns whether the link is full, and
    /// whether it is over.
    pub(super) fn on_trip(&mut self, rise: Option<f64>) -> (bool, bool) {
        self.trips += 1;
        let is_full = rise.is_some_and(|exponent| exponent < SLOW_AT_LOSS);
        (is_full, is_full || self.trips >= TRIPS_MAX)
    }

    /// A packet was acknowledged. `round`: the round trip so far; `recent`: a whole stretch of newest samples, if there is
    /// one; `base`: the empty path, and how far its samples deviate. Returns whether the link is full.
    pub(super) fn on_ack(
        &mut self,
        acked: &Acked,
        round: &Tally,
        recent: Option<&Tally>,
        (base, deviation): (Duration, Duration),
    ) -> bool {
        let visible = ROUND_QUEUE_MIN.max(base / 8).max(deviation * DEVIATIONS);
        let has_queue = |tally: &Tally, least: Duration| tally.queue(base) > least;
        // In the first round trips the delivery rate is not known yet.
        let is_recent =
            self.rounds > 1 && recent.is_some_and(|recent| has_queue(recent, visible.max(RECENT_QUEUE_MIN)));
        let is_flat = self.plateau.on_ack(acked);
        let is_seen = is_recent || round.acked >= ROUND_SAMPLES && has_queue(round, visible);
        let is_confirmed = is_seen && self.suspects.is_some_and(|since| since < self.rounds);
        if is_seen {
            self.suspects.get_or_insert(self.rounds);
        }
        is_flat || is_confirmed || self.slow_rounds >= SLOW_ROUNDS
    }

    /// The shortest queue that is told from noise.
    pub(super) fn visible(rtt: &RttView) -> Duration {
        ROUND_QUEUE_MIN.max(rtt.minimum / 8).max(rtt.variance * 2)
    }

    /// Whether the window waits for a second look at what may be a queue.
    pub(super) fn waits(&self) -> bool {
        self.suspects.is_some()
    }

    /// A round trip is over. `calm`: the mean round trip below which there is no queue; `rise`: how far the delivery rate follows the
    /// window. Returns whether the link is full.
    pub(super) fn on_round(
        &mut self,
        round: &Tally,
        base: Duration,
        calm: Duration,
        rise: Option<f64>,
    ) -> bool {
        self.calm_before = self.calm;
        if round.mean().is_some_and(|mean| mean < calm) {
            self.calm.0 += round.acked;
            self.calm.1 += round.lost;
        }
        let is_slow = round.acked > ROUND_SAMPLES * 2 && rise.is_some_and(|exponent| exponent < SLOW);
        self.slow_rounds = if is_slow { self.slow_rounds + 1 } else { 0 };
        let mut is_full = false;
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
