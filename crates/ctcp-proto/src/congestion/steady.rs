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
//! path, and becomes the new base. Among many flows a full queue does not react either. So the base rises only while no more is lost than
//! the path loses by itself.

use core::time::Duration;

use ctcp_base::Instant;

use super::round::Round;
use super::{
    Acked, BACK_OFF_MARK, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, pacing_rate, packets_in,
};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

mod breaker;
mod hold;
mod loss_origin;
mod noise;
mod slow_start;
mod tally;

use breaker::Breaker;
use hold::{Hold, Seen, Step};
use loss_origin::{Fate, LossOrigin, Verdict};
use noise::Noise;
use slow_start::SlowStart;
use tally::Tally;

/// Packets of the initial window; they leave paced, not in a burst. 46 KB: most small answers need no second round trip.
const INITIAL_WINDOW: f64 = 32.0;

/// The fewest tokens: one packet in twenty round trips, which the pacer spreads.
const TOKENS_MIN: f64 = 0.05;

/// A time-out leaves so many, if there were as many.
const FEW_TOKENS: f64 = 8.0;

/// How many samples a stretch has at least: noise spares one of so many.
const STRETCH_SAMPLES: u32 = 16;

/// The pacer runs ahead of the window, which is the limit.
const PACING_GAIN: f64 = 1.15;

/// In slow start the window doubles within the round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The smallest target, below which noise is taken for a queue.
const TARGET_MIN: Duration = Duration::from_millis(1);

/// How long the target is halved after loss that was ours. (A smaller part of it would be starved by noise.)
const CAREFUL: Duration = Duration::from_secs(5);

/// The target in packets, and in deviations of the number of arrivals in a round trip: what it takes to keep a link
/// busy through bad luck.
const TARGET_PACKETS: f64 = 2.0;
const TARGET_DEVIATIONS: f64 = 2.0;

/// How much more than the target the window may hold, measured by the delivery rate, in targets and in packets (an
/// ACK stands for two).
const CAP_TARGETS: f64 = 1.5;
const CAP_PACKETS: f64 = 2.5;

/// A path is restless when samples deviate by this part of its round trip.
const RESTLESS: u32 = 10;

/// Loss beyond the path's own that shows.
const LOSSY: f64 = 0.03;

/// So much loss of the path's own is bad luck enough to lose a window.
const LOSS_KNOWN: f64 = 0.02;

/// While yielding, this share of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// Half of the window over which the minimum slides: it contains at least one yielding.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

/// How long to compete at least, doubled each time: a competitor is seldom gone at once.
const COMPETE_MIN: Duration = Duration::from_secs(1);
const COMPETE_MAX: Duration = Duration::from_secs(8);

/// The bounds of a back-off at loss: no harder than Reno, and at an overflowing queue no softer than Cubic (RFC 9438).
const BACK_OFF_HARDEST: f64 = 0.5;
const BACK_OFF_OVERFLOW: f64 = 0.7;

/// A loss at this share of the longest queue ever seen is an overflow.
const OVERFLOW_AT: f64 = 0.7;

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
    noise: Noise,
    round: Round,
    tally: Tally,
    /// The last few samples.
    recent: Tally,
    backed_off: Round,
    is_recovering: bool,
    /// The path became longer than RTTmin says.
    longer_base: Option<Duration>,
    /// The longest queue that a sample saw since the last time-out.
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
    /// The smallest round trip, which does not rise while more is lost than the path loses by itself: a full queue is not the path.
    floor: Option<Duration>,
    /// More is lost than that.
    is_lossy: bool,
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
            noise: Noise::default(),
            round: Round::default(),
            tally: Tally::default(),
            recent: Tally::default(),
            backed_off: Round::default(),
            is_recovering: false,
            longer_base: None,
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
            floor: None,
            is_lossy: false,
            before_timeout: None,
            datagram,
        }
    }

    /// The round trip of the empty path.
    fn base(&self, rtt: &RttView) -> Duration {
        let minimum = self.floor.map_or(rtt.minimum, |floor| floor.min(rtt.minimum));
        self.longer_base.map_or(minimum, |base| base.max(minimum))
    }

    /// The queue we want: enough to keep the link busy through noise and luck, a tenth of the path at least, and never
    /// more than half of what the queue has room for.
    fn target(&self, rtt: &RttView) -> Duration {
        let base = self.base(rtt);
        let deviation = (self.tokens * self.origin.innocent(self.tokens) * self.origin.dispersion()).sqrt();
        let share = (TARGET_PACKETS + TARGET_DEVIATIONS * deviation) / self.tokens.max(1.0);
        let noise = rtt.variance.min(base / 4);
        let wanted = base.mul_f64(share).max(base / 10).max(TARGET_MIN) + noise;
        let bearable = if self.careful_until.is_some() { wanted / 2 } else { wanted };
        bearable.min(self.highest_queue / 2)
    }

    /// What the link delivers in `time`, in packets.
    fn delivered_in(&self, time: Duration) -> Option<f64> {
        self.rate.map(|rate| packets_in(rate, time, self.datagram))
    }

    /// Packets take little longer than the empty path takes. On a path whose delay varies by itself few take less than the target.
    fn is_calm(&self, rtt: &RttView) -> bool {
        let base = self.base(rtt);
        let target = self.target(rtt);
        rtt.latest <= base + if rtt.variance > base / RESTLESS { target } else { target / 2 }
    }

    fn is_yielding(&self) -> bool {
        self.yielding.is_some()
    }

    /// Learns what became of a packet; `largest_sent`: the last packet so far.
    fn on_fate(&mut self, fate: Fate, largest_sent: PacketNumber) {
        let dispersion = self.origin.dispersion();
        let is_beginning = matches!(self.mode, Mode::SlowStart(_)) && self.stood_still.is_none();
        if self.breaker.on_fate(&fate, self.origin.seen(), dispersion, self.tokens, is_beginning) {
            self.trip(fate.number, largest_sent);
        }
        match self.origin.on_fate(fate) {
            // The queue overflowed below the target, or there is none: ask for less of it.
            Some(Verdict::Ours) => {
                self.careful_until = Some(fate.now + CAREFUL);
                let delivered = self.rtt.and_then(|rtt| self.delivered_in(self.base(&rtt)));
                self.tokens = self.tokens.min(delivered.unwrap_or(self.tokens)).max(TOKENS_MIN);
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.slow_down();
                }
            }
            Some(Verdict::Innocent) => self.careful_until = None,
            None => {}
        }
    }

    /// Far more is lost than is believed to be the path's own: half the window, whatever else is believed.
    fn trip(&mut self, number: PacketNumber, largest_sent: PacketNumber) {
        let is_time = self.back_off_once(number, largest_sent, BACK_OFF_HARDEST);
        if is_time && !matches!(self.mode, Mode::Compete { .. }) {
            self.mode = Mode::Hold(Hold::new());
        }
    }

    /// A packet sent before the time-out was not lost but late (RFC 4015): the window is what it was. Packet numbers never repeat, so
    /// that its acknowledgement is no other's.
    fn undo_spurious_timeout(&mut self, number: PacketNumber) {
        let Some(before) = self.before_timeout.take() else { return };
        if number <= before.last && before.is_settled && self.tokens < before.tokens {
            self.tokens = before.tokens;
            self.mode = Mode::Hold(Hold::new());
        }
    }

    fn on_sample(&mut self, rtt: &RttView) {
        self.tally.on_sample(rtt.latest);
        self.highest_queue = self.highest_queue.max(rtt.latest.saturating_sub(rtt.minimum_ever));
        if self.whole_stretch().is_some() {
            self.highest_stretch = self.highest_stretch.max(self.recent.queue(rtt.minimum_ever));
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
        self.is_lossy = acked.loss_average > self.origin.seen() + LOSSY;
        let minimum = acked.rtt.minimum;
        self.floor = Some(self.floor.filter(|_| self.is_lossy).map_or(minimum, |floor| floor.min(minimum)));
        self.origin.on_round(acked.now, acked.rtt.smoothed);
        if self.longer_base.is_some_and(|base| lowest < base) {
            self.longer_base = None;
        }
        if self.careful_until.is_some_and(|until| acked.now > until) {
            self.careful_until = None;
        }
        let base = self.base(&acked.rtt);
        self.noise.on_round(lowest, acked.rtt.variance);
        let queue = self.noise.standing(base).unwrap_or(lowest).saturating_sub(base);
        let target = self.target(&acked.rtt);
        self.origin.on_queue(self.highest_stretch, base);
        self.consider_yielding(acked, lowest.saturating_sub(base) < target / 8);
        match self.mode {
            Mode::SlowStart(mut start) => {
                let is_full = start.on_round(&tally, acked.rtt.minimum);
                self.mode = Mode::SlowStart(start);
                if is_full {
                    self.leave_slow_start(acked, &start);
                }
            }
            Mode::Hold(hold) if !self.is_yielding() => self.on_hold_round(acked, hold, queue),
            Mode::Compete { until } if queue < target && acked.now > until => {
                self.mode = Mode::Hold(Hold::new());
            }
            Mode::Hold(_) | Mode::Compete { .. } => {}
        }
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
        let is_full = start.on_ack(acked, &self.tally, self.whole_stretch());
        self.mode = Mode::SlowStart(start);
        if is_full {
            self.leave_slow_start(acked, &start);
        }
    }

    fn leave_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        let rtt = &acked.rtt;
        let wanted = rtt.minimum + self.target(rtt) / 2;
        let by_delay = self.tokens * seconds_ratio(wanted, rtt.standing);
        self.tokens = self.delivered_in(wanted).unwrap_or(by_delay).max(TOKENS_MIN);
        self.mode = Mode::Hold(Hold::behind_slow_start());
        self.begin_round(acked.largest_sent);
        self.origin.on_queue(self.highest_stretch, rtt.minimum);
        self.breaker.ignore(acked.largest_sent);
        self.origin.on_overshoot(acked.largest_sent, start.least_loss());
    }

    fn on_hold_round(&mut self, acked: &Acked, mut hold: Hold, queue: Duration) {
        let base = self.base(&acked.rtt);
        let seen = Seen { base, queue, target: self.target(&acked.rtt), is_lossy: self.is_lossy };
        let step = hold.on_round(self.tokens, &seen);
        self.mode = Mode::Hold(hold);
        match step {
            Step::Stay => {}
            Step::BackOff(beta) => self.tokens = (self.tokens * beta).max(TOKENS_MIN),
            Step::PathIsLonger(tokens) => {
                self.longer_base = Some(base + queue);
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

    fn on_hold_ack(&mut self, acked: &Acked, hold: Hold) {
        let (base, target) = (self.base(&acked.rtt), self.target(&acked.rtt));
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
            (Some(rtt), _) if self.is_yielding() => {
                self.delivered_in(self.base(&rtt)).map_or(self.tokens, |all| self.tokens.min(YIELD * all))
            }
            // Enough to see the queue again, if it is one.
            (Some(rtt), Mode::SlowStart(start)) if start.waits() => {
                let second = self.delivered_in(rtt.minimum + SlowStart::visible(&rtt) * 2);
                second.map_or(self.tokens, |second| self.tokens.min(second))
            }
            _ => self.tokens,
        };
        let arrives = 1.0 - self.origin.innocent(self.tokens);
        (tokens / arrives).min(WINDOW_MAX)
    }

    /// Once a round trip. Returns whether it is the time.
    fn back_off_once(&mut self, number: PacketNumber, largest_sent: PacketNumber, beta: f64) -> bool {
        let is_time = self.backed_off.is_behind(number);
        if is_time {
            self.tokens = (self.tokens * beta).max(TOKENS_MIN);
            self.backed_off.begin(largest_sent);
            self.is_recovering = true;
        }
        is_time
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
        let is_calm = self.is_calm(rtt);
        self.on_fate(
            Fate { now: acked.now, number: acked.number, is_lost: false, is_calm },
            acked.largest_sent,
        );
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
                Mode::Hold(hold) => self.on_hold_ack(acked, hold),
                Mode::Compete { .. } => {
                    self.tokens = (self.tokens + self.compete_growth / self.tokens.max(1.0)).min(WINDOW_MAX);
                }
            }
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        let rtt = &lost.rtt;
        self.tally.lost += 1;
        let is_calm = self.is_calm(rtt);
        self.on_fate(Fate { now: lost.now, number: lost.number, is_lost: true, is_calm }, lost.largest_sent);
        if let Mode::Compete { .. } = self.mode {
            let queue = rtt.latest.saturating_sub(rtt.minimum_ever);
            let is_overflow = queue > self.highest_queue.mul_f64(OVERFLOW_AT);
            let softest = if is_overflow { BACK_OFF_OVERFLOW } else { 1.0 };
            let beta = seconds_ratio(rtt.minimum_ever, rtt.standing).clamp(BACK_OFF_HARDEST, softest);
            if self.back_off_once(lost.number, lost.largest_sent, beta) && beta <= BACK_OFF_OVERFLOW {
                self.compete_growth = growth_of_reno(beta);
            }
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        // Of several in a row only the first says something of the window.
        if self.before_timeout.is_none() {
            let is_settled = !matches!(self.mode, Mode::SlowStart(_));
            self.before_timeout =
                Some(BeforeTimeout { tokens: self.tokens, is_settled, last: timed_out.largest_sent });
            // No more than there were. Few stay as they are: what comes after a burst of losses must get past it.
            self.tokens = (self.tokens / 2.0).clamp(self.tokens.min(FEW_TOKENS), INITIAL_WINDOW);
        }
        self.origin.abandon();
        self.yielding = None;
        self.round.begin(timed_out.largest_sent);
        self.is_recovering = false;
        if self.is_lossy && self.origin.seen() < LOSS_KNOWN {
            // Too much was sent: no new beginning.
            self.tokens = (self.tokens / 2.0).max(TOKENS_MIN);
            self.mode = Mode::Hold(Hold::new());
            return;
        }
        self.mode = Mode::SlowStart(SlowStart::default());
        self.empty_at = None;
        self.tally = Tally::default();
        self.recent = Tally::default();
        self.longer_base = None;
        self.careful_until = None;
        self.highest_queue = Duration::ZERO;
        self.highest_stretch = Duration::ZERO;
        self.compete_for = COMPETE_MIN;
        self.stood_still = Some(timed_out.largest_sent);
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

/// Packets a round trip by which a window grows that gets Reno's share with back-offs to `beta` (RFC 9438 section 4.3).
fn growth_of_reno(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// `part / whole`, finite.
fn seconds_ratio(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}
