//! Our default: the paper's idea (back off by `RTTmin / RTT`, CTCP section 4.3) carried to where its letter fails.
//!
//! Algorithm 2 is starved by a millisecond of noise in RTT (as printed), fills every queue until it overflows, takes minutes
//! to fill a long fat link, and counts lost packets against its window. What is kept is its heart: loss alone
//! is no reason to slow down, a queue is. What is changed:
//!
//! - The queue is read off the *smallest* RTT of a round trip: a queue lifts every sample, a late wake-up some. Where the path's
//!   delay varies by itself, means over round trips stand for both the path and the queue ([`Base`]).
//! - A back-off leaves a small target queue: `(base + target / 2) / RTT`. It happens when the queue exceeds the
//!   target, not when a packet is lost, so on a link of our own the queue never fills.
//! - The target falls with the fourth root of the window: larger flows want a shorter queue, so that shares converge, and many small flows
//!   together want no more than a queue can hold (as Swift does, Kumar et al., SIGCOMM 2020).
//! - Growth doubles from round trip to round trip while the queue is low, up to an eighth of the window.
//! - The window is counted in packets that arrive; as many more are in flight as the path loses by itself, which
//!   [`LossOrigin`] keeps apart from the loss we cause.
//! - `RTTmin` slides over ten seconds. So that a queue of ours never passes for the path, we yield for a round trip
//!   when none was seen empty for five seconds.
//! - Slow start ignores loss while delay stands still or is mere noise, and ends when packets are lost while it moves: then
//!   a queue overflows.
//! - Whatever delay says, much more loss than the path's own halves the window ([`Breaker`]): among many flows a full queue looks
//!   like a lossy path.
//!
//! ```text
//!              queue seen, full without queue, or loss while delay moves
//!   SlowStart ----------------------------------------------------------> Hold <--.
//!       ^                                                                |  ^  |   | time-out: half of the window is regained
//!       | time-out                  four back-offs and still a queue:    |  |  '---'  at once, the rest by growth
//!       '--- in SlowStart           it is somebody else's                v  | the queue is gone
//!                                                                      Compete: one packet a round trip more, back off at loss,
//!                                                                               as TCP does
//! ```
//!
//! In both directions a back-off is an experiment: a queue that does not react to it at all is no queue but a longer
//! path, and becomes the new base. Among many flows a full queue does not react either. So the base rises only while no more is lost than
//! the path loses by itself. On a path with much noise, a [`Push`] asks first: more is sent, and if more arrives, the delay was no queue.

use core::time::Duration;

use ctcp_base::Instant;

use super::round::Round;
use super::{
    Acked, BACK_OFF_MARK, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, pacing_rate, packets_in,
};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

mod base;
mod breaker;
mod hold;
mod loss;
mod loss_origin;
mod neighbours;
mod noise;
mod push;
mod samples;
mod slow_start;
mod tally;

use base::Base;
use breaker::Breaker;
use hold::{Hold, Seen, Step};
use loss::{BACK_OFF_OVERFLOW, growth_of_reno};
use loss_origin::{Fate, LossOrigin};
use neighbours::Neighbours;
use push::{Found, MORE, Push};
use slow_start::SlowStart;
use tally::Tally;

/// Packets of the initial window; they leave paced, not in a burst. 46 KB: most small answers need no second round trip.
const INITIAL_WINDOW: f64 = 32.0;

/// The fewest tokens: one packet in twenty round trips, which the pacer spreads.
const TOKENS_MIN: f64 = 0.05;

/// How many samples a stretch has at least: noise spares one of so many.
const STRETCH_SAMPLES: u32 = 16;

/// The pacer runs ahead of the window, which is the limit.
const PACING_GAIN: f64 = 1.15;

/// In slow start the window doubles within the round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The smallest target, below which noise is taken for a queue.
const TARGET_MIN: Duration = Duration::from_millis(1);

/// The target is this part of the base over the fourth root of the window: flows with a larger window want a shorter queue, so that shares
/// converge, and many small flows do not want more than a queue can hold. And so much at least.
const TARGET_SHARE: f64 = 0.24;
const TARGET_SHARE_MIN: f64 = 1.0 / 16.0;

/// So many deviations of the number of arrivals in a round trip more: what it takes to keep a link busy through bad luck.
const TARGET_DEVIATIONS: f64 = 2.0;

/// The target is no more than half of the longest queue seen, unless that is very short: this part of the base.
const SHORT: u32 = 32;

/// How much more than the target the window may hold, measured by the delivery rate, in targets and in packets (an
/// ACK stands for two).
const CAP_TARGETS: f64 = 1.5;
const CAP_PACKETS: f64 = 2.5;

/// A path is restless when samples deviate by this part of its round trip.
const RESTLESS: u32 = 10;

/// Where means stand for the path, so many deviations of its noise are calm.
const CALM_DEVIATIONS: f64 = 1.4;

/// With more packets in a round trip, noise is told from what a queue does.
const NOISE_WINDOW_MIN: f64 = 12.0;

/// No back-off is harder where delay varies by itself.
const BACK_OFF_RESTLESS: f64 = 0.7;

/// Loss beyond the path's own that shows.
const LOSSY: f64 = 0.03;

/// While yielding, this share of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// Half of the window over which the minimum slides: it contains at least one yielding.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

/// How long to compete at least, doubled each time: a competitor is seldom gone at once.
const COMPETE_MIN: Duration = Duration::from_secs(1);
const COMPETE_MAX: Duration = Duration::from_secs(8);

/// What the controller is about.
#[derive(Clone, Copy, Debug)]
enum Mode {
    SlowStart(SlowStart),
    Hold(Hold),
    Compete { until: Instant },
}

/// What a time-out may have been wrong about.
#[derive(Clone, Copy, Debug)]
struct BeforeTimeout {
    tokens: f64,
    /// They were found, and not on their way there.
    is_settled: bool,
    /// The last packet sent before it.
    last: PacketNumber,
}

/// The default controller.
#[derive(Debug)]
pub(super) struct Steady {
    /// Packets that arrive in a round trip.
    tokens: f64,
    mode: Mode,
    origin: LossOrigin,
    base: Base,
    round: Round,
    tally: Tally,
    /// The last few samples.
    recent: Tally,
    backed_off: Round,
    is_recovering: bool,
    /// The longest queue that a sample saw; a trip of the breaker shortens it.
    highest_queue: Duration,
    /// The longest that all of a stretch of samples saw: noise is no part of it.
    highest_stretch: Duration,
    /// Packets up to this number may have waited for a path that stood still: no queue.
    stood_still: Option<PacketNumber>,
    /// The queue is shorter than the target: half of it will do until then.
    careful_until: Option<Instant>,
    /// Round trips for which we yield; `None`: we do not.
    yielding: Option<u32>,
    /// When a round trip last saw the queue nearly empty.
    empty_at: Option<Instant>,
    compete_for: Duration,
    /// Packets a round trip, beside somebody else.
    compete_growth: f64,
    rtt: Option<RttView>,
    rate: Option<f64>,
    breaker: Breaker,
    /// More is lost than the path loses by itself.
    is_lossy: bool,
    /// Until the first acknowledgement after a time-out.
    before_timeout: Option<BeforeTimeout>,
    datagram: u64,
    /// When the newest ACK came, whose packets share one sample.
    ack_at: Option<Instant>,
    round_began: Option<Instant>,
    push: Push,
    neighbours: Neighbours,
    /// After a time-out, the window doubles up to this.
    regain: Option<f64>,
}

impl Steady {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            tokens: INITIAL_WINDOW,
            mode: Mode::SlowStart(SlowStart::default()),
            origin: LossOrigin::default(),
            base: Base::default(),
            round: Round::default(),
            tally: Tally::default(),
            recent: Tally::default(),
            backed_off: Round::default(),
            is_recovering: false,
            highest_queue: Duration::ZERO,
            highest_stretch: Duration::ZERO,
            stood_still: None,
            careful_until: None,
            yielding: None,
            empty_at: None,
            compete_for: COMPETE_MIN,
            compete_growth: growth_of_reno(BACK_OFF_OVERFLOW),
            rtt: None,
            rate: None,
            breaker: Breaker::default(),
            is_lossy: false,
            before_timeout: None,
            ack_at: None,
            round_began: None,
            push: Push::default(),
            neighbours: Neighbours::default(),
            regain: None,
            datagram,
        }
    }

    /// The queue we want: a part of the path that falls with the window, what keeps the link busy through noise and luck, and no more
    /// than half of what the queue has room for, unless that is very short.
    fn target(&self, rtt: &RttView) -> Duration {
        let base = self.base.empty(rtt);
        let deviation = (self.tokens * self.origin.innocent(self.tokens) * self.origin.dispersion()).sqrt();
        let least = (TARGET_SHARE / self.tokens.max(TOKENS_MIN).sqrt().sqrt()).max(TARGET_SHARE_MIN);
        let share = least + TARGET_DEVIATIONS * deviation / self.tokens.max(1.0);
        let noise = if self.base.is_restless() { self.base.noise() } else { rtt.variance.min(base / 4) };
        let wanted = base.mul_f64(share).max(TARGET_MIN) + noise;
        let bearable = if self.careful_until.is_some() { wanted / 2 } else { wanted };
        bearable.min((self.highest_queue / 2).max(base / SHORT))
    }

    /// What the link delivers in `time`, in packets.
    fn delivered_in(&self, time: Duration) -> Option<f64> {
        self.rate.map(|rate| packets_in(rate, time, self.datagram))
    }

    /// The newest sample, and that of the packet `before`, took little longer than the empty path takes. On a path whose delay varies by itself few take less than the target.
    fn is_calm(&self, rtt: &RttView, before: Duration) -> bool {
        let longest = before.max(rtt.latest);
        let base = self.base.empty(rtt);
        let target = self.target(rtt);
        let queue = if self.base.is_restless() {
            target.max(self.base.noise().mul_f64(CALM_DEVIATIONS))
        } else if rtt.variance > base / RESTLESS {
            target
        } else if self.tokens > NOISE_WINDOW_MIN {
            target / 2 + 2 * self.base.noise()
        } else {
            target / 2
        };
        longest <= base + queue
    }

    fn is_yielding(&self) -> bool {
        self.yielding.is_some()
    }

    fn on_sample(&mut self, rtt: &RttView) {
        self.tally.on_packet(rtt.latest);
        self.highest_queue = self.highest_queue.max(rtt.latest.saturating_sub(rtt.minimum_ever));
        if self.whole_stretch().is_some() {
            self.highest_stretch = self.highest_stretch.max(self.recent.queue(rtt.minimum_ever));
            self.recent = Tally::default();
        }
        self.recent.on_packet(rtt.latest);
    }

    /// The newest samples, if they are enough for a stretch.
    fn whole_stretch(&self) -> Option<&Tally> {
        Some(&self.recent).filter(|recent| recent.acked >= STRETCH_SAMPLES.max(self.tokens as u32 / 8))
    }

    fn begin_round(&mut self, largest_sent: PacketNumber) -> Tally {
        self.round.begin(largest_sent);
        self.round_began = None;
        let following = self.tally.following();
        core::mem::replace(&mut self.tally, following)
    }

    /// A round trip is over.
    fn on_round(&mut self, acked: &Acked) {
        let began = self.round_began;
        let tally = self.begin_round(acked.largest_sent);
        let Some(lowest) = tally.lowest else { return };
        self.is_lossy = acked.loss_average > self.origin.seen() + LOSSY;
        let took = began.map_or(acked.rtt.smoothed, |began| acked.now - began);
        self.round_began = Some(acked.now);
        self.base.on_round(acked.now, &tally, &acked.rtt, self.tokens, self.is_lossy);
        let found = self.push.on_round(tally.acked, took, tally.samples.mean().unwrap_or(acked.rtt.smoothed));
        self.origin.on_round(acked.now, acked.rtt.smoothed);
        if self.careful_until.is_some_and(|until| acked.now > until) {
            self.careful_until = None;
        }
        let base = self.base.empty(&acked.rtt);
        let queue = self.base.queue(&acked.rtt, lowest);
        let target = self.target(&acked.rtt);
        self.origin.on_queue(self.highest_stretch, base);
        let above = if self.base.is_restless() { queue } else { lowest.saturating_sub(base) };
        self.consider_yielding(acked, above < target / 8);
        match self.mode {
            Mode::SlowStart(start) if tally.is_overflow(base) && !acked.is_app_limited => {
                self.leave_lossy_slow_start(acked, &start, &tally);
            }
            Mode::SlowStart(mut start) => {
                let is_full = start.on_round(
                    &tally,
                    acked.rtt.minimum,
                    self.base.is_restless() && !acked.is_app_limited,
                );
                self.mode = Mode::SlowStart(start);
                if is_full {
                    self.leave_slow_start(acked, &start);
                }
            }
            Mode::Hold(hold) if !self.is_yielding() => {
                if !self.is_pushing(acked, found, queue) {
                    self.on_hold_round(acked, hold, queue);
                }
            }
            Mode::Compete { until } if queue < target && acked.now > until => {
                self.mode = Mode::Hold(Hold::new());
            }
            Mode::Hold(_) | Mode::Compete { .. } => {}
        }
    }

    /// Begins and ends yielding: it shows the empty path, and which loss is ours.
    fn consider_yielding(&mut self, acked: &Acked, is_empty: bool) {
        if is_empty {
            self.empty_at = Some(acked.now);
        }
        let empty_at = *self.empty_at.get_or_insert(acked.now);
        if self.push.is_running() {
            return;
        }
        match self.yielding {
            Some(rounds) if rounds == 0 || !self.origin.has_enough(acked.largest_sent) => {
                self.yielding = Some(rounds + 1);
            }
            Some(_) => {
                self.origin.stop_sending(acked.largest_sent);
                self.yielding = None;
                self.empty_at = Some(acked.now);
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.settle();
                }
            }
            None if matches!(self.mode, Mode::SlowStart(_)) => {}
            None if self.origin.is_suspicious(acked.now, self.tokens) => {
                self.origin.begin(acked.largest_sent, self.tokens);
                self.yielding = Some(0);
            }
            None if acked.now - empty_at > YIELD_INTERVAL => {
                self.yielding = Some(0);
                // The occasion to check an old verdict.
                if self.origin.is_worth_checking(self.tokens) {
                    self.origin.begin(acked.largest_sent, self.tokens);
                }
            }
            None => {}
        }
    }

    fn on_slow_start_ack(&mut self, acked: &Acked, mut start: SlowStart) {
        if !start.waits() {
            self.tokens = (self.tokens + 1.0).min(WINDOW_MAX);
        }
        let mean = self.base.is_restless().then(|| self.base.empty(&acked.rtt));
        let is_full = start.on_ack(acked, &self.tally, self.whole_stretch(), mean);
        self.mode = Mode::SlowStart(start);
        if is_full {
            self.leave_slow_start(acked, &start);
        }
    }

    fn leave_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        let rtt = &acked.rtt;
        let wanted = self.base.empty(rtt).max(rtt.minimum) + self.target(rtt) / 2;
        let by_delay = self.tokens * seconds_ratio(wanted, rtt.standing);
        self.tokens = self.delivered_in(wanted).unwrap_or(by_delay).max(TOKENS_MIN);
        self.end_slow_start(acked, start);
    }

    fn end_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        self.mode = Mode::Hold(Hold::behind_slow_start());
        self.begin_round(acked.largest_sent);
        self.origin.on_queue(self.highest_stretch, acked.rtt.minimum);
        self.breaker.ignore(acked.largest_sent);
        self.origin.on_overshoot(acked.largest_sent, start.least_loss());
    }

    /// Packets are lost while the queue moves: it overflows, and what was learned in this round trip is not the path's own loss.
    fn leave_lossy_slow_start(&mut self, acked: &Acked, start: &SlowStart, tally: &Tally) {
        self.tokens = (self.tokens.min(f64::from(tally.acked)) * BACK_OFF_OVERFLOW).max(TOKENS_MIN);
        self.end_slow_start(acked, start);
    }

    fn on_hold_round(&mut self, acked: &Acked, mut hold: Hold, queue: Duration) {
        let base = self.base.empty(&acked.rtt);
        let seen = Seen { base, queue, target: self.target(&acked.rtt), is_lossy: self.is_lossy };
        let step = hold.on_round(self.tokens, &seen);
        self.mode = Mode::Hold(hold);
        match step {
            Step::Stay => {}
            Step::BackOff(beta) => {
                self.regain = None;
                let beta = if self.base.is_restless() { beta.max(BACK_OFF_RESTLESS) } else { beta };
                self.tokens = (self.tokens * beta).max(TOKENS_MIN);
            }
            Step::PathIsLonger(tokens) => {
                self.base.become_longer(acked.now, &acked.rtt, queue);
                self.tokens = tokens;
                self.mode = Mode::Hold(Hold::new());
            }
            Step::QueueIsNotOurs(tokens) => {
                self.tokens = tokens;
                self.mode = Mode::Compete { until: acked.now + self.compete_for };
                self.compete_for = (self.compete_for * 2).min(COMPETE_MAX);
            }
        }
    }

    /// Whether an experiment runs or begins; takes what it found.
    fn is_pushing(&mut self, acked: &Acked, found: Option<Found>, queue: Duration) -> bool {
        if let Some(found) = found {
            // What it loses is no news of the path, and the window of the next round trip is another.
            self.breaker.ignore(acked.largest_sent);
            let mut hold = Hold::new();
            if found == Found::Room && !self.is_lossy {
                self.base.become_longer(acked.now, &acked.rtt, queue);
                self.tokens = (self.tokens * MORE).min(WINDOW_MAX);
            } else {
                hold.settle();
            }
            self.mode = Mode::Hold(hold);
            return true;
        }
        if self.is_lossy || acked.is_app_limited {
            self.push.abandon();
        }
        let is_time = self.base.is_restless() && queue > self.target(&acked.rtt) / 2 && !self.is_lossy;
        self.push.is_running() || is_time && self.push.begin()
    }

    fn on_hold_ack(&mut self, acked: &Acked, hold: Hold) {
        let (base, target) = (self.base.empty(&acked.rtt), self.target(&acked.rtt));
        if let Some(wanted) = self.regain {
            if self.tokens < wanted && acked.rtt.standing < base + target {
                self.tokens += 1.0;
                return;
            }
            self.regain = None;
        }
        if hold.is_learning() {
            let delivered = self.delivered_in(base + target / 2).unwrap_or(self.tokens);
            self.tokens = self.tokens.max(delivered).min(WINDOW_MAX);
        }
        let room = self.delivered_in(base + target.mul_f64(CAP_TARGETS));
        let cap = room.map_or(WINDOW_MAX, |room| (room + CAP_PACKETS).min(WINDOW_MAX));
        if acked.rtt.standing < base + target && self.tokens < cap {
            self.tokens += hold.growth() / self.tokens.max(1.0);
        }
    }

    /// Packets that may be in flight: the tokens, and what the path loses of them by itself.
    fn in_flight(&self) -> f64 {
        let tokens = match (self.rtt, self.mode) {
            (Some(rtt), _) if self.is_yielding() => self
                .delivered_in(self.base.empty(&rtt))
                .map_or(self.tokens, |all| self.tokens.min(YIELD * all)),
            // Enough to see the queue again, if it is one.
            (Some(rtt), Mode::SlowStart(start)) if start.waits() => {
                let second = self.delivered_in(rtt.minimum + SlowStart::visible(&rtt) * 2);
                second.map_or(self.tokens, |second| self.tokens.min(second))
            }
            _ => self.tokens,
        };
        let arrives = 1.0 - self.origin.innocent(self.tokens);
        (tokens * self.push.gain() / arrives).min(WINDOW_MAX)
    }
}

impl Controller for Steady {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        let rtt = &acked.rtt;
        self.undo_spurious_timeout(acked.number);
        self.rtt = Some(*rtt);
        self.rate = acked.delivery_rate;
        if self.backed_off.is_behind(acked.number) {
            self.is_recovering = false;
        }
        let before = self.neighbours.on_sample(acked.number, rtt.latest);
        let is_calm = self.is_calm(rtt, before);
        self.on_fate(
            Fate { now: acked.now, number: acked.number, is_lost: false, is_calm },
            acked.largest_sent,
        );
        if self.round.is_behind(acked.number) {
            self.on_round(acked);
        }
        if self.stood_still.is_none_or(|last| acked.number > last) {
            self.on_sample(rtt);
            if self.ack_at.replace(acked.now) != Some(acked.now) {
                self.tally.samples.push(rtt.latest);
            }
        }
        if acked.ecn_ce {
            if let Mode::SlowStart(start) = self.mode {
                self.leave_slow_start(acked, &start);
            }
            self.back_off_once(acked.number, acked.largest_sent, BACK_OFF_MARK);
        } else if !acked.is_app_limited {
            match self.mode {
                Mode::SlowStart(start) => self.on_slow_start_ack(acked, start),
                _ if self.is_yielding() || self.push.is_running() => {}
                Mode::Hold(hold) => self.on_hold_ack(acked, hold),
                Mode::Compete { .. } => {
                    self.tokens = (self.tokens + self.compete_growth / self.tokens.max(1.0)).min(WINDOW_MAX);
                }
            }
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        self.answer_loss(lost);
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        self.answer_timeout(timed_out);
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.in_flight().clamp(1.0, WINDOW_MAX)
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.phase() == Phase::SlowStart { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        self.rtt.map(|rtt| pacing_rate(gain, self.in_flight(), self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        match self.mode {
            Mode::SlowStart(_) => Phase::SlowStart,
            _ if self.is_recovering => Phase::Recovery,
            Mode::Hold(_) | Mode::Compete { .. } => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        "steady"
    }
}

/// `part / whole`, finite.
fn seconds_ratio(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}
