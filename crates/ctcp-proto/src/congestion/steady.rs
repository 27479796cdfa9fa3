//! Our default: the paper's idea (back off by `RTTmin / RTT`, CTCP section 4.3) carried to where its letter fails.
//!
//! Algorithm 2 is starved by a millisecond of noise in RTT (as printed), fills every queue until it overflows, takes minutes
//! to fill a long fat link, and counts lost packets against its window. What is kept is its heart: loss alone
//! is no reason to slow down, a queue is. What is changed:
//!
//! - The queue is read off the *smallest* RTT of a round trip: a queue lifts every sample, a late wake-up some.
//! - A back-off leaves a small target queue: `(base + target / 2) / RTT`. It happens when the queue exceeds the
//!   target, not when a packet is lost, so on a link of our own the queue never fills.
//! - Growth doubles from round trip to round trip while the queue is low, up to an eighth of the window.
//! - The window is counted in packets that arrive; as many more are in flight as the path loses by itself, which
//!   [`LossOrigin`] keeps apart from the loss we cause.
//! - `RTTmin` slides over ten seconds. So that a queue of ours never passes for the path, we yield for a round trip
//!   when none was seen empty for five seconds.
//! - Whatever delay says, much more loss than the path's own halves the window ([`Breaker`]): among many flows a full queue looks
//!   like a lossy path.
//!
//! ```text
//!              queue seen, or full without queue            time-out: from the beginning
//!   SlowStart ----------------------------------> Hold <---------------------------------
//!                                                 |  ^
//!              four back-offs and still a queue:  |  | the queue is gone
//!              it is somebody else's              v  |
//!                                               Compete: one packet a round trip more,
//!                                                        back off at loss, as TCP does
//! ```
//!
//! In both directions a back-off is an experiment: a queue that does not react to it at all is no queue but a longer
//! path, and becomes the new base.

use core::time::Duration;

use ctcp_base::Instant;

use super::round::Round;
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, pacing_rate, packets_in};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

mod base;
mod breaker;
mod follow;
mod hold;
mod loss;
mod loss_origin;
mod neighbours;
mod noise;
mod push;
mod slow_start;
mod tally;
mod trust;

use base::Base;
use breaker::Breaker;
use follow::Follow;
use hold::{Hold, Seen, Step};
use loss_origin::{Fate, LossOrigin};
use neighbours::Neighbours;
use push::{Found, Push};
use slow_start::SlowStart;
use tally::Tally;
use trust::Trust;

/// Packets of the initial window; they leave paced, not in a burst. 46 KB: most small answers need no second round trip.
const INITIAL_WINDOW: f64 = 32.0;

/// The fewest tokens: one packet in twenty round trips, which the pacer spreads.
const TOKENS_MIN: f64 = 0.05;

/// How many samples a stretch has at least: noise spares one of so many.
const STRETCH_SAMPLES: u32 = 16;

/// And a round trip.
const LEVEL_SAMPLES: u32 = 3;

/// The pacer runs ahead of the window, which is the limit.
const PACING_GAIN: f64 = 1.15;

/// In slow start the window doubles within the round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The smallest target, below which noise is taken for a queue.
const TARGET_MIN: Duration = Duration::from_millis(1);

/// The target in packets, and in deviations of the number of arrivals in a round trip: what it takes to keep a link
/// busy through bad luck.
const TARGET_PACKETS: f64 = 2.0;
const TARGET_DEVIATIONS: f64 = 2.0;

/// How much more than the target the window may hold, measured by the delivery rate, in targets and in packets (an
/// ACK stands for two).
const CAP_TARGETS: f64 = 1.5;
const CAP_PACKETS: f64 = 2.5;

/// The target is no more than a third of the longest queue seen, unless that is very short: so many parts of the base.
const SHORT: u32 = 16;

/// Below this part of the longest queue seen, nothing was dropped. And on a restless path, so many deviations are calm.
const CALM_QUEUE: f64 = 0.25;
const CALM_DEVIATIONS: f64 = 1.4;

/// Loss beyond the path's own that shows.
const LOSSY: f64 = 0.03;

/// On a restless path the window grows until the delivery rate follows with a smaller exponent than this.
const FULL: f64 = 0.4;

/// While yielding, this share of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// Half of the window over which the minimum slides: it contains at least one yielding.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

/// How long to compete at least, doubled each time: a competitor is seldom gone at once.
const COMPETE_MIN: Duration = Duration::from_secs(1);
const COMPETE_MAX: Duration = Duration::from_secs(8);

/// Growth beside somebody else, in packets a round trip: with the back-off of Cubic it gets Reno's share (RFC 9438 section 4.3).
const COMPETE_GROWTH: f64 = 0.53;

/// The back-off at a congestion mark (RFC 8511).
const BACK_OFF_MARK: f64 = 0.8;

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
    trust: Trust,
    push: Push,
    base: Base,
    neighbours: Neighbours,
    follow: Follow,
    round: Round,
    round_began: Option<Instant>,
    tally: Tally,
    /// The last few samples.
    recent: Tally,
    backed_off: Round,
    is_recovering: bool,
    /// More is lost than the path loses by itself.
    is_lossy: bool,
    /// The longest queue that a sample saw since the last time-out.
    highest_queue: Duration,
    /// The longest round trip that all of a stretch of samples saw: noise is no part of it.
    highest_level: Duration,
    /// Packets up to this number may have waited for a path that stood still: no queue.
    stood_still: Option<PacketNumber>,
    /// The queue is shorter than the target: half of it will do until then.
    careful_until: Option<Instant>,
    /// Round trips for which we yield; `None`: we do not.
    yielding: Option<u32>,
    /// When a round trip last saw the queue nearly empty.
    empty_at: Option<Instant>,
    compete_for: Duration,
    rtt: Option<RttView>,
    rate: Option<f64>,
    breaker: Breaker,
    largest_sent: Option<PacketNumber>,
    /// Until the first acknowledgement after a time-out.
    before_timeout: Option<BeforeTimeout>,
    datagram: u64,
}

impl Steady {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            tokens: INITIAL_WINDOW,
            mode: Mode::SlowStart(SlowStart::default()),
            origin: LossOrigin::default(),
            trust: Trust::default(),
            push: Push::default(),
            base: Base::default(),
            neighbours: Neighbours::default(),
            follow: Follow::default(),
            round: Round::default(),
            round_began: None,
            tally: Tally::default(),
            recent: Tally::default(),
            backed_off: Round::default(),
            is_recovering: false,
            is_lossy: false,
            highest_queue: Duration::ZERO,
            highest_level: Duration::ZERO,
            stood_still: None,
            careful_until: None,
            yielding: None,
            empty_at: None,
            compete_for: COMPETE_MIN,
            rtt: None,
            rate: None,
            breaker: Breaker::default(),
            largest_sent: None,
            before_timeout: None,
            datagram,
        }
    }

    /// The share of packets that the path loses by itself, as far as it may be believed.
    fn innocent(&self) -> f64 {
        if self.trust.is_given() { self.origin.innocent(self.tokens) } else { 0.0 }
    }

    /// The share that is lost in calm moments, unless that says nothing.
    fn seen(&self) -> f64 {
        if self.trust.is_given() { self.origin.seen() } else { 0.0 }
    }

    /// The queue we want: enough to keep the link busy through noise and luck, a tenth of the path at least, and never
    /// more than a third of what the queue has room for.
    fn target(&self, rtt: &RttView) -> Duration {
        let base = self.base.empty(rtt);
        let deviation = (self.tokens * self.innocent() * self.origin.dispersion()).sqrt();
        let share = (TARGET_PACKETS + TARGET_DEVIATIONS * deviation) / self.tokens.max(1.0);
        let noise = rtt.variance.min(base / 4);
        let wanted = base.mul_f64(share).max(base / 10).max(TARGET_MIN) + noise;
        let bearable = if self.careful_until.is_some() { wanted / 2 } else { wanted };
        bearable.min((self.highest_queue / 3).max(base / SHORT))
    }

    /// What the link delivers in `time`, in packets.
    fn delivered_in(&self, time: Duration) -> Option<f64> {
        self.rate.map(|rate| packets_in(rate, time, self.datagram))
    }

    /// Round trips no longer than this had next to no queue. On a path whose delay varies by itself few are shorter than the target.
    fn calm_below(&self, rtt: &RttView) -> Duration {
        let target = self.target(rtt);
        let queue = if self.base.is_restless() {
            target.max(self.base.deviation().mul_f64(CALM_DEVIATIONS))
        } else {
            (target / 2).max(self.highest_queue.mul_f64(CALM_QUEUE))
        };
        self.base.empty(rtt) + queue
    }

    fn is_yielding(&self) -> bool {
        self.yielding.is_some()
    }

    fn on_sample(&mut self, rtt: &RttView) {
        self.tally.on_sample(rtt.latest);
        self.highest_queue = self.highest_queue.max(rtt.latest.saturating_sub(rtt.minimum_ever));
        if self.whole_stretch().is_some() {
            self.highest_level = self.highest_level.max(self.recent.lowest.unwrap_or_default());
            self.recent = Tally::default();
        }
        self.recent.on_sample(rtt.latest);
    }

    /// The newest samples, if they are enough for a stretch.
    fn whole_stretch(&self) -> Option<&Tally> {
        Some(&self.recent).filter(|recent| recent.acked >= STRETCH_SAMPLES.max(self.tokens as u32 / 8))
    }

    fn begin_round(&mut self, largest_sent: PacketNumber) -> Tally {
        self.round.begin(largest_sent);
        core::mem::take(&mut self.tally)
    }

    /// A round trip is over.
    fn on_round(&mut self, acked: &Acked) {
        let tally = self.begin_round(acked.largest_sent);
        let Some(lowest) = tally.lowest else { return };
        let rtt = &acked.rtt;
        self.is_lossy = acked.loss_average > self.seen() + LOSSY;
        self.base.on_round(acked.now, &tally, lowest, rtt, self.tokens);
        self.base.follow(acked.now, rtt, self.is_lossy);
        if let Some(began) = self.round_began.replace(acked.now) {
            self.follow.on_round(self.tokens, tally.acked, acked.now - began);
        }
        if self.careful_until.is_some_and(|until| acked.now > until) {
            self.careful_until = None;
        }
        let (base, target, queue) = (self.base.empty(rtt), self.target(rtt), self.base.queue(rtt, lowest));
        if tally.acked >= LEVEL_SAMPLES {
            self.highest_level = self.highest_level.max(lowest);
        }
        self.origin.on_round(acked.now, rtt.smoothed);
        self.trust.on_round(acked.now, self.origin.seen());
        self.on_level(base, rtt);
        self.consider_yielding(acked, lowest.saturating_sub(base) < target / 8);
        match self.mode {
            Mode::SlowStart(mut start) => {
                let calm = base + base / 8 + 2 * self.base.deviation();
                let is_full = start.on_round(&tally, rtt.minimum, calm, self.follow.rise());
                self.mode = Mode::SlowStart(start);
                if is_full {
                    self.leave_slow_start(acked, &start);
                }
            }
            Mode::Hold(hold) => {
                if !self.is_yielding() && !self.is_pushing(acked, &tally) {
                    self.on_hold_round(acked, hold, queue);
                }
            }
            Mode::Compete { until } if queue < target && acked.now > until => {
                self.mode = Mode::Hold(Hold::new());
            }
            Mode::Compete { .. } => {}
        }
    }

    fn on_level(&mut self, base: Duration, rtt: &RttView) {
        self.origin.on_queue(self.highest_level.saturating_sub(base), base);
        self.trust.on_level(self.highest_level, base, self.base.minimum(rtt));
    }

    /// Goes on with the experiment whether the link is full of our own packets. Returns whether one is running.
    fn is_pushing(&mut self, acked: &Acked, tally: &Tally) -> bool {
        if acked.is_app_limited || !self.trust.wants_proof(self.origin.seen()) {
            self.push.abandon();
            return false;
        }
        if self.push.on_round(tally.acked) == Some(Found::Full) {
            self.trust.prove(acked.now);
        }
        self.push.is_running()
    }

    /// Begins and ends yielding: it shows the empty path, and which loss is ours.
    fn consider_yielding(&mut self, acked: &Acked, is_empty: bool) {
        let empty_at = *self.empty_at.get_or_insert(acked.now);
        if is_empty {
            self.empty_at = Some(acked.now);
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
        let empty = (self.base.empty(&acked.rtt), self.base.deviation());
        let is_full = start.on_ack(acked, &self.tally, self.whole_stretch(), empty);
        self.mode = Mode::SlowStart(start);
        if is_full {
            self.leave_slow_start(acked, &start);
        }
    }

    fn leave_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        let rtt = &acked.rtt;
        let wanted = self.base.empty(rtt) + self.target(rtt) / 2;
        let by_delay = self.tokens * seconds_ratio(wanted, rtt.standing);
        self.tokens = self.delivered_in(wanted).unwrap_or(by_delay).max(TOKENS_MIN);
        self.mode = Mode::Hold(Hold::behind_slow_start());
        self.begin_round(acked.largest_sent);
        self.on_level(rtt.minimum, rtt);
        self.breaker.ignore(acked.largest_sent);
        self.origin.on_overshoot(acked.largest_sent, start.least_loss());
    }

    fn on_hold_round(&mut self, acked: &Acked, mut hold: Hold, queue: Duration) {
        let (base, target) = (self.base.empty(&acked.rtt), self.target(&acked.rtt));
        if self.base.is_restless() && self.trust.is_given() && queue < base / 4 + self.base.deviation() {
            self.on_restless_round(hold, base + target);
            return;
        }
        let is_lossy = acked.loss_average > self.innocent() + LOSSY;
        let seen = Seen { base, queue, target, is_lossy, fall: self.follow.fall() };
        let step = hold.on_round(self.tokens, &seen);
        self.mode = Mode::Hold(hold);
        match step {
            Step::Stay => {}
            Step::BackOff(beta) => self.tokens = (self.tokens * beta).max(self.tokens.min(1.0)),
            Step::PathIsLonger(tokens) => {
                self.base.become_longer(base + queue);
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

    /// Delay says nothing as long as the queue is not long: the window grows until the delivery rate no longer follows.
    fn on_restless_round(&mut self, mut hold: Hold, wanted: Duration) {
        if self.follow.rise().is_some_and(|exponent| exponent < FULL) {
            self.follow.forget();
            hold = Hold::new();
            hold.settle();
            self.tokens = self.tokens.min(self.delivered_in(wanted).unwrap_or(self.tokens)).max(TOKENS_MIN);
        } else {
            hold.speed_up(self.tokens);
        }
        self.mode = Mode::Hold(hold);
    }

    fn on_hold_ack(&mut self, acked: &Acked, hold: Hold) {
        let (base, target) = (self.base.empty(&acked.rtt), self.target(&acked.rtt));
        if hold.is_learning() {
            let delivered = self.delivered_in(base + target / 2).unwrap_or(self.tokens);
            self.tokens = self.tokens.max(delivered).min(WINDOW_MAX);
        }
        let room = self.delivered_in(base + target.mul_f64(CAP_TARGETS));
        let cap = room.map_or(WINDOW_MAX, |room| (room + CAP_PACKETS).min(WINDOW_MAX));
        let has_room = acked.rtt.standing < base + target && self.tokens < cap;
        if has_room || self.base.is_restless() {
            let least = hold::least(self.tokens);
            let growth = if self.trust.is_given() { hold.growth() } else { hold.growth().min(least) };
            self.tokens = (self.tokens + growth / self.tokens.max(1.0)).min(WINDOW_MAX);
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
        (tokens * self.push.gain() / (1.0 - self.innocent())).min(WINDOW_MAX)
    }
}

impl Controller for Steady {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
        self.largest_sent = Some(sent.number);
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
        let is_calm = before.max(rtt.latest) <= self.calm_below(rtt);
        self.on_fate(Fate { now: acked.now, number: acked.number, is_lost: false, is_calm });
        if self.round.is_behind(acked.number) {
            self.on_round(acked);
        }
        if self.stood_still.is_none_or(|last| acked.number > last) {
            self.on_sample(rtt);
        }
        if acked.ecn_ce {
            if let Mode::SlowStart(start) = self.mode {
                self.leave_slow_start(acked, &start);
            }
            self.back_off_once(acked.number, acked.largest_sent, BACK_OFF_MARK);
        } else if !acked.is_app_limited {
            match self.mode {
                Mode::SlowStart(start) => self.on_slow_start_ack(acked, start),
                _ if self.is_yielding() => {}
                Mode::Hold(_) if self.push.is_running() => {}
                Mode::Hold(hold) => self.on_hold_ack(acked, hold),
                Mode::Compete { .. } => {
                    self.tokens = (self.tokens + COMPETE_GROWTH / self.tokens.max(1.0)).min(WINDOW_MAX);
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
