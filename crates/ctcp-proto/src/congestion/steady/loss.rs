//! What [`Steady`] does when packets are lost, too many of them, or all.

use core::time::Duration;

use super::hold::Hold;
use super::loss_origin::{Fate, Verdict};
use super::slow_start::SlowStart;
use super::tally::Tally;
use super::{BeforeTimeout, COMPETE_MIN, INITIAL_WINDOW, Mode, Steady, TOKENS_MIN, seconds_ratio};
use crate::PacketNumber;
use crate::congestion::{Lost, TimedOut};

/// A time-out leaves so many, if there were as many.
const FEW_TOKENS: f64 = 8.0;

/// And so many, if more was lost than the path loses by itself.
const TOKENS_OF_LUCK: f64 = 2.0;

/// How long the target is halved after loss that was ours. (A smaller part of it would be starved by noise.)
const CAREFUL: Duration = Duration::from_secs(5);

/// With this much loss that is believed to be the path's own, more of it than expected is answered more softly.
const LOSS_KNOWN: f64 = 0.02;

/// The bounds of a back-off at loss: no harder than Reno, and at an overflowing queue no softer than Cubic (RFC 9438).
const BACK_OFF_HARDEST: f64 = 0.5;
const BACK_OFF_OVERFLOW: f64 = 0.7;

/// A loss at this share of the longest queue ever seen is an overflow.
const OVERFLOW_AT: f64 = 0.7;

impl Steady {
    /// Learns what became of a packet.
    pub(super) fn on_fate(&mut self, fate: Fate) {
        let dispersion = self.origin.dispersion();
        let is_beginning = matches!(self.mode, Mode::SlowStart(_)) && self.stood_still.is_none();
        if self.breaker.on_fate(&fate, self.seen(), dispersion, self.tokens, is_beginning) {
            self.trip(fate.number);
        }
        match self.origin.on_fate(fate) {
            // The queue overflowed below the target, or there is none: ask for less of it.
            Some(Verdict::Ours) => {
                self.careful_until = Some(fate.now + CAREFUL);
                self.tokens = self.tokens.min(self.delivered_in_base()).max(TOKENS_MIN);
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.slow_down();
                }
            }
            Some(Verdict::Innocent) => self.careful_until = None,
            None => {}
        }
    }

    /// What the link delivers in the time of the empty path, in packets; before that is known, the window.
    fn delivered_in_base(&self) -> f64 {
        self.rtt.and_then(|rtt| self.delivered_in(self.base.empty(&rtt))).unwrap_or(self.tokens)
    }

    /// Far more is lost than is believed to be the path's own: less is sent, whatever else is believed.
    fn trip(&mut self, number: PacketNumber) {
        let Some(largest_sent) = self.largest_sent else { return };
        let beta = if self.seen() > LOSS_KNOWN { BACK_OFF_OVERFLOW } else { BACK_OFF_HARDEST };
        if !self.back_off_once(number, largest_sent, beta) {
            return;
        }
        self.push.abandon();
        match self.mode {
            Mode::SlowStart(mut start) => {
                let (is_full, is_over) = start.on_trip(self.follow.rise());
                self.mode = Mode::SlowStart(start);
                if is_full {
                    self.tokens = self.delivered_in_base().max(TOKENS_MIN);
                }
                if is_over {
                    self.mode = Mode::Hold(Hold::behind_slow_start());
                    self.breaker.ignore(largest_sent);
                    self.origin.on_overshoot(largest_sent, start.least_loss());
                }
            }
            Mode::Hold(_) => self.mode = Mode::Hold(Hold::new()),
            Mode::Compete { .. } => {}
        }
    }

    /// A packet was lost.
    pub(super) fn answer_loss(&mut self, lost: &Lost) {
        let rtt = &lost.rtt;
        self.tally.lost += 1;
        let before = self.neighbours.before(lost.number);
        let is_calm = before.max(rtt.latest) <= self.calm_below(rtt);
        self.on_fate(Fate { now: lost.now, number: lost.number, is_lost: true, is_calm });
        if let Mode::Hold(hold) = self.mode {
            let queue = rtt.latest.min(before).saturating_sub(self.base.empty(rtt));
            self.on_overflow(lost, hold, queue);
        }
        if let Mode::Compete { .. } = self.mode {
            let queue = rtt.latest.saturating_sub(rtt.minimum_ever);
            let is_overflow = queue > self.highest_queue.mul_f64(OVERFLOW_AT);
            let softest = if is_overflow { BACK_OFF_OVERFLOW } else { 1.0 };
            let beta = seconds_ratio(rtt.minimum_ever, rtt.standing).clamp(BACK_OFF_HARDEST, softest);
            self.back_off_once(lost.number, lost.largest_sent, beta);
        }
    }

    /// Nothing was heard for the retransmission time-out.
    pub(super) fn answer_timeout(&mut self, timed_out: &TimedOut) {
        // Of several in a row only the first says something of the window.
        if self.before_timeout.is_none() {
            let is_settled = !matches!(self.mode, Mode::SlowStart(_));
            self.before_timeout =
                Some(BeforeTimeout { tokens: self.tokens, is_settled, last: timed_out.largest_sent });
            // No more than there were. Few stay as they are: what comes after a burst of losses must get past it.
            self.tokens = (self.tokens / 2.0).clamp(self.tokens.min(FEW_TOKENS), INITIAL_WINDOW);
        }
        self.origin.abandon();
        self.push.abandon();
        self.yielding = None;
        self.round.begin(timed_out.largest_sent);
        self.is_recovering = false;
        if self.is_lossy {
            // Too much was sent: no new beginning. Where a full queue would be seen, it may have been bad luck.
            let least = if self.trust.has_contrast() { self.tokens.min(TOKENS_OF_LUCK) } else { TOKENS_MIN };
            self.tokens = (self.tokens / 2.0).max(least);
            self.mode = Mode::Hold(Hold::new());
            return;
        }
        self.mode = Mode::SlowStart(SlowStart::default());
        self.follow.forget();
        self.empty_at = None;
        self.tally = Tally::default();
        self.recent = Tally::default();
        self.base.forget_longer();
        self.careful_until = None;
        self.highest_queue = Duration::ZERO;
        self.highest_level = Duration::ZERO;
        self.compete_for = COMPETE_MIN;
        self.stood_still = Some(timed_out.largest_sent);
    }

    /// A packet sent before the time-out was not lost but late (RFC 4015): the window is what it was. Packet numbers never repeat, so
    /// that its acknowledgement is no other's.
    pub(super) fn undo_spurious_timeout(&mut self, number: PacketNumber) {
        let Some(before) = self.before_timeout.take() else { return };
        if number <= before.last && before.is_settled && self.tokens < before.tokens {
            self.tokens = before.tokens;
            self.mode = Mode::Hold(Hold::new());
        }
    }

    /// Once a round trip. Returns whether it is the time.
    pub(super) fn back_off_once(
        &mut self,
        number: PacketNumber,
        largest_sent: PacketNumber,
        beta: f64,
    ) -> bool {
        let is_time = self.backed_off.is_behind(number);
        if is_time {
            self.tokens = (self.tokens * beta).max(TOKENS_MIN);
            self.backed_off.begin(largest_sent);
            self.is_recovering = true;
        }
        is_time
    }

    /// A loss while the queue is nearly as long as it ever was: it overflows.
    fn on_overflow(&mut self, lost: &Lost, mut hold: Hold, queue: Duration) {
        let is_long = queue > self.highest_queue.mul_f64(OVERFLOW_AT) && queue > self.target(&lost.rtt) * 2;
        if is_long && self.back_off_once(lost.number, lost.largest_sent, BACK_OFF_OVERFLOW) {
            hold.slow_down();
            hold.settle();
            self.mode = Mode::Hold(hold);
        }
    }
}
