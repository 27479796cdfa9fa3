//! The model of the path: bandwidth, and bounds for what is in flight.

use ctcp_base::Instant;
use ctcp_proto::PacketNumber;

use super::{State, WINDOW_LEAST};
use super::innocent::Innocent;
use super::sampler::{Sample, Sampler};

/// Loss that shows too much in flight (draft: `LossThresh`).
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// Maximum reduction at once (draft: `Beta`).
pub(super) const BETA: f64 = 0.7;
/// The share left free for others while cruising (draft: `Headroom`).
const HEADROOM: f64 = 0.15;
/// Separate losses in a round trip that end Startup (draft: `StartupFullLossCnt`).
const STARTUP_LOSSES: u32 = 6;
/// Growth of the rate without which a path may be full, and for so many round trips.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The greatest excess of acknowledgements is kept for two periods of so many round trips.
const EXTRA_ROUNDS: u64 = 5;

/// Round trips counted by packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The latest acknowledgement began one.
    pub(super) is_start: bool,
    ends_at: u64,
}

impl Rounds {
    pub(super) fn begin(&mut self, sampler: &Sampler) {
        self.ends_at = sampler.delivered;
    }

    fn on_ack(&mut self, sample: &Sample, sampler: &Sampler) {
        self.is_start = sample.prior_delivered >= self.ends_at;
        if self.is_start {
            self.begin(sampler);
            self.count += 1;
        }
    }
}

/// What the model needs of its controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) innocent: Innocent,
    pub(super) window: f64,
    /// Bandwidth times round-trip time, in packets to be sent.
    pub(super) product: f64,
}

/// How many more packets were acknowledged than expected.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    began: Option<Instant>,
    delivered: f64,
    /// The greatest excess of this period of round trips and of the one before.
    extra: [f64; 2],
    period: u64,
}

/// The model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) rounds: Rounds,
    /// The greatest rate of the current cycle and of the one before, in packets per second.
    max_rate: [f64; 2],
    /// Bounds after loss (draft: `bw_shortterm`, `inflight_shortterm`).
    rate_short: f64,
    in_flight_short: f64,
    /// What the path held when it lost too much (draft: `inflight_longterm`).
    pub(super) long_term: f64,
    /// The greatest rate and amount delivered since the last round trip of the loss clock.
    latest_rate: f64,
    latest_delivered: f64,
    loss_round_ends_at: u64,
    is_loss_round_start: bool,
    is_loss_in_round: bool,
    /// Lost in this round trip of the loss clock, and in how many separate places.
    lost: f64,
    places: u32,
    last_lost: Option<PacketNumber>,
    /// The rate from which growth is counted, and since how many round trips there is none.
    full_rate: f64,
    full_rounds: u32,
    pub(super) is_full_now: bool,
    is_full_reached: bool,
    round_rate: f64,
    /// The greatest rate of the round trip before.
    round_rate_before: f64,
    aggregation: Aggregation,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            rounds: Rounds::default(),
            max_rate: [0.0; 2],
            rate_short: f64::INFINITY,
            in_flight_short: f64::INFINITY,
            long_term: f64::INFINITY,
            latest_rate: 0.0,
            latest_delivered: 0.0,
            loss_round_ends_at: 0,
            is_loss_round_start: false,
            is_loss_in_round: false,
            lost: 0.0,
            places: 0,
            last_lost: None,
            full_rate: 0.0,
            full_rounds: 0,
            is_full_now: false,
            is_full_reached: false,
            round_rate: 0.0,
            round_rate_before: 0.0,
            aggregation: Aggregation::default(),
        }
    }
}

impl Model {
    /// Packets per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.max_rate().min(self.rate_short)
    }

    /// The same, whatever recent losses bound.
    pub(super) fn max_rate(&self) -> f64 {
        self.max_rate[0].max(self.max_rate[1])
    }

    pub(super) fn short_term(&self) -> f64 {
        self.in_flight_short
    }

    pub(super) fn extra(&self) -> f64 {
        self.aggregation.extra[0].max(self.aggregation.extra[1])
    }

    pub(super) fn is_full_reached(&self) -> bool {
        self.is_full_reached
    }

    /// The bound in flight that leaves room for others.
    pub(super) fn with_headroom(&self) -> f64 {
        if self.long_term.is_infinite() {
            return f64::INFINITY;
        }
        (self.long_term - (HEADROOM * self.long_term).max(1.0)).max(WINDOW_LEAST)
    }

    /// A new cycle began. One without a sample does not count.
    pub(super) fn advance_max_rate(&mut self) {
        if self.max_rate[0] > 0.0 {
            self.max_rate = [0.0, self.max_rate[0]];
        }
    }

    /// Packets carry `factor` times as many bytes as before.
    pub(super) fn scale(&mut self, factor: f64) {
        let rates = [&mut self.rate_short, &mut self.latest_rate, &mut self.full_rate, &mut self.round_rate];
        for rate in rates.into_iter().chain(&mut self.max_rate) {
            *rate /= factor;
        }
    }

    pub(super) fn forget_short_term(&mut self) {
        self.rate_short = f64::INFINITY;
        self.in_flight_short = f64::INFINITY;
    }

    pub(super) fn forget_signals(&mut self) {
        self.is_loss_in_round = false;
        self.latest_rate = 0.0;
        self.latest_delivered = 0.0;
        self.lost = 0.0;
        self.places = 0;
    }

    /// Growth is counted from the rate of the last round trip.
    pub(super) fn restart_full(&mut self) {
        self.full_rate = self.round_rate_before;
        self.full_rounds = 0;
        self.is_full_now = false;
    }

    pub(super) fn note_loss(&mut self, sampler: &Sampler) {
        if !self.is_loss_in_round {
            self.loss_round_ends_at = sampler.delivered;
        }
        self.is_loss_in_round = true;
    }

    pub(super) fn on_loss(&mut self, number: PacketNumber, sampler: &Sampler) {
        self.note_loss(sampler);
        self.lost += 1.0;
        let is_next = self.last_lost.is_some_and(|last| last.0 + 1 == number.0);
        self.places += u32::from(!is_next);
        self.last_lost = Some(number);
    }

    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        sample: &Sample,
        sampler: &Sampler,
        state: State,
        limits: &Limits,
    ) {
        let rate = sample.rate.unwrap_or(0.0);
        self.latest_rate = self.latest_rate.max(rate);
        self.latest_delivered = self.latest_delivered.max(sample.delivered);
        self.is_loss_round_start = sample.prior_delivered >= self.loss_round_ends_at;
        if self.is_loss_round_start {
            self.loss_round_ends_at = sampler.delivered;
        }
        self.rounds.on_ack(sample, sampler);
        if rate > 0.0 && (rate >= self.max_rate() || !sample.is_app_limited) {
            self.max_rate[0] = self.max_rate[0].max(rate);
        }
        self.on_aggregation(now, limits.window);
        self.check_full(sample, rate);
        if self.is_loss_round_start {
            self.end_loss_round(state, limits);
        }
    }

    fn end_loss_round(&mut self, state: State, limits: &Limits) {
        let all = self.lost + self.latest_delivered;
        let is_high = self.lost / all.max(1.0) > limits.innocent.threshold(LOSS_THRESHOLD, all);
        let is_lossy = self.is_loss_in_round && is_high && self.places >= STARTUP_LOSSES;
        if state == State::Startup && is_lossy {
            self.is_full_reached = true;
            self.long_term = limits.product.max(self.latest_delivered / limits.innocent.arrives());
        }
        // Without tolerated loss every loss counts; the response is proportional to it.
        let counts = limits.innocent.loss() == 0.0 || is_high;
        if !state.is_probing() && self.is_loss_in_round && counts {
            let (rate, in_flight) = (self.rate_short.min(self.max_rate()), self.in_flight_short);
            let in_flight = in_flight.min(limits.window);
            let delivered = self.latest_delivered / limits.innocent.arrives();
            self.rate_short = self.latest_rate.max(BETA * rate);
            self.in_flight_short = delivered.max(BETA * in_flight);
        }
        self.is_loss_in_round = false;
        self.lost = 0.0;
        self.places = 0;
    }

    /// Ends the processing of an acknowledged packet.
    pub(super) fn end_ack(&mut self, sample: &Sample) {
        if self.is_loss_round_start {
            self.latest_rate = sample.rate.unwrap_or(0.0);
            self.latest_delivered = sample.delivered;
        }
    }

    fn check_full(&mut self, sample: &Sample, rate: f64) {
        if !self.rounds.is_start {
            self.round_rate = self.round_rate.max(rate);
            return;
        }
        self.round_rate_before = core::mem::replace(&mut self.round_rate, rate);
        let rate = self.round_rate_before;
        if self.is_full_now || sample.is_app_limited {
            return;
        }
        if rate >= self.full_rate * FULL_GROWTH {
            self.restart_full();
            return;
        }
        self.full_rounds += 1;
        self.is_full_now = self.full_rounds >= FULL_ROUNDS;
        self.is_full_reached |= self.is_full_now;
    }

    fn on_aggregation(&mut self, now: Instant, window: f64) {
        let bandwidth = self.bandwidth();
        let this = &mut self.aggregation;
        let began = *this.began.get_or_insert(now);
        let mut expected = bandwidth * (now - began).as_secs_f64();
        if this.delivered <= expected {
            this.began = Some(now);
            this.delivered = 0.0;
            expected = 0.0;
        }
        this.delivered += 1.0;
        let period = if self.is_full_reached { self.rounds.count / EXTRA_ROUNDS } else { self.rounds.count };
        if period != this.period {
            this.period = period;
            this.extra = [0.0, this.extra[0]];
        }
        this.extra[0] = this.extra[0].max((this.delivered - expected).min(window));
    }
}
