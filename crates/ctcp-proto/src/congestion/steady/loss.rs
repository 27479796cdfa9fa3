//! Reactions of [`Steady`] to the loss of packets, to excessive loss, and to timeouts.

use core::time::Duration;

use super::breaker::Flow;
use super::ceiling::Ceiling;
use super::hold::Hold;
use super::loss_origin::{Fate, Verdict};
use super::peak::Peak;
use super::response::Response;
use super::slow_start::SlowStart;
use super::still::Still;
use super::tally::Tally;
use super::{BeforeTimeout, COMPETE_MIN, INITIAL_WINDOW, Mode, Steady, TOKENS_MIN, seconds_ratio};
use crate::PacketNumber;
use crate::congestion::cubic_growth::{BETA, Growth};
use crate::congestion::{Controller, Lost, TimedOut};
use crate::recovery::bursts::Doubt;
use crate::recovery::pacer::BURST_TIME;

/// The first timeouts leave at least this many tokens, if there were as many. What the window held may be a burst of losses, which ends
/// only when more is sent. The intervals double, so this is little even on a dead path.
const FEW_TOKENS: f64 = 8.0;
const FEW_TIMEOUTS: u32 = 5;

/// After a timeout, half of the window is regained quickly. All of it is regained if the path itself loses packets in bursts of this
/// dispersion, so that the timeout is probably due to one of them.
const REGAINED: f64 = 0.5;
const BURSTY: f64 = 4.0;

/// The smallest window with which the end of a burst is awaited with more probes, unless the path is known for long ones.
const WINDOW_TO_PROBE: f64 = 2.0;

/// In slow start, so many losses and more of them than arrivals are taken for a path that is too narrow.
const MANY_LOST: u32 = 8;

/// How long the target is halved after congestion loss. A smaller fraction of the target would be starved by noise.
const CAREFUL: Duration = Duration::from_secs(5);

/// With this much loss of the path's own, a whole window may be lost by chance.
const LOSS_KNOWN: f64 = 0.02;

/// Below this window, at a queue, and alongside other flows, single losses count as independent though that may hide bursts. The path is then less
/// trusted.
const SINGLES_COUNT: f64 = 64.0;

/// On a path whose delay varies by itself, a queue may overflow in moments that look calm. Its losses must not pass for the path's own within a
/// round trip, so that loss is averaged over so many windows.
const CALM_WINDOWS: f64 = 4.0;

/// A window from this size on is large. On a path whose delay varies, loss that slow start measures then counts as the path's own, and an
/// overflow is remembered. A smaller window has too few packets to tell, or shares the path with many flows.
pub(super) const LARGE: f64 = 64.0;

/// If larger windows lose more, a window from this size on is cut as CUBIC does, and the overflow is remembered. Among many flows it is smaller.
const SHOWN_FROM: f64 = 32.0;

/// Bounds of a back-off at loss: at most Reno's, and at an overflowing queue at least Cubic's (RFC 9438).
const BACK_OFF_HARDEST: f64 = 0.5;
pub(super) const BACK_OFF_OVERFLOW: f64 = BETA;

/// A softer back-off changes nothing, and would keep the breaker from one in the same round trip.
const BACK_OFF_LEAST: f64 = 0.95;

/// A loss with a queue above this fraction of the longest one seen is an overflow.
const OVERFLOW_AT: f64 = 0.7;

impl Steady {
    /// Processes the fate of a packet. `largest_sent` is the last packet sent so far.
    pub(super) fn on_fate(&mut self, fate: Fate, largest_sent: PacketNumber) {
        let dispersion = self.origin.dispersion();
        let has_lost_flight =
            self.has_lost_flight || self.before_timeout.is_some_and(|before| before.was_used);
        let flow = Flow {
            window: self.tokens,
            is_beginning: matches!(self.mode, Mode::SlowStart(_))
                && !has_lost_flight
                && !self.restart.has_begun(),
            is_unused: !self.has_filled_window && !has_lost_flight,
            is_queued: self.is_queued,
        };
        if self.push.is_running() {
            self.breaker.ignore(fate.number);
        } else if self.breaker.on_fate(&fate, self.origin.seen(), dispersion, flow) {
            self.trip(fate.number, largest_sent);
        }
        let at_once = if fate.is_lost { self.sent_at_once() } else { 0 };
        let is_competing = matches!(self.mode, Mode::Compete { .. });
        let do_singles_count = self.is_queued || is_competing || self.tokens < SINGLES_COUNT;
        let memory = if self.base.is_restless() { CALM_WINDOWS * self.tokens } else { 0.0 };
        match self.origin.on_fate(fate, Doubt { at_once, do_singles_count }, memory) {
            // The queue overflowed below the target or is too short to be seen: aim at a shorter one.
            Some(Verdict::Ours) => {
                self.careful_until = Some(fate.now + CAREFUL);
                self.regain = None;
                self.restart.on_trouble();
                self.limit_to(self.rtt.and_then(|rtt| self.delivered_in(self.base.empty(&rtt))));
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.slow_down();
                    hold.stop_learning();
                }
            }
            Some(Verdict::Innocent) => self.careful_until = None,
            None => {}
        }
    }

    /// A round trip is over, after which `window` packets may be in flight: the path's own loss is at most that of smaller windows. Those of slow start do not count, which overshoots.
    pub(super) fn compare_losses(&mut self, round: &Tally, window: f64) {
        if matches!(self.mode, Mode::SlowStart(_)) {
            self.response = Response::default();
            return;
        }
        let dispersion = self.origin.dispersion();
        let found = self.response.on_round(window, round.acked, round.lost, dispersion);
        if let Some(loss) = found {
            self.origin.limit(loss);
        }
    }

    /// How many packets the pacer lets go at once.
    fn sent_at_once(&self) -> u32 {
        self.pacing_rate()
            .map_or(0, |rate| (rate * BURST_TIME.as_secs_f64() / self.datagram as f64).ceil() as u32)
    }

    /// Far more is lost than is attributed to the path. Cuts the window to half. The first cut is to 0.7 where noise hides the queue or loss
    /// rises with the window.
    fn trip(&mut self, number: PacketNumber, largest_sent: PacketNumber) {
        let is_settled = !matches!(self.mode, Mode::SlowStart(_));
        let is_noise = self.is_large_and_restless() && !self.is_queued;
        let is_shown = self.response.is_found() && self.tokens >= SHOWN_FROM;
        let is_hidden = is_settled && (is_noise || is_shown);
        // As CUBIC does, unless that was not enough.
        let is_soft = is_hidden && !self.ceiling.is_recent();
        if self.is_queued || is_hidden {
            self.restart.forbid();
        }
        let before = self.tokens;
        let beta = if is_soft { BACK_OFF_OVERFLOW } else { BACK_OFF_HARDEST };
        let held =
            if let Mode::Hold(hold) = self.mode { hold.on_trip(self.tokens) } else { Hold::after_trip() };
        if !self.back_off_once(number, largest_sent, beta) {
            return;
        }
        let delivered = self.rtt.and_then(|rtt| self.delivered_in(rtt.smoothed));
        let overflowed = delivered.map_or(before, |delivered| delivered.min(before));
        self.ceiling = if is_hidden { Ceiling::at(overflowed) } else { Ceiling::default() };
        // The queue cannot be longer than this. An older value may be that of another link.
        let highest = self.tally.highest.max(self.recent.highest);
        let queue = highest.saturating_sub(self.rtt.map_or(highest, |rtt| rtt.minimum_ever));
        self.highest_queue = queue.max(self.highest_queue / 2);
        // The window may be far larger than what arrives.
        self.limit_to(delivered);
        if let Mode::SlowStart(start) = self.mode {
            let is_moving = self.rtt.is_some_and(|rtt| self.tally.is_moving(rtt.minimum));
            self.restart.on_trip(!self.is_queued && !is_moving);
            self.learn_from(&start);
            // What is in flight was sent too fast, as at the other ends of slow start. A small window may be one of many.
            if before >= LARGE {
                self.breaker.ignore(largest_sent);
            }
        }
        if !matches!(self.mode, Mode::Compete { .. }) {
            self.mode = Mode::Hold(held);
        }
    }

    /// Whether noise may hide a queue of this flow, whose window is large enough to tell the path's loss.
    fn is_large_and_restless(&self) -> bool {
        self.base.is_restless() && self.tokens >= LARGE
    }

    /// Slow start is over. On a path with noise hardly any moment of it looked calm, so what it measured is used.
    pub(super) fn learn_from(&mut self, start: &SlowStart) {
        if self.is_large_and_restless() {
            self.origin.on_slow_start(start.least_loss());
        }
    }

    /// Limits the window to what the link delivers, if that is known. Returns whether it was larger.
    pub(super) fn limit_to(&mut self, delivered: Option<f64>) -> bool {
        let limited = self.tokens.min(delivered.unwrap_or(self.tokens)).max(TOKENS_MIN);
        let was_larger = limited < self.tokens;
        if was_larger {
            self.tokens = limited;
            self.growth = Growth::from_plateau(limited);
            self.peak = Peak::default();
        }
        was_larger
    }

    /// The first packet since a timeout was acknowledged. If it was sent before the timeout, that was spurious (RFC 4015), so the window is
    /// restored. Packet numbers never repeat, so the acknowledgement is unambiguous.
    pub(super) fn judge_timeout(&mut self, number: PacketNumber) {
        let Some(before) = self.before_timeout.take() else { return };
        let is_spurious = number <= before.last;
        self.has_lost_flight |= before.was_used && !is_spurious;
        if is_spurious && before.is_settled && self.tokens < before.tokens {
            self.tokens = before.tokens;
            self.mode = Mode::Hold(Hold::new());
        }
    }

    /// Backs off at most once per round trip. Returns whether it did.
    pub(super) fn back_off_once(
        &mut self,
        number: PacketNumber,
        largest_sent: PacketNumber,
        beta: f64,
    ) -> bool {
        let is_time = self.backed_off.is_after(number);
        if is_time {
            self.growth.on_reduction(self.tokens, beta);
            self.tokens = (self.tokens * beta).max(TOKENS_MIN);
            self.backed_off.begin(largest_sent);
            self.regain = None;
            // An answer to congestion is not undone.
            self.before_timeout = None;
            self.push.abandon();
            self.peak = Peak::default();
            self.is_recovering = true;
            // The delivery rate would undo a back-off soon after slow start.
            if let Mode::Hold(hold) = &mut self.mode {
                hold.on_congestion();
            }
        }
        is_time
    }

    /// Whether the window does not grow because the flow recovers from a loss, as the flows it competes with do (RFC 9002 section 7.3.2).
    /// Where loss and noise come together, a flow is nearly always in recovery, so it grows nevertheless.
    pub(super) fn waits_for_recovery(&self) -> bool {
        self.is_recovering && !self.base.is_restless()
    }

    /// From about this length on, above the shortest RTT ever seen, the queue overflows.
    pub(super) fn full_queue(&self) -> Duration {
        self.highest_queue.mul_f64(OVERFLOW_AT)
    }

    /// A packet was lost.
    pub(super) fn answer_loss(&mut self, lost: &Lost) {
        let rtt = &lost.rtt;
        self.tally.on_loss(lost.number);
        self.restart.on_trouble();
        let is_calm = self.is_calm_loss(lost);
        self.on_fate(Fate { now: lost.now, number: lost.number, is_lost: true, is_calm }, lost.largest_sent);
        if let Mode::SlowStart(_) = self.mode {
            self.limit_to_arrivals();
        }
        if let Mode::Compete { .. } = self.mode {
            let queue = rtt.latest.saturating_sub(rtt.minimum_ever);
            let is_overflow = queue > self.full_queue();
            let softest = if is_overflow || self.is_lossy { BACK_OFF_OVERFLOW } else { 1.0 };
            let beta = seconds_ratio(self.base.empty(rtt), rtt.standing).clamp(BACK_OFF_HARDEST, softest);
            if beta < BACK_OFF_LEAST {
                self.back_off_once(lost.number, lost.largest_sent, beta);
            }
        }
    }

    /// Most packets of a round trip of slow start are lost, so the path holds far fewer. A lost packet then makes no room for another one,
    /// until twice as many are in flight as arrived. A burst of losses costs little, since slow start goes on.
    fn limit_to_arrivals(&mut self) {
        let Tally { acked, lost, .. } = self.tally;
        if lost >= MANY_LOST && self.tally.is_mostly_lost() {
            let least = (2.0 * f64::from(acked)).max(FEW_TOKENS).min(self.tokens);
            self.tokens = (self.tokens - 1.0).max(least);
        }
    }

    /// Whether the path itself loses packets in bursts.
    pub(super) fn loses_in_bursts(&self) -> bool {
        self.origin.seen() >= LOSS_KNOWN && self.origin.dispersion() > BURSTY
    }

    /// How many packets the path itself loses in a row; 1 if that is not known, if more is lost than the path loses by itself, or with a tiny
    /// window: among many flows, drops of a full queue look the same.
    pub(super) fn lost_in_a_row(&self) -> u32 {
        let is_enough = self.tokens >= WINDOW_TO_PROBE || self.loses_in_bursts();
        let is_known = self.origin.seen() >= LOSS_KNOWN && is_enough && !self.is_lossy;
        if is_known { (self.origin.row_length().round() as u32).max(1) } else { 1 }
    }

    /// The retransmission timeout expired.
    pub(super) fn answer_timeout(&mut self, timed_out: &TimedOut) {
        let is_first = self.before_timeout.is_none();
        let is_settled = !matches!(self.mode, Mode::SlowStart(_));
        let window = self.in_flight();
        let before = self.before_timeout.get_or_insert(BeforeTimeout {
            tokens: self.tokens,
            is_settled,
            last: timed_out.largest_sent,
            count: 0,
            window,
            was_used: false,
        });
        before.count += 1;
        before.was_used |= 2.0 * timed_out.in_flight as f64 >= before.window;
        let before = *before;
        if is_first {
            self.empty_at = None;
            self.base.forget_longer();
            let part = if self.loses_in_bursts() { 1.0 } else { REGAINED };
            self.regain = before.is_settled.then_some(self.tokens * part);
            // Never more than there were. A small window stays as it is, since what is sent after a burst of losses must get through.
            self.tokens = (self.tokens / 2.0).clamp(self.tokens.min(FEW_TOKENS), INITIAL_WINDOW);
        } else {
            let least = if before.count <= FEW_TIMEOUTS { FEW_TOKENS } else { 1.0 };
            self.tokens = (self.tokens / 2.0).max(self.tokens.min(least));
        }
        self.base.on_timeout();
        self.origin.abandon();
        self.push.abandon();
        self.yielding = None;
        self.round.begin(timed_out.largest_sent);
        self.is_recovering = false;
        self.tally = Tally::default();
        self.recent = Tally::default();
        self.still = Still::default();
        self.stood_still = Some(timed_out.largest_sent);
        let is_too_much = self.is_lossy && self.origin.seen() < LOSS_KNOWN;
        if before.is_settled || is_too_much {
            self.mode = Mode::Hold(Hold::new());
        } else {
            self.mode = Mode::SlowStart(SlowStart::default());
            self.careful_until = None;
            self.compete_for = COMPETE_MIN;
        }
    }
}
