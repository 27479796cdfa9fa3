//! The default controller: the paper's idea (back off by `RTTmin / RTT`, CTCP section 4.3), changed where the printed algorithm fails.
//!
//! Algorithm 2 as printed is starved by a millisecond of noise in RTT. It fills every queue until it overflows, takes minutes to fill a
//! long fat link, and counts lost packets against its window. The idea is kept: back off at a queue, not at loss alone. The changes:
//!
//! - The queue is measured by the *smallest* RTT of a round trip, since a queue raises every sample and a late wake-up only some. On a path
//!   whose delay varies by itself, both the path and the queue are measured by means over round trips ([`Base`]).
//! - A back-off leaves a small target queue: `(base + target / 2) / RTT`. It happens when the queue exceeds the target, not when a packet
//!   is lost, so a flow alone on a link never fills the queue.
//! - The target falls with the fourth root of the window. Larger flows aim at a shorter queue, so shares converge, and many small flows
//!   together aim at no more than a queue can hold (as in Swift, Kumar et al., SIGCOMM 2020).
//! - Growth doubles every round trip while the queue is short, up to an eighth of the window.
//! - The window counts packets that arrive. The number in flight is larger by the path's own loss, which [`LossOrigin`] distinguishes from
//!   congestion loss.
//! - `RTTmin` slides over ten seconds. If no round trip saw an empty queue for five seconds, the controller yields for two round trips, so
//!   that its own queue is never mistaken for the path. An experiment on loss takes longer.
//! - Slow start ends at loss in three cases: more is lost than the path loses by itself while delay changes, much more is lost and hardly
//!   more arrives, or the breaker trips. A burst of losses without delay does not end it. If the breaker ends it on a long path, and many packets then
//!   arrive without a loss or a queue, it begins again ([`Restart`]).
//! - A timeout leaves half of the window, but between 8 and 32 packets, and the next ones at least 8. Then half of the old window is regained
//!   quickly, or all of it where the path loses in bursts.
//! - What a connection exchanges before its first request hardly causes loss. So a timeout then leaves slow start as it was, and losses do not
//!   trip the breaker.
//! - Independently of delay, much more loss than the path's own halves the window ([`Breaker`]). Among many flows a full queue looks like a
//!   lossy path. Loss that rises with the window is not the path's own ([`Response`]). In that case, or where noise hides a queue, the first
//!   cut is to 0.7, and the window that overflowed the queue is remembered ([`Ceiling`]). Less loss, if it lasts, limits the window to what arrives
//!   ([`excess`]).
//!
//! ```text
//!         queue seen, full without queue, loss while delay changes, or breaker
//!   SlowStart ----------------------------------------------------------> Hold <--.
//!       ^                                                                |  ^  |   | timeout: half or all of the window
//!       | timeout in SlowStart, or  four back-offs and still a queue:    |  |  '---'  is regained by doubling
//!       '--- in Hold: many packets  another flow causes it               v  | the queue is gone
//!            without a loss, after                                     Compete: grows as CUBIC; backs off at loss and when others
//!            the breaker                                                        do
//! ```
//!
//! A back-off is also an experiment: a queue that does not react to it at all is not a queue but a longer path, and becomes the new base
//! ([`effect`]). A large window is then what the longer path carries. Among many flows a full queue does not react either. So the base rises only
//! while there is no more loss than the path's own, or for a large window than before the queue, and not soon after competing, not even by age,
//! unless the queue stays the same while a large window shrinks ([`Still`]). On a path with much noise, a [`Push`] tests this first: if sending more
//! makes more arrive, the delay was not a queue. Nor was it one if sending less makes less arrive.

use core::time::Duration;

use ctcp_base::Instant;

use super::cubic_growth::Growth;
use super::round::Round;
use super::{Acked, BACK_OFF_MARK, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, pacing_rate};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

mod base;
mod breaker;
mod calm;
mod ceiling;
mod effect;
mod excess;
mod full_size;
mod growing;
mod headroom;
mod hold;
mod longer;
mod loss;
mod loss_origin;
mod neighbours;
mod noise;
mod pause;
mod peak;
mod push;
mod response;
mod restart;
mod samples;
mod share;
mod slow_start;
mod still;
mod tally;
mod yielding;

use base::Base;
use breaker::Breaker;
use calm::own_queue;
use ceiling::Ceiling;
use excess::Excess;
use hold::{Hold, Seen, Step};
use loss_origin::{Fate, LossOrigin};
use neighbours::Neighbours;
use peak::Peak;
use push::{Found, MORE, Push};
use response::Response;
use restart::Restart;
use share::Share;
use slow_start::{LONG, MANY, SlowStart};
use still::Still;
use tally::{Tally, arrival_rate, seconds_ratio};

/// Packets in the initial window, which are paced. 46 KB: most short responses fit into one round trip.
const INITIAL_WINDOW: f64 = 32.0;

/// Minimum number of tokens: one packet in twenty round trips, which the pacer spreads.
const TOKENS_MIN: f64 = 0.05;

/// Minimum number of samples of a stretch. Of this many, noise spares at least one, unless it exceeds the round trip.
const STRETCH_SAMPLES: u32 = 16;

/// In slow start the queue may grow as fast as the link sends, so that so many samples are enough, of at least so many ACKs.
const STRETCH_SAMPLES_GROWING: u32 = 64;
const STRETCH_ACKS: u32 = 4;

/// The pacer runs slightly ahead of the window, which is the limit.
const PACING_GAIN: f64 = 1.15;

/// In slow start the window doubles within a round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Minimum target. Below it, noise would be taken for a queue.
const TARGET_MIN: Duration = Duration::from_millis(1);

/// The target is this fraction of the base divided by the fourth root of the window, but at least [`TARGET_SHARE_MIN`]. Flows with a larger
/// window aim at a shorter queue, so shares converge, and many small flows do not aim at more than a queue can hold.
const TARGET_SHARE: f64 = 0.24;
const TARGET_SHARE_MIN: f64 = 1.0 / 16.0;

/// Added to the target, in standard deviations of the number of arrivals per round trip. Keeps the link busy when arrivals vary.
const TARGET_DEVIATIONS: f64 = 2.0;

/// The target is at most half of the longest queue seen, unless that is below this fraction of the base.
const SHORT: u32 = 32;

/// The fraction of a datagram above which packets count as full. A transfer leaves out only what headers may need.
const FULL: f64 = 15.0 / 16.0;

/// The delivery rate of a window with fewer packets may be far below that of the link.
const RATE_WINDOW_MIN: f64 = 8.0;

/// The weight of one packet in the mean size: about a small window.
const PACKET_WEIGHT: f64 = 1.0 / 32.0;

/// Minimum back-off factor on a path whose delay varies by itself.
const BACK_OFF_RESTLESS: f64 = 0.7;

/// Loss in excess of the path's own from which the flow counts as lossy.
const LOSSY: f64 = 0.03;

/// Minimum time in `Compete`, doubled each time: a competitor seldom ends at once.
const COMPETE_MIN: Duration = Duration::from_secs(1);
const COMPETE_MAX: Duration = Duration::from_secs(8);

/// The mode of the controller.
#[derive(Clone, Copy, Debug)]
enum Mode {
    SlowStart(SlowStart),
    Hold(Hold),
    Compete { until: Instant },
}

/// The state before a timeout, which may turn out to be spurious.
#[derive(Clone, Copy, Debug)]
struct BeforeTimeout {
    tokens: f64,
    /// Packets that were allowed in flight.
    window: f64,
    /// The tokens were measured rather than still growing in slow start.
    is_settled: bool,
    /// The last packet sent before the timeout.
    last: PacketNumber,
    /// Timeouts since then.
    count: u32,
    /// At one of them, at least half of the window before the first one was in flight.
    was_used: bool,
}

/// The default controller.
#[derive(Debug)]
pub(super) struct Steady {
    /// Packets that arrive per round trip.
    tokens: f64,
    mode: Mode,
    origin: LossOrigin,
    base: Base,
    round: Round,
    tally: Tally,
    /// The latest few samples.
    recent: Tally,
    backed_off: Round,
    is_recovering: bool,
    /// The longest queue that any sample saw. Lowered when the breaker trips.
    highest_queue: Duration,
    /// The longest queue that all samples of a stretch saw, which excludes most noise.
    highest_stretch: Duration,
    /// Packets up to this number may have waited while the path was stalled, so their samples show no queue.
    stood_still: Option<PacketNumber>,
    /// A timeout with at least half of the window in flight was not spurious. One with fewer packets says nothing about the capacity of the path.
    has_lost_flight: bool,
    /// As much as the window allows was in flight once.
    has_filled_window: bool,
    /// The target is halved until this time, because the queue is shorter than the target.
    careful_until: Option<Instant>,
    /// Round trips of the current yield; `None` if not yielding.
    yielding: Option<u32>,
    /// When a round trip last saw the queue nearly empty, or nothing was in flight.
    empty_at: Option<Instant>,
    compete_for: Duration,
    /// The growth while competing.
    growth: Growth,
    share: Share,
    still: Still,
    peak: Peak,
    rtt: Option<RttView>,
    rate: Option<f64>,
    breaker: Breaker,
    /// More packets are lost than the path loses by itself.
    is_lossy: bool,
    /// The queue of the last round trip was longer than the target.
    is_queued: bool,
    /// The application sent less than the window allows before the latest acknowledged packet.
    is_app_limited: bool,
    /// In the last round trip the queue was once shorter than half of [`own_queue`], as between bursts of this flow. A queue that is always
    /// full never is.
    has_emptied: bool,
    /// Kept until the first acknowledgement after a timeout.
    before_timeout: Option<BeforeTimeout>,
    datagram: u64,
    /// The mean size of the packets that arrived lately, in bytes. An interactive application fills few datagrams.
    packet: f64,
    /// When the latest ACK arrived, whose packets share one sample.
    ack_at: Option<Instant>,
    round_began: Option<Instant>,
    push: Push,
    neighbours: Neighbours,
    /// After a timeout, the window doubles up to this size while no queue is seen.
    regain: Option<f64>,
    /// The window that overflowed a queue hidden by noise.
    ceiling: Ceiling,
    response: Response,
    restart: Restart,
    excess: Excess,
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
            has_lost_flight: false,
            has_filled_window: false,
            careful_until: None,
            yielding: None,
            empty_at: None,
            compete_for: COMPETE_MIN,
            growth: Growth::default(),
            share: Share::default(),
            still: Still::default(),
            peak: Peak::default(),
            rtt: None,
            rate: None,
            breaker: Breaker::default(),
            is_lossy: false,
            is_queued: false,
            is_app_limited: false,
            has_emptied: false,
            before_timeout: None,
            ack_at: None,
            round_began: None,
            push: Push::default(),
            neighbours: Neighbours::default(),
            regain: None,
            ceiling: Ceiling::default(),
            response: Response::default(),
            restart: Restart::default(),
            excess: Excess::default(),
            datagram,
            packet: datagram as f64,
        }
    }

    /// The target queue: a fraction of the path that falls with the window, plus what keeps the link busy despite noise and varying
    /// arrivals. It is at most half of the longest queue seen, unless that is very short.
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

    /// How many packets the link delivers in `time`.
    fn delivered_in(&self, time: Duration) -> Option<f64> {
        let packet =
            if self.fills_datagram(self.packet) { self.datagram as f64 } else { self.packet.max(1.0) };
        self.rate.map(|rate| rate * time.as_secs_f64() / packet)
    }

    /// Whether a packet of so many bytes counts as full.
    fn fills_datagram(&self, bytes: f64) -> bool {
        bytes >= self.datagram as f64 * FULL
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

    /// The latest samples, if they are enough for a stretch.
    fn whole_stretch(&self) -> Option<&Tally> {
        let recent = &self.recent;
        let is_growing = matches!(self.mode, Mode::SlowStart(_)) && recent.samples.count() >= STRETCH_ACKS;
        let is_early = is_growing && recent.acked >= STRETCH_SAMPLES_GROWING;
        let is_usual = recent.acked >= STRETCH_SAMPLES.max(self.tokens as u32 / 8);
        (is_early || is_usual).then_some(recent)
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
        let is_kept = self.is_lossy || self.may_be_shared(acked.now);
        if let Some(rate) = self.rate.filter(|_| self.tokens >= RATE_WINDOW_MIN && !acked.is_app_limited) {
            let packet_time = Duration::from_secs_f64(self.datagram as f64 / rate.max(1.0));
            self.base.full_size().on_packet_time(packet_time);
        }
        self.base.on_round(acked.now, &tally, &acked.rtt, self.tokens, is_kept);
        let mean = tally.samples.mean().unwrap_or(acked.rtt.smoothed);
        // Before the push goes on, which may end its larger window.
        let window = self.in_flight();
        let found = self.push.on_round(tally.acked, took, mean, self.tokens);
        self.origin.on_round(acked.now, acked.rtt.smoothed);
        self.compare_losses(&tally, window);
        self.ceiling.on_round();
        if self.careful_until.is_some_and(|until| acked.now > until) {
            self.careful_until = None;
        }
        self.answer_lasting_loss(acked, &tally);
        let base = self.base.empty(&acked.rtt);
        let queue = self.base.queue(&acked.rtt, lowest);
        let target = self.target(&acked.rtt);
        self.is_queued = queue > target;
        self.origin.on_queue(self.visible_queue(&acked.rtt), base);
        let above = if self.base.is_restless() { queue } else { lowest.saturating_sub(base) };
        self.has_emptied = above < own_queue(base) / 2;
        self.consider_yielding(acked, above < target / 8, found.is_some());
        let is_thin = self.is_thin(acked, tally.acked);
        if self.follows_still_queue(acked, queue, queue > target, found.is_some())
            || self.restarts(acked, &tally)
        {
            return;
        }
        match self.mode {
            Mode::SlowStart(start) if tally.is_overflow(base, start.own_loss(base)) && !is_thin => {
                self.leave_lossy_slow_start(acked, &start, &tally);
            }
            Mode::SlowStart(mut start) => {
                let is_restless = self.base.is_restless() && !is_thin;
                let took = took.max(base * LONG);
                let is_full = start.on_round(&tally, acked.rtt.minimum, took, is_restless, is_thin);
                self.mode = Mode::SlowStart(start);
                if is_full {
                    self.leave_slow_start(acked, &start);
                }
            }
            Mode::Hold(hold) if self.yielding.is_none() => {
                if !self.is_pushing(acked, found, queue) {
                    self.on_hold_round(acked, hold, queue, arrival_rate(tally.acked, took));
                }
            }
            Mode::Compete { until } if queue < target && acked.now > until => {
                self.mode = Mode::Hold(Hold::new());
            }
            Mode::Compete { .. } => self.on_compete_round(acked, lowest),
            Mode::Hold(_) => {}
        }
    }

    fn on_hold_round(&mut self, acked: &Acked, mut hold: Hold, queue: Duration, rate: f64) {
        let base = self.base.empty(&acked.rtt);
        let (target, is_restless) = (self.target(&acked.rtt), self.base.is_restless());
        let is_shared = self.may_be_shared(acked.now);
        let reach = self.delivered_in(base).unwrap_or(0.0);
        let seen = Seen {
            base,
            queue,
            target,
            rate,
            reach,
            is_lossy: self.is_lossy,
            loss: acked.loss_average,
            calm_loss: self.origin.seen(),
            is_restless,
            is_shared,
            is_app_limited: acked.is_app_limited,
        };
        let step = hold.on_round(self.tokens, &seen);
        self.mode = Mode::Hold(hold);
        if matches!(step, Step::BackOff(_) | Step::QueueIsNotOurs(_)) {
            self.restart.forbid();
        }
        match step {
            Step::Stay => {}
            Step::BackOff(beta) => {
                self.regain = None;
                let beta = if is_restless { beta.max(BACK_OFF_RESTLESS) } else { beta };
                self.tokens = (self.tokens * beta).max(TOKENS_MIN);
            }
            Step::PathIsLonger(tokens) => self.follow_longer_path(acked, queue, tokens),
            Step::QueueIsNotOurs(tokens) => {
                self.tokens = tokens;
                self.mode = Mode::Compete { until: acked.now + self.compete_for };
                self.peak = Peak::default();
                self.growth = Growth::from_plateau(tokens);
                self.compete_for = (self.compete_for * 2).min(COMPETE_MAX);
            }
        }
    }

    /// Runs or begins an experiment and applies its result. Returns whether one is running.
    fn is_pushing(&mut self, acked: &Acked, found: Option<Found>, queue: Duration) -> bool {
        if let Some(found) = found {
            // Its losses say nothing about the path, and the window of the next round trip differs.
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
        self.push.is_running() || is_time && self.push.begin(self.tokens)
    }

    /// Packets that may be in flight: the tokens, increased by the path's own loss.
    fn in_flight(&self) -> f64 {
        let tokens = match (self.rtt, self.mode) {
            (Some(rtt), _) if self.yielding.is_some() => self.while_yielding(&rtt),
            // Enough to see the queue again, if there is one.
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
        self.note_sent(sent);
    }

    fn on_ack(&mut self, acked: &Acked) {
        let rtt = &acked.rtt;
        self.judge_timeout(acked.number);
        self.rtt = Some(*rtt);
        self.rate = acked.delivery_rate;
        self.is_app_limited = acked.is_app_limited;
        self.packet += (acked.size as f64 - self.packet) * PACKET_WEIGHT;
        if self.backed_off.is_after(acked.number) {
            self.is_recovering = false;
        }
        let is_calm = self.is_calm_ack(acked);
        self.on_fate(
            Fate { now: acked.now, number: acked.number, is_lost: false, is_calm },
            acked.largest_sent,
        );
        if self.round.is_after(acked.number) {
            self.on_round(acked);
        }
        if self.stood_still.is_none_or(|last| acked.number > last) {
            self.on_sample(rtt);
            let fills_datagram = self.fills_datagram(acked.size as f64);
            self.base.full_size().on_packet(acked.now, rtt.latest, fills_datagram);
            if self.ack_at.replace(acked.now) != Some(acked.now) {
                self.tally.samples.push(rtt.latest);
                self.recent.samples.push(rtt.latest);
            }
        }
        if acked.ecn_ce {
            if let Mode::SlowStart(start) = self.mode {
                self.leave_slow_start(acked, &start);
            }
            self.restart.forbid();
            self.back_off_once(acked.number, acked.largest_sent, BACK_OFF_MARK);
        } else {
            match self.mode {
                Mode::SlowStart(start) if self.is_thin(acked, self.tally.acked) => {
                    if !start.waits() && headroom::may_grow(&self.share, acked, self.tokens) {
                        self.tokens += 1.0;
                    }
                }
                Mode::SlowStart(start) => self.on_slow_start_ack(acked, start),
                Mode::Compete { .. } if acked.is_app_limited => {
                    self.growth.pause();
                    // The queue falls because this flow sends less.
                    self.peak = Peak::default();
                }
                Mode::Compete { .. } if self.waits_for_recovery() => self.growth.pause(),
                _ if self.yielding.is_some() || self.push.is_running() => {}
                Mode::Hold(hold) => self.on_hold_ack(acked, hold),
                Mode::Compete { .. } => {
                    self.share.compete(acked.now);
                    self.tokens = self.growth.grow(acked.now, rtt.smoothed, self.tokens, self.share.part());
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
        if bytes != self.datagram {
            self.datagram = bytes;
            self.base.full_size().on_datagram_size();
        }
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

    fn burst_length(&self) -> u32 {
        self.lost_in_a_row()
    }

    fn needs_samples(&self, now: Instant) -> bool {
        let is_starting = matches!(self.mode, Mode::SlowStart(_)) && self.tokens < MANY;
        self.base.is_noisy() || is_starting || self.is_competing(now)
    }

    fn is_competing(&self, now: Instant) -> bool {
        self.share.is_competing(now)
    }

    fn set_share(&mut self, share: Option<f64>) {
        self.share.set(share);
    }

    fn name(&self) -> &'static str {
        "steady"
    }
}
