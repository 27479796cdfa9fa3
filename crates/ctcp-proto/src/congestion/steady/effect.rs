//! What a smaller window does to a queue. If the queue stays as it was, or less arrives, it is no queue but a longer path.

use core::ops::Range;
use core::time::Duration;

use super::hold::Seen;
use super::{LOSSY, seconds_ratio};

/// Range of the queue, relative to that before the back-off, that counts as no reaction.
const UNMOVED: Range<f64> = 0.9..1.1;

/// Number of missing reactions in a row that are not chance.
const UNMOVED_MAX: u32 = 2;

/// Range of the queue, relative to that before the back-off took effect, that counts as the same. If the first back-off is large and leaves
/// the same queue, and no more is lost than before it by this fraction of packets, a second one would only starve the flow. The next round trip
/// confirms it. A queue that newcomers fill stays the same, too, but drops packets.
const SAME: Range<f64> = 0.97..1.03;
const SAME_MAX: u32 = 2;
const SAME_LOSS: f64 = 0.01;

/// Only if the window is smaller by at least this fraction than before the first back-off, the queue shows whose it is. A queue near the target
/// causes small back-offs, after which it may be the same by chance.
const REDUCED: f64 = 0.2;

/// On a path whose delay varies by itself, the rate of arrivals follows the window if a large reduction reduced it by at least this share.
const FOLLOWS: f64 = 0.6;

/// Elsewhere, a delay that stays the same counts as a queue if the rate fell by less than this share.
const FOLLOWS_LITTLE: f64 = 0.5;

/// Smaller windows have too few arrivals, and are those of many flows, whose queue does not react to one of them.
pub(super) const WINDOW_MIN: f64 = 32.0;

/// The measurements before the first back-off and since then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effect {
    /// The window before the first back-off.
    tokens_before: f64,
    /// The queue before the latest back-off, and in the round trip before it took effect.
    queue_before: Duration,
    queue_settling: Duration,
    /// Consecutive back-offs without a reaction, and round trips with the same queue since the first back-off.
    unmoved: u32,
    same: u32,
    /// The rate of arrivals in the last round trip.
    rate: f64,
    /// That of the round trip that led to the first back-off.
    rate_queued: f64,
    /// The mean of that and of the round trip before it.
    rate_before: f64,
    /// The loss in calm moments before the first back-off, which is not due to the queue.
    loss_before: f64,
    /// The breaker reduced a large window, and no round trip that was evaluated since had a short queue.
    has_tripped: bool,
}

impl Effect {
    /// The breaker tripped while a window of `tokens` was held, which was perhaps larger before `back_offs` of them.
    pub(super) fn on_trip(self, tokens: f64, back_offs: u32) -> Self {
        let before = if back_offs > 0 { self.tokens_before } else { tokens };
        Self { has_tripped: self.has_tripped || before >= WINDOW_MIN, ..Self::default() }
    }

    /// Whether the breaker reduced a large window, and no round trip that was evaluated since had a short queue.
    pub(super) fn has_tripped(&self) -> bool {
        self.has_tripped
    }

    /// A round trip without a queue above the target is over.
    pub(super) fn on_short_queue(&mut self, seen: &Seen) {
        self.rate = seen.rate;
        self.has_tripped = false;
    }

    /// A round trip is over whose packets were sent before the window changed.
    pub(super) fn on_settling(&mut self, seen: &Seen) {
        self.rate = seen.rate;
        self.queue_settling = seen.queue;
        self.same = 0;
    }

    /// The first back-off follows, from `tokens`.
    pub(super) fn begin(&mut self, tokens: f64, seen: &Seen) {
        let rate_before = if self.rate > 0.0 { (seen.rate + self.rate) / 2.0 } else { seen.rate };
        *self = Self {
            tokens_before: tokens,
            queue_before: seen.queue,
            unmoved: 0,
            same: 0,
            rate_queued: seen.rate,
            rate_before,
            loss_before: seen.calm_loss,
            ..*self
        };
    }

    /// A round trip after a back-off is over, with a window of `tokens`, and the queue is still above the target. `is_first` if there was
    /// one back-off.
    pub(super) fn on_queue(&mut self, tokens: f64, seen: &Seen, is_first: bool) {
        let was_awaited = self.awaits_confirmation();
        let is_same = SAME.contains(&seconds_ratio(seen.queue, self.queue_settling));
        let is_large_cut = is_first && self.is_large() && self.reduced(tokens) > REDUCED;
        let is_telling = is_large_cut
            && shows_rate(seen)
            && !self.keeps_link_busy(tokens, seen)
            && self.may_be_longer(seen);
        let is_clean = seen.loss <= self.loss_before + SAME_LOSS;
        self.same = if is_same && is_telling && is_clean { self.same + 1 } else { 0 };
        // There was no further back-off that could have moved it.
        if !was_awaited {
            let is_unmoved = UNMOVED.contains(&seconds_ratio(seen.queue, self.queue_before));
            self.unmoved = if is_unmoved { self.unmoved + 1 } else { 0 };
            self.queue_before = seen.queue;
        }
    }

    /// Whether the back-offs, after which the window is `tokens`, show that the path is longer by the queue.
    pub(super) fn is_longer_path(&self, tokens: f64, seen: &Seen) -> bool {
        let is_reduced = self.reduced(tokens) > REDUCED;
        let is_busy = self.keeps_link_busy(tokens, seen);
        let is_unmoved = self.unmoved >= UNMOVED_MAX && is_reduced && !is_busy && self.may_be_longer(seen);
        let is_followed = self.is_followed(tokens, seen) && !self.is_overflow(seen);
        is_unmoved || is_followed || self.same >= SAME_MAX
    }

    /// Whether another round trip without a further back-off says more.
    pub(super) fn awaits_confirmation(&self) -> bool {
        self.same > 0
    }

    /// Whether no other flow explains that the queue does not react. One that fills a queue usually overflows it first.
    fn may_be_longer(&self, seen: &Seen) -> bool {
        !seen.is_shared && !self.is_overflow(seen) && !self.has_tripped
    }

    /// Whether loss came with the queue. A small window has to assume it of any loss in excess of the path's own.
    fn is_overflow(&self, seen: &Seen) -> bool {
        if self.is_large() { seen.loss > self.loss_before + LOSSY } else { seen.is_lossy }
    }

    /// Whether back-offs made less arrive, which they do not while a queue keeps the link busy.
    fn is_followed(&self, tokens: f64, seen: &Seen) -> bool {
        let is_known = seen.is_restless && !seen.is_app_limited && self.is_large();
        let less = self.less(seen, self.rate_before);
        is_known && self.reduced(tokens) > REDUCED && less > FOLLOWS * self.reduced(tokens)
    }

    /// Whether about as much arrives as with the window from before, so that there is a queue. If fewer packets are lost on the way to it, it may
    /// stay the same though fewer are sent.
    fn keeps_link_busy(&self, tokens: f64, seen: &Seen) -> bool {
        shows_rate(seen)
            && self.is_large()
            && self.less(seen, self.rate_queued) <= FOLLOWS_LITTLE * self.reduced(tokens)
    }

    /// The fraction by which the rate of arrivals fell from `before`.
    fn less(&self, seen: &Seen, before: f64) -> f64 {
        1.0 - seen.rate / before.max(1e-9)
    }

    fn is_large(&self) -> bool {
        self.tokens_before >= WINDOW_MIN
    }

    /// The fraction by which the window was reduced to `tokens`.
    fn reduced(&self, tokens: f64) -> f64 {
        1.0 - tokens / self.tokens_before.max(1e-9)
    }

    /// The window before the first back-off.
    pub(super) fn tokens_before(&self) -> f64 {
        self.tokens_before
    }

    /// Whether the latest back-off had no effect, so that another one may show that the path is longer.
    pub(super) fn is_undecided(&self, tokens: f64, seen: &Seen) -> bool {
        self.unmoved > 0 && self.may_be_longer(seen) && !self.keeps_link_busy(tokens, seen)
    }
}

/// Whether the window alone decides how much arrives, and the delay shows the queue.
fn shows_rate(seen: &Seen) -> bool {
    !seen.is_restless && !seen.is_app_limited
}
