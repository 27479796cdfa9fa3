//! A path that became longer: when that is noticed, and the window on it.

use core::time::Duration;

use super::excess::Excess;
use super::hold::Hold;
use super::still::Still;
use super::{Acked, COMPETE_MIN, Mode, Steady, WINDOW_MAX, effect, seconds_ratio};

/// The share of what a longer path carries that is sent at once.
const LONGER: f64 = 0.9;

impl Steady {
    /// Whether the queue stays the same though the window shrinks. If so, follows the longer path.
    pub(super) fn follows_still_queue(
        &mut self,
        acked: &Acked,
        queue: Duration,
        is_queued: bool,
        has_pushed: bool,
    ) -> bool {
        let is_clear = is_queued && !self.base.is_restless() && !self.base.was_mistaken(acked.now);
        if !is_clear || acked.is_app_limited || matches!(self.mode, Mode::SlowStart(_)) {
            self.still = Still::default();
            return false;
        }
        if self.yielding.is_some() || has_pushed {
            return false;
        }
        let Some(tokens) = self.still.on_round(queue, self.tokens) else { return false };
        self.share.stop();
        self.compete_for = COMPETE_MIN;
        self.push.abandon();
        self.follow_longer_path(acked, queue, tokens);
        true
    }

    /// The path is longer by `queue`. The window was `tokens` before any back-off.
    pub(super) fn follow_longer_path(&mut self, acked: &Acked, queue: Duration, tokens: f64) {
        let before = self.base.empty(&acked.rtt);
        self.excess = Excess::default();
        self.base.become_longer(acked.now, &acked.rtt, queue);
        self.tokens = self.on_longer_path(acked, before, tokens);
        // What arrives next was sent with the reduced window.
        let mut hold = Hold::new();
        hold.settle();
        self.mode = Mode::Hold(hold);
    }

    /// The window on a path whose base was `before` and became longer, from `tokens`: nearly what it carries at the highest rate that arrived
    /// lately, but at most as much more as the path is longer. Where delay varies by itself what seemed to be a queue was perhaps none, and
    /// a small window may be one of many.
    fn on_longer_path(&self, acked: &Acked, before: Duration, tokens: f64) -> f64 {
        if self.base.is_restless() || tokens < effect::WINDOW_MIN {
            return tokens;
        }
        let base = self.base.empty(&acked.rtt);
        let most = tokens * seconds_ratio(base, before);
        let carried = self.delivered_in(base).unwrap_or(tokens) * LONGER;
        carried.min(most).max(tokens).min(WINDOW_MAX)
    }
}
