//! Our default: tolerant of loss and of jitter, and no more aggressive than TCP where it meets others.

use core::time::Duration;

use ctcp_base::Instant;

use super::round::Round;
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, pacing_rate};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

mod compete;
mod excess;
mod innocent;
mod interval;
mod slow_start;

use compete::{Compete, Finding};
use excess::Excess;
use innocent::Innocent;
use interval::{Interval, Meter};
use slow_start::SlowStart;

/// Packets of the initial window; they leave paced, not in a burst.
const INITIAL_WINDOW: f64 = 16.0;

/// The smallest window: one packet in twenty round trips, which the pacer spreads.
const WINDOW_MIN: f64 = 0.05;

/// The pacer runs ahead of the window, which is the limit.
const PACING_GAIN: f64 = 1.15;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The queue we want, as a share of the empty path's round trip, and in packets of our own rate.
const TARGET_SHARE: f64 = 0.12;
const TARGET_PACKETS: f64 = 1.5;

/// The least target: clocks and schedulers are no finer.
const TARGET_MIN: Duration = Duration::from_micros(500);

/// The hardest back-off for delay in one step, and the back-off for loss and marks (RFC 9438, RFC 8511).
const BACK_OFF_DELAY: f64 = 0.7;
const BACK_OFF_LOSS: f64 = 0.7;

/// How much of the window its growth in an interval may be.
const GROWTH_MAX: f64 = 1.0 / 8.0;

/// A back-off after which the delivery rate falls by more than this part of what the window did shortened no queue of ours.
const UNMOVED: f64 = 0.5;

/// So many of them in a row, and the delay is no queue of ours.
const UNMOVED_MAX: u32 = 3;

/// A loss at this share of the longest queue of the last time is an overflow.
const OVERFLOW_AT: f64 = 0.75;

/// The longest queue is forgotten by this part an interval.
const HIGHEST_FADES: f64 = 1.0 / 64.0;

/// Above what arrives in so many targets more than the empty path, and this part of a packet, the window does not grow.
const CAP_TARGETS: f64 = 1.25;
const CAP_PACKETS: f64 = 0.5;

/// The rate that bounds it is the highest of about so many intervals.
const BEST_FADES: f64 = 1.0 / 32.0;

/// How much more the upward experiment sends.
const PROBE: f64 = 1.25;

/// So many experiments in a row are believed.
const EVIDENCE: u32 = 2;

/// The delivery rate of fewer packets tells little.
const WINDOW_TELLING: f64 = 16.0;

/// How long the experiment counts that showed the path to be ours alone.
const TRUST: Duration = Duration::from_secs(5);

/// Otherwise no more loss than this is believed to be innocent.
const UNTRUSTED_MAX: f64 = 0.05;

/// Where more than that is lost without a queue, slow start is tried again after so many intervals, twice as many each time.
const RETRY_MIN: u32 = 4;
const GRACE: u32 = 32;
const GRACE_LOSS: f64 = 0.1;
const GRACE_RETRY: u32 = 16;
const RETRY_MAX: u32 = 256;

/// A queue shorter than this part of the longest one does not overflow.
const SHORT_BELOW: f64 = 0.8;

/// When more than this share of an interval's packets is lost, twice in a row, the window is halved whatever else is believed (RFC 8084).
const BREAKER: f64 = 0.5;

/// With fewer packets in a round trip, neighbours say little of each other's queue.
const WINDOW_SMALL: f64 = 8.0;

/// How long we compete at least; doubled each time up to the most.
const COMPETE_MIN: Duration = Duration::from_secs(2);
const COMPETE_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Mode {
    SlowStart(SlowStart),
    /// Keeps the queue at its target.
    Hold(Hold),
    /// Somebody else fills the queue, or delay says nothing here.
    Compete(Compete),
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    growth: f64,
    /// The window changed: the next interval still shows the old one.
    is_settling: bool,
    /// The back-off whose effect is awaited: delivery rate, window and round trip before it.
    backed_off: Option<(f64, f64, Duration)>,
    unmoved: u32,
    probe: Probe,
    /// Before the first back-off in a row.
    window_before: f64,
}

/// The upward experiment: 1.25 windows for an interval, to see whether delay or rate answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    None,
    Sending { rate: f64, lowest: Duration },
    Measuring { rate: f64, lowest: Duration },
    /// What it sent too much drains.
    Draining,
}

impl Hold {
    fn new() -> Self {
        Self {
            growth: 1.0,
            is_settling: true,
            backed_off: None,
            unmoved: 0,
            probe: Probe::None,
            window_before: 0.0,
        }
    }
}

/// The default controller.
#[derive(Debug)]
pub(super) struct Tolerant {
    /// Packets that arrive in a round trip.
    tokens: f64,
    mode: Mode,
    innocent: Innocent,
    excess: Excess,
    meter: Meter,
    /// The round trip of the empty path.
    base: Option<Duration>,
    /// By how much samples differ, averaged over intervals.
    deviation: Duration,
    /// The longest queue of the last time.
    highest: Duration,
    /// The highest rate of the last intervals.
    best_rate: f64,
    /// Intervals in a row that lost more than half of their packets.
    broken: u32,
    /// When an experiment showed that we are what fills the path: its rate did not follow us.
    trusted: Option<Instant>,
    /// The queue before the last back-off, and intervals until its effect is seen.
    watched: Option<(Duration, u32)>,
    last_queue: Duration,
    /// Experiments in a row that showed the path to be ours.
    evidence: u32,
    /// Intervals without a queue in which more loss was seen than is believed, and how many of them call for another slow start.
    lossy_calm: u32,
    /// For so many intervals what seems innocent is believed: an experiment takes until the path is full.
    grace: u32,
    retry_after: u32,
    reacted: Round,
    /// Packets up to this one were sent too fast: what becomes of them says nothing of the path.
    overshot: Option<PacketNumber>,
    is_recovering: bool,
    compete_for: Duration,
    rtt: Option<RttView>,
    /// Packets a second that arrived in the last interval.
    rate: Option<f64>,
    datagram: u64,
    timeout_window: f64,
}

impl Tolerant {
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            tokens: INITIAL_WINDOW,
            mode: Mode::SlowStart(SlowStart::default()),
            innocent: Innocent::default(),
            excess: Excess::default(),
            meter: Meter::default(),
            base: None,
            deviation: Duration::ZERO,
            highest: Duration::ZERO,
            best_rate: 0.0,
            broken: 0,
            trusted: None,
            watched: None,
            last_queue: Duration::ZERO,
            evidence: 0,
            lossy_calm: 0,
            grace: GRACE,
            retry_after: RETRY_MIN,
            reacted: Round::default(),
            overshot: None,
            is_recovering: false,
            compete_for: COMPETE_MIN,
            rtt: None,
            rate: None,
            datagram,
            timeout_window: 0.0,
        }
    }

    fn base(&self) -> Duration {
        self.base.unwrap_or(Duration::from_millis(1))
    }

    fn target(&self) -> Duration {
        let packets = self.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64((TARGET_PACKETS / rate.max(1e-3)).min(1.0))
        });
        self.base().mul_f64(TARGET_SHARE).max(packets.min(self.base() / 2)).max(TARGET_MIN)
    }

    /// Round trips up to this show no queue of ours.
    fn calm_limit(&self) -> Duration {
        self.base() + self.target()
    }

    fn set_window(&mut self, tokens: f64) {
        self.tokens = tokens.clamp(WINDOW_MIN, WINDOW_MAX);
    }

    fn learn_base(&mut self, rtt: &RttView) {
        let base = self.base();
        if self.base.is_none() {
            self.base = Some(rtt.minimum_ever.max(Duration::from_micros(10)));
        } else if rtt.latest < base {
            // What was learnt with a base that was a queue is void.
            if base - rtt.latest > self.target() + rtt.variance * 4 {
                self.innocent.forget();
            }
            self.base = Some(rtt.latest.max(Duration::from_micros(10)));
        }
    }

    fn on_interval(&mut self, acked: &Acked, interval: &Interval) {
        self.rate = Some(interval.rate());
        if self.trusted.is_some_and(|since| acked.now - since > TRUST.max(acked.rtt.smoothed * 50)) {
            self.trusted = None;
        }
        self.highest = self.highest.mul_f64(1.0 - HIGHEST_FADES);
        self.best_rate = interval.rate().max(self.best_rate * (1.0 - BEST_FADES));
        self.deviation = (self.deviation * 3 + acked.rtt.variance) / 4;
        let queue = interval.lowest.saturating_sub(self.base());
        if std::env::var_os("DBG").is_some() {
            eprintln!("{:.3} W {:.1} rate {:.1} lowest {:.1?} mean {:.1?} base {:.1?} target {:.1?} trusted {:?} grace {} acked {} lost {} innocent {:.3} {:?}", acked.now.as_nanos() as f64/1e9, self.tokens, interval.rate(), interval.lowest, interval.mean, self.base(), self.target(), self.trusted.is_some(), self.grace, interval.acked, interval.lost, self.innocent.share(), self.mode);
        } //DBG
        let is_aftermath = self.overshot.is_some_and(|last| acked.number.0 <= last.0 + 2 * u64::from(interval.acked + interval.lost));
        self.broken = if interval.loss() > BREAKER && !is_aftermath { self.broken + 1 } else { 0 };
        if self.broken >= 2 {
            self.set_window(self.tokens.min(interval.rate() * interval.mean.as_secs_f64()) / 2.0);
            self.overshot = Some(acked.largest_sent);
            self.trusted = None;
            self.mode = Mode::Hold(Hold::new());
            return;
        }
        self.last_queue = queue;
        self.watch(acked.now, queue);
        self.grace = self.grace.saturating_sub(1);
        match self.mode {
            Mode::SlowStart(mut start) => {
                let follows = start.follows(interval);
                let end = start.on_interval(interval, self.base(), self.innocent.share(), acked.rtt.variance);
                self.mode = Mode::SlowStart(start);
                if end.is_some() {
                    self.on_evidence(acked.now, !follows && queue > self.target() * 2);
                }
                match end {
                    None => {}
                    Some(slow_start::End::Full) => {
                        self.overshot = Some(acked.largest_sent);
                        self.leave_slow_start(interval);
                    }
                    Some(slow_start::End::Restless(mean)) => {
                        self.overshot = Some(acked.largest_sent);
                        self.set_window(start.best_rate() * mean.as_secs_f64());
                        self.compete(acked.now);
                    }
                }
            }
            Mode::Hold(hold) => self.on_hold(acked, interval, hold, queue),
            Mode::Compete(compete) => self.on_compete(acked, interval, compete, queue),
        }
    }

    fn on_compete(&mut self, acked: &Acked, interval: &Interval, mut compete: Compete, queue: Duration) {
        let finding = compete.on_interval(interval, self.tokens);
        self.mode = Mode::Compete(compete);
        match finding {
            Finding::Nothing => {}
            Finding::Ours if self.tokens < WINDOW_TELLING => {}
            Finding::Ours => self.on_evidence(acked.now, true),
            Finding::Room(window) => {
                self.on_evidence(acked.now, false);
                self.set_window(window);
            }
            Finding::MuchRoom(window) => {
                self.set_window(window);
                if self.is_restless() {
                    self.mode = Mode::SlowStart(SlowStart::restless(interval));
                    return;
                }
            }
        }
        if self.is_restless() && self.is_time_to_retry() {
            self.mode = Mode::SlowStart(SlowStart::restless(interval));
            return;
        }
        let is_gone = queue < self.target() / 2 && acked.now > compete.earliest();
        if (acked.now > compete.until() || is_gone) && !self.is_restless() {
            self.mode = Mode::Hold(Hold::new());
        }
    }

    /// More is lost than is believed to be innocent though it seems to be: slow start shows whether the path is ours.
    fn is_time_to_retry(&mut self) -> bool {
        if self.trusted.is_some() || self.grace > 0 || self.innocent.share() <= UNTRUSTED_MAX {
            return false;
        }
        self.lossy_calm += 1;
        if self.lossy_calm < self.retry_after {
            return false;
        }
        self.lossy_calm = 0;
        self.retry_after = (self.retry_after * 2).min(RETRY_MAX);
        self.grace = GRACE_RETRY;
        true
    }

    /// Delay varies by itself more than the queue that we want.
    fn is_restless(&self) -> bool {
        self.deviation > self.target() / 2
    }

    /// An experiment showed that we fill the path, or that we do not. One may be chance, two are believed.
    fn on_evidence(&mut self, now: Instant, is_ours: bool) {
        self.evidence = if is_ours { self.evidence + 1 } else { 0 };
        if self.evidence >= EVIDENCE {
            self.trusted = Some(now);
        } else if !is_ours {
            self.trusted = None;
        }
    }

    /// A back-off that more than halves the queue was one of the flow that fills it.
    fn watch(&mut self, now: Instant, queue: Duration) {
        match self.watched {
            Some((before, 0)) => {
                self.on_evidence(now, queue < before / 2);
                self.watched = None;
            }
            Some((before, left)) => self.watched = Some((before, left - 1)),
            None => {}
        }
    }

    fn begin_watch(&mut self) {
        if self.last_queue > self.target() * 2 {
            self.watched = Some((self.last_queue, 1));
        }
    }

    fn leave_slow_start(&mut self, interval: &Interval) {
        self.begin_watch();
        let wanted = self.base() + self.target() / 2;
        self.set_window(interval.rate() * wanted.as_secs_f64());
        self.mode = Mode::Hold(Hold::new());
    }

    fn on_hold(&mut self, acked: &Acked, interval: &Interval, mut hold: Hold, queue: Duration) {
        if hold.is_settling {
            hold.is_settling = false;
            self.mode = Mode::Hold(hold);
            return;
        }
        match hold.probe {
            Probe::None => {}
            Probe::Sending { rate, lowest } => {
                hold.probe = Probe::Measuring { rate, lowest };
                self.mode = Mode::Hold(hold);
                return;
            }
            Probe::Measuring { rate, lowest } => {
                hold.probe = Probe::Draining;
                self.mode = Mode::Hold(hold);
                let follows = (interval.rate() / rate - 1.0) / (PROBE - 1.0);
                let longer = interval.mean.saturating_sub(lowest);
                let is_ours = follows < 0.5 && longer > lowest.mul_f64((PROBE - 1.0) * 0.4);
                if is_ours {
                    self.evidence = EVIDENCE;
                }
                self.on_evidence(acked.now, is_ours);
                return;
            }
            Probe::Draining => {
                hold.probe = Probe::None;
                self.mode = Mode::Hold(hold);
                return;
            }
        }
        let is_lossy = self.innocent.share() > UNTRUSTED_MAX / 4.0;
        let age = self.trusted.map(|since| acked.now - since);
        let is_due = age.is_none_or(|age| age > TRUST / 2) && (age.is_some() || self.grace > 0);
        if is_lossy && is_due && queue <= self.target() && hold.growth <= self.tokens / 16.0 + 1.0 {
            hold.probe = Probe::Sending { rate: interval.rate(), lowest: interval.lowest };
            self.mode = Mode::Hold(hold);
            return;
        }
        let target = self.target();
        if let Some((rate, window, lowest)) = hold.backed_off.take() {
            // If the queue is ours, less in flight shortens it, and the rate stays as it is.
            let fell = (1.0 - interval.rate() / rate) / (1.0 - self.tokens / window).max(0.01);
            let expected = lowest.mul_f64((1.0 - self.tokens / window).clamp(0.0, 1.0)).min(lowest.saturating_sub(self.base()));
            let is_shorter = lowest.saturating_sub(interval.lowest) >= expected / 2;
            self.on_evidence(acked.now, fell <= UNMOVED && is_shorter);
            hold.unmoved = if fell > UNMOVED { hold.unmoved + 1 } else { 0 };
        }
        let unmoved_max = if acked.rtt.variance > queue / 4 { 1 } else { UNMOVED_MAX };
        if queue > target {
            if hold.unmoved >= unmoved_max || self.is_restless() {
                self.set_window(self.tokens.max(hold.window_before));
                self.compete(acked.now);
                return;
            }
            if hold.unmoved == 0 {
                hold.window_before = self.tokens;
            }
            let wanted = interval.rate() * (self.base() + target / 2).as_secs_f64();
            hold.backed_off = Some((interval.rate(), self.tokens, interval.lowest));
            self.set_window(wanted.clamp(BACK_OFF_DELAY * self.tokens, 0.95 * self.tokens));
            hold.growth = 1.0;
            hold.is_settling = true;
        } else {
            if self.is_time_to_retry() {
                self.mode = Mode::SlowStart(SlowStart::default());
                return;
            }
            hold.unmoved = 0;
            hold.window_before = 0.0;
            let least = (self.tokens / 4.0).min(1.0);
            let faster = (hold.growth * 2.0).min(self.tokens * GROWTH_MAX).max(least);
            hold.growth = if queue < target / 2 { faster } else { least };
        }
        self.mode = Mode::Hold(hold);
    }

    fn compete(&mut self, now: Instant) {
        self.mode = Mode::Compete(Compete::new(now, self.tokens, self.compete_for));
        self.compete_for = (self.compete_for * 2).min(COMPETE_MAX);
    }

    fn on_fate(&mut self, now: Instant, number: PacketNumber, is_lost: bool, rtt: &RttView, largest_sent: PacketNumber) {
        if self.overshot.is_some_and(|last| number <= last) {
            return;
        }
        let neighbour = self.innocent.neighbour(number).unwrap_or(rtt.latest);
        let queue = neighbour.saturating_sub(self.base());
        let is_short = queue <= self.highest.mul_f64(SHORT_BELOW);
        let is_low = self.tokens >= WINDOW_SMALL && is_short && self.innocent.is_low(neighbour);
        if neighbour <= self.base() + self.target() / 4 || is_low {
            let is_trusted = self.trusted.is_some();
            self.innocent.on_fate(number, is_lost, is_trusted);
            if is_trusted || self.innocent.is_young() {
                self.excess.on_calm();
                return;
            }
        }
        self.highest = self.highest.max(queue);
        let is_overflow = is_lost && !self.is_restless() && queue > self.target() && queue > self.highest.mul_f64(OVERFLOW_AT);
        if is_overflow {
            self.react(now, number, largest_sent);
        }
        let dispersion = if self.is_believing() { self.innocent.dispersion() } else { 0.0 };
        let share = self.tolerated();
        if self.excess.on_fate(now, is_lost, share, dispersion, if self.grace > 0 { 2.9 } else { 0.9 }) {
            self.react(now, number, largest_sent);
        }
    }

    /// More is lost than the path loses by itself: what TCP does, once a round trip.
    fn react(&mut self, now: Instant, number: PacketNumber, largest_sent: PacketNumber) {
        if !self.reacted.is_behind(number) {
            return;
        }
        self.reacted.begin(largest_sent);
        self.is_recovering = true;
        self.begin_watch();
        match &mut self.mode {
            Mode::SlowStart(start) if start.is_restless() => {}
            Mode::SlowStart(_) => {
                // The last round trip doubled it.
                self.set_window(self.tokens / 2.0);
                self.overshot = Some(largest_sent);
                self.mode = Mode::Hold(Hold::new());
            }
            Mode::Compete(compete) => {
                let rate = self.rate.unwrap_or(0.0);
                let tokens = compete.on_congestion(now, self.tokens, rate);
                self.set_window(tokens);
            }
            Mode::Hold(_) => {
                self.set_window(self.tokens * BACK_OFF_LOSS);
                self.mode = Mode::Hold(Hold { growth: 1.0, ..Hold::new() });
            }
        }
    }

    /// What may arrive of a round trip, with the experiment.
    fn effective(&self) -> f64 {
        match &self.mode {
            Mode::Compete(compete) => self.tokens * compete.factor(),
            Mode::Hold(Hold { probe: Probe::Sending { .. }, .. }) => self.tokens * PROBE,
            _ => self.tokens,
        }
    }

    /// The share of loss that is made up for by sending more.
    fn compensated(&self) -> f64 {
        if self.is_believing() { self.innocent.share() } else { self.innocent.share().min(UNTRUSTED_MAX) }
    }

    /// The share of loss that is no reason to slow down.
    fn tolerated(&self) -> f64 {
        let tolerated = self.innocent.tolerated();
        if self.grace > 0 {
            return tolerated.max(GRACE_LOSS);
        }
        if self.is_believing() { tolerated } else { tolerated.min(UNTRUSTED_MAX) }
    }

    /// Much loss is believed to be innocent only where we are alone, or when nothing is known yet.
    fn is_believing(&self) -> bool {
        self.trusted.is_some() || self.grace > 0
    }

    fn grow(&mut self, acked: &Acked) {
        let limit = self.calm_limit();
        let room = (self.base() + self.target().mul_f64(CAP_TARGETS)).as_secs_f64();
        let cap = self.best_rate * room + CAP_PACKETS;
        match &mut self.mode {
            Mode::SlowStart(start) => {
                if start.may_grow(acked, self.base.unwrap_or(acked.rtt.minimum)) {
                    self.set_window(self.tokens + 1.0);
                }
            }
            Mode::Hold(hold) => {
                if acked.rtt.standing < limit && !hold.is_settling && hold.probe == Probe::None && self.tokens < cap {
                    let growth = hold.growth;
                    self.set_window(self.tokens + growth / self.tokens.max(1.0));
                }
            }
            Mode::Compete(compete) => {
                let tokens = compete.on_ack(acked.now, self.tokens, acked.rtt.smoothed);
                self.set_window(tokens);
            }
        }
    }
}

impl Controller for Tolerant {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        let rtt = &acked.rtt;
        self.rtt = Some(*rtt);
        if acked.is_sample {
            self.learn_base(rtt);
            self.innocent.on_sample(acked.number, rtt.latest, rtt.variance);
        }
        if self.reacted.is_behind(acked.number) {
            self.is_recovering = false;
        }
        self.on_fate(acked.now, acked.number, false, rtt, acked.largest_sent);
        if let Some(interval) = self.meter.on_ack(acked)
            && !interval.is_app_limited
        {
            self.on_interval(acked, &interval);
        }
        if !acked.is_app_limited {
            self.grow(acked);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        self.meter.on_loss();
        self.on_fate(lost.now, lost.number, true, &lost.rtt, lost.largest_sent);
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        self.timeout_window = self.tokens;
        self.set_window((self.tokens / 2.0).min(INITIAL_WINDOW));
        self.mode = Mode::SlowStart(SlowStart::default());
        self.meter = Meter::default();
        self.is_recovering = false;
        self.reacted.begin(timed_out.largest_sent);
        self.compete_for = COMPETE_MIN;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        (self.effective().max(1.0) / (1.0 - self.compensated())).min(WINDOW_MAX)
    }

    fn pacing_rate(&self) -> Option<f64> {
        let is_slow_start = matches!(self.mode, Mode::SlowStart(_));
        let gain = if is_slow_start { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        let window = self.effective() / (1.0 - self.compensated());
        self.rtt.map(|rtt| pacing_rate(gain, window, self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        match self.mode {
            Mode::SlowStart(_) => Phase::SlowStart,
            _ if self.is_recovering => Phase::Recovery,
            _ => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        "tolerant"
    }
}
