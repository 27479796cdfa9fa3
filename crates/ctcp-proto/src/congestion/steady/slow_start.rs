//! The end of slow start: at a queue, or when a larger window no longer increases the delivery rate. Loss alone does not end it.

use core::time::Duration;

use super::hold::Hold;
use super::loss::{BACK_OFF_OVERFLOW, LARGE};
use super::tally::{Tally, arrival_rate, seconds_ratio};
use super::{Acked, Mode, Steady, TOKENS_MIN, headroom};
use crate::congestion::WINDOW_MAX;
use crate::congestion::round::Plateau;
use crate::recovery::rtt::RttView;

/// Minimum queue that ends slow start: an eighth of the path as in HyStart++ (RFC 9406), but not noise. HyStart++ requires 4 ms. Two are
/// enough for the minimum of a whole round trip, and detect short queues in time.
const ROUND_QUEUE_MIN: Duration = Duration::from_millis(2);

/// Minimum number of samples of the round trip that must have seen it.
const ROUND_SAMPLES: u32 = 8;

/// The same for the latest stretch of samples, which sees the queue up to a round trip earlier.
const RECENT_QUEUE_MIN: Duration = Duration::from_millis(4);

/// In the second round trip only a queue of this fraction of the path counts, and only if the samples follow a trend. Their variance does not
/// count: the trend causes it.
const EARLY_QUEUE: u32 = 4;

/// A round trip whose samples are all below this excess had no queue.
const CALM: Duration = Duration::from_millis(1);

/// Additional loss, with less than a quarter more packets delivered, that indicates a full queue too short to be seen.
const MORE_LOSS: f64 = 0.2;
const MORE_PACKETS: f64 = 1.25;

/// Minimum number of packets for an estimate of the path's loss.
const PACKETS_MIN: u32 = 24;

/// If the first round trip loses more, it may have filled a queue.
const FIRST_LOSS_MAX: f64 = 0.35;

/// Loss that a long path may have by itself, until a round trip with so many arrivals has measured it. If slow start ends too early, a long
/// path takes seconds to fill. On a short one that matters less than the packets of many flows that begin.
const OWN_UNKNOWN: f64 = 0.2;
const ARRIVALS_MIN: u32 = 16;
pub(super) const LONG_PATH: Duration = Duration::from_millis(150);

/// On a path whose delay varies by itself, slow start ends when the rate of arrivals grows by less than this factor twice in a row, or once
/// while samples are late.
const SLOW: f64 = 1.3;
const SLOW_ROUNDS: u32 = 2;

/// A round trip counts as at least so many times the empty path. A queue makes round trips longer, so that more packets arrive in one, though
/// not at a greater rate.
pub(super) const LONG: u32 = 2;

/// A window of so many packets has samples enough, though not each packet is acknowledged at once.
pub(super) const MANY: f64 = 256.0;

/// How many round trips with little to send a suspected queue is remembered: as many as the delivery rate. A request may be too short to
/// confirm it (decision 0056).
const ROUNDS_REMEMBERED: u32 = 10;

/// State of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    plateau: Plateau,
    least_loss: Option<f64>,
    /// Packets acknowledged and lost in round trips without a trend in which most packets of few arrived: of all of them, and of all but the
    /// last.
    calm: (u32, u32),
    calm_before: (u32, u32),
    acked_before: u32,
    took_before: Duration,
    /// Consecutive round trips in which hardly more packets arrived than before.
    slow_rounds: u32,
    rounds: u32,
    /// The round trip in which a queue was first seen, until the next one confirms it.
    suspects: Option<u32>,
}

impl SlowStart {
    /// One that begins again on a path that loses the fraction `loss` by itself. The delivery rate is known, so a queue counts from the first round trip
    /// on.
    pub(super) fn again(loss: f64) -> Self {
        Self { rounds: 2, least_loss: Some(loss), ..Self::default() }
    }

    /// The path's own loss: that of all round trips without a trend but the last, or else the lowest of any round trip without a queue.
    pub(super) fn least_loss(&self) -> f64 {
        let (acked, lost) = if self.first_round_measures_loss() { self.calm } else { self.calm_before };
        let all = acked + lost;
        let calm = (all >= PACKETS_MIN).then(|| f64::from(lost) / f64::from(all));
        calm.or(self.least_loss).unwrap_or(0.0)
    }

    /// The loss that does not count as that of a full queue, on a path of `base`. The first flight queues behind itself on a slow link, and noise
    /// may look like that, while nothing is known yet about the path's own loss.
    pub(super) fn own_loss(&self, base: Duration) -> f64 {
        let is_known = self.acked_before >= ARRIVALS_MIN || base < LONG_PATH;
        if is_known { self.least_loss() } else { self.least_loss().max(OWN_UNKNOWN) }
    }

    /// Whether only the first round trip is known and measures the path's loss: most packets arrived, so it hardly filled a queue.
    fn first_round_measures_loss(&self) -> bool {
        let (acked, lost) = self.calm;
        self.rounds <= 1
            && acked >= PACKETS_MIN
            && f64::from(lost) <= FIRST_LOSS_MAX * f64::from(acked + lost)
    }

    /// A packet was acknowledged. `round` is the current round trip, and `recent` the latest stretch of samples, if there is one. `mean` is
    /// the empty path if its delay varies by itself. Returns whether the link is full.
    pub(super) fn on_ack(
        &mut self,
        acked: &Acked,
        round: &Tally,
        recent: Option<&Tally>,
        mean: Option<Duration>,
    ) -> bool {
        let base = acked.rtt.minimum;
        let visible =
            if round.is_moving(base) { Self::visible_trend(base) } else { Self::visible(&acked.rtt) };
        let has_queue = |tally: &Tally, least: Duration| tally.queue(base) > least;
        // In the first round trips the delivery rate is hardly known.
        let least = match self.rounds {
            0 => None,
            1 => round.is_moving(base).then(|| base / EARLY_QUEUE),
            _ => Some(visible),
        };
        let is_recent =
            least.zip(recent).is_some_and(|(least, recent)| has_queue(recent, least.max(RECENT_QUEUE_MIN)));
        let is_flat = self.plateau.on_ack(acked);
        let is_seen = is_recent || round.acked >= ROUND_SAMPLES && has_queue(round, visible);
        if let Some(mean) = mean {
            self.suspects = None;
            let is_late =
                recent.is_some_and(|recent| has_queue(recent, mean.saturating_sub(base) + mean / 8));
            return is_flat || self.slow_rounds >= if is_late { 1 } else { SLOW_ROUNDS };
        }
        let is_confirmed = is_seen && self.suspects.is_some_and(|since| since < self.rounds);
        if is_seen {
            self.suspects.get_or_insert(self.rounds);
        }
        is_flat || is_confirmed
    }

    /// The shortest queue that can be distinguished from noise.
    pub(super) fn visible(rtt: &RttView) -> Duration {
        Self::visible_trend(rtt.minimum).max(rtt.variance * 2)
    }

    /// The same on a path of `base` whose samples follow a trend. Their variance does not count, since the trend causes it: a large window gets few
    /// ACKs per round trip, between which the queue grows much.
    fn visible_trend(base: Duration) -> Duration {
        ROUND_QUEUE_MIN.max(base / 8)
    }

    /// Whether the window stops growing until a possible queue is confirmed.
    pub(super) fn waits(&self) -> bool {
        self.suspects.is_some()
    }

    /// A round trip is over, which took so long. Returns whether the link is full.
    pub(super) fn on_round(
        &mut self,
        round: &Tally,
        base: Duration,
        took: Duration,
        is_restless: bool,
        is_thin: bool,
    ) -> bool {
        let mut is_full = false;
        self.calm_before = self.calm;
        let measures_loss = !exceeds_small_path(round);
        if !round.is_moving(base) && measures_loss {
            self.calm.0 += round.acked;
            self.calm.1 += round.lost;
        }
        let before = arrival_rate(self.acked_before, self.took_before);
        let is_slow = arrival_rate(round.acked, took) < SLOW * before;
        self.slow_rounds = if is_slow && is_restless { self.slow_rounds + 1 } else { 0 };
        if let Some(loss) = round.loss() {
            let is_flat = f64::from(round.acked) < MORE_PACKETS * f64::from(self.acked_before);
            is_full = is_flat && !round.is_burst() && loss > self.least_loss.unwrap_or(1.0) + MORE_LOSS;
            if !is_full && round.highest <= base + CALM && measures_loss {
                self.least_loss = Some(self.least_loss.map_or(loss, |least| least.min(loss)));
            }
        }
        (self.acked_before, self.took_before) = (round.acked, took);
        self.rounds += 1;
        // A whole round trip did not confirm it. One with little to send does not test it.
        let tests = if is_thin { ROUNDS_REMEMBERED } else { 1 };
        if self.suspects.is_some_and(|since| since + tests < self.rounds) {
            self.suspects = None;
        }
        is_full
    }
}

/// Whether a round trip of few packets lost more of them than arrived. The first flight, and the next ones, are then more than a small path
/// holds, and their losses are not the path's own.
fn exceeds_small_path(round: &Tally) -> bool {
    round.is_mostly_lost() && f64::from(round.acked + round.lost) < LARGE
}

impl Steady {
    /// A packet was acknowledged.
    pub(super) fn on_slow_start_ack(&mut self, acked: &Acked, mut start: SlowStart) {
        if !start.waits() && (!acked.is_app_limited || headroom::may_grow(&self.share, acked, self.tokens)) {
            self.tokens = (self.tokens + 1.0).min(WINDOW_MAX);
        }
        let mean = self.base.is_restless().then(|| self.base.empty(&acked.rtt));
        let is_full = start.on_ack(acked, &self.tally, self.whole_stretch(), mean);
        self.mode = Mode::SlowStart(start);
        if is_full {
            self.leave_slow_start(acked, &start);
        }
    }

    /// The link is full. The window becomes what it delivers.
    pub(super) fn leave_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        let rtt = &acked.rtt;
        let wanted = self.base.empty(rtt).max(rtt.minimum) + self.target(rtt) / 2;
        let by_delay = self.tokens * seconds_ratio(wanted, rtt.standing);
        self.tokens = self.delivered_in(wanted).unwrap_or(by_delay).max(TOKENS_MIN);
        self.end_slow_start(acked, start);
    }

    fn end_slow_start(&mut self, acked: &Acked, start: &SlowStart) {
        self.mode = Mode::Hold(Hold::after_slow_start());
        self.begin_round(acked.largest_sent);
        self.origin.on_queue(self.highest_stretch, acked.rtt.minimum);
        self.breaker.ignore(acked.largest_sent);
        self.origin.on_overshoot(acked.largest_sent, start.least_loss());
        self.learn_from(start);
    }

    /// Packets are lost while the queue grows, so it overflows. The loss of this round trip does not count as the path's own.
    pub(super) fn leave_lossy_slow_start(&mut self, acked: &Acked, start: &SlowStart, tally: &Tally) {
        self.tokens = (self.tokens.min(f64::from(tally.acked)) * BACK_OFF_OVERFLOW).max(TOKENS_MIN);
        self.end_slow_start(acked, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketNumber;
    use crate::congestion::tests::{acked, rtt};

    const BASE: Duration = Duration::from_millis(20);

    /// A round trip with noise in which so many packets arrived, and those with these numbers did not.
    fn round(acked: u32, lost: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        for packet in 0..acked {
            let rtt = BASE + Duration::from_millis(u64::from(3 * (packet % 2)));
            tally.on_packet(rtt);
            tally.samples.push(rtt);
        }
        lost.into_iter().for_each(|number| tally.on_loss(PacketNumber(number)));
        tally
    }

    /// Slow start after a round trip in which 30 packets arrived and every second one of so many was lost.
    fn after_first(lost: u64) -> SlowStart {
        let mut start = SlowStart::default();
        start.on_round(&round(30, (0..lost).map(|number| 2 * number)), BASE, BASE, false, false);
        start
    }

    #[test]
    fn a_queue_that_grows_between_few_acks_is_no_noise() {
        let waits = |samples: &mut dyn Iterator<Item = u64>| {
            let (mut growing, mut recent) = (Tally::default(), Tally::default());
            for rtt in samples.map(Duration::from_millis) {
                growing.on_packet(rtt);
                growing.samples.push(rtt);
            }
            recent.on_packet(BASE + Duration::from_millis(5));
            let mut start = SlowStart { rounds: 2, ..SlowStart::default() };
            let rtt = RttView { variance: Duration::from_millis(4), ..rtt(0) };
            start.on_ack(&Acked { rtt, ..acked(100, 130, 0) }, &growing, Some(&recent), None);
            start.waits()
        };
        assert!(waits(&mut (0..8).map(|step| 20 + step)), "a trend");
        assert!(!waits(&mut (0..8).map(|step| 20 + 7 * (step % 2))), "noise");
    }

    #[test]
    fn the_first_round_trip_measures_the_loss_of_the_path_if_most_packets_arrived() {
        assert!((after_first(8).least_loss() - 8.0 / 38.0).abs() < 1e-12);
        assert_eq!(after_first(20).least_loss(), 0.0, "it may have filled a queue");
    }

    #[test]
    fn a_flight_that_a_small_path_mostly_drops_does_not_measure_its_loss() {
        let least = |arrived: u32, lost: u64| {
            let mut start = SlowStart::default();
            (0..2).for_each(|_| {
                let mut round = round(arrived, (0..lost).map(|number| 2 * number));
                round.highest = BASE;
                start.on_round(&round, BASE, BASE, false, false);
            });
            start.least_loss()
        };
        assert_eq!(least(12, 20), 0.0, "it held 12 of 32 packets");
        assert!((least(22, 10) - 10.0 / 32.0).abs() < 1e-12, "most arrived");
        assert!((least(48, 80) - 80.0 / 128.0).abs() < 1e-12, "enough packets");
    }

    #[test]
    fn a_long_path_may_lose_a_fifth_of_the_first_flight_by_itself() {
        let first = SlowStart::default();
        assert_eq!([LONG_PATH, BASE].map(|base| first.own_loss(base)), [OWN_UNKNOWN, 0.0]);
        assert_eq!(after_first(0).own_loss(LONG_PATH), 0.0, "the first flight has shown that it loses none");
        assert!((after_first(8).own_loss(LONG_PATH) - 8.0 / 38.0).abs() < 1e-12);
    }

    #[test]
    fn more_loss_without_more_arrivals_ends_slow_start_unless_it_is_a_burst() {
        let ends = |lost: &[u64]| {
            let mut start = SlowStart::default();
            let mut quiet = round(30, []);
            quiet.highest = BASE;
            start.on_round(&quiet, BASE, BASE, false, false);
            start.on_round(&round(30, lost.iter().copied()), BASE, BASE, false, false)
        };
        let [row, single] = [1, 2].map(|step| (0..10).map(|number| step * number).collect::<Vec<_>>());
        assert!(ends(&single));
        assert!(!ends(&row), "a burst");
        assert!(!ends(&single[..5]), "not so much more");
    }
}
