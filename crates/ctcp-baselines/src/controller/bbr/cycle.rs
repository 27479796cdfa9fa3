//! The cycle that probes for bandwidth: Down, Cruise, Refill, Up (draft: `ProbeBW`).

use core::time::Duration;

use ctcp_base::{Instant, Prng};
use ctcp_proto::congestion::Acked;

use super::model::{BETA, LOSS_THRESHOLD};
use super::sampler::Sample;
use super::{Bbr, State};

/// A cycle takes this long, and up to a second more at random.
const WAIT: Duration = Duration::from_secs(2);
/// A cycle takes at most so many round trips, for the sake of Reno.
const ROUNDS_MAX: f64 = 63.0;
/// The greatest power of two by which growth in Up accelerates.
const UP_ROUNDS_MAX: i32 = 30;

/// Which packets the acknowledgements are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Others,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of the cycle.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    began: Option<Instant>,
    wait: Duration,
    /// Round trips since the last probe.
    rounds: u64,
    acks: Acks,
    /// Losses are answered, once, as those of a probe.
    pub(super) is_probe_sample: bool,
    /// The last probe lost too much, and the one before this was cut short for that.
    was_too_high: bool,
    was_precautionary: bool,
    up_rounds: i32,
    up_acked: f64,
    /// Acknowledged packets for which the bound grows by one.
    up_acked_per_packet: f64,
}

impl Cycle {
    pub(super) fn stop_probing(&mut self) {
        self.acks = Acks::ProbeStopping;
    }
}

impl Bbr {
    pub(super) fn start_down(&mut self, now: Instant) {
        self.model.forget_signals();
        let chance = Prng::new(now.as_nanos()).unit();
        self.cycle.up_acked_per_packet = f64::INFINITY;
        self.cycle.rounds = u64::from(chance < 0.5);
        self.cycle.wait = WAIT + Duration::from_secs_f64(chance);
        self.cycle.began = Some(now);
        self.cycle.acks = Acks::ProbeStopping;
        self.model.rounds.begin(&self.sampler);
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
        self.model.forget_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.was_precautionary = false;
        self.cycle.acks = Acks::Refilling;
        self.model.rounds.begin(&self.sampler);
        self.state = State::Refill;
    }

    fn start_up(&mut self) {
        self.cycle.acks = Acks::ProbeStarting;
        self.model.rounds.begin(&self.sampler);
        self.model.restart_full();
        self.state = State::Up;
        self.raise_slope();
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds.min(UP_ROUNDS_MAX));
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(UP_ROUNDS_MAX);
        self.cycle.up_acked_per_packet = (self.window / growth).max(1.0);
    }

    pub(super) fn advance_cycle(&mut self, acked: &Acked, sample: &Sample) {
        let is_start = self.model.rounds.is_start;
        self.cycle.rounds += u64::from(is_start);
        if !self.model.is_full_reached() || self.adapt_long_term(sample) {
            return;
        }
        let in_flight = acked.in_flight as f64;
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(acked.now) => self.start_refill(),
            State::Down if in_flight <= self.model.with_headroom().min(self.product_at_most()) => {
                self.state = State::Cruise;
            }
            State::Refill if is_start => {
                self.cycle.is_probe_sample = true;
                self.start_up();
            }
            State::Up if self.is_time_to_go_down(acked) => {
                self.cycle.was_too_high = false;
                self.start_down(acked.now);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let is_over = self.cycle.began.is_none_or(|began| now > began + self.cycle.wait);
        let target = self.product().min(self.window).min(ROUNDS_MAX);
        is_over || self.cycle.rounds as f64 >= target
    }

    fn is_time_to_go_down(&mut self, acked: &Acked) -> bool {
        if self.cycle.was_too_high && acked.in_flight as f64 >= self.model.long_term {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.is_used_up() && self.window >= self.model.long_term {
            // Its bound limits the rate.
            self.model.restart_full();
            return false;
        }
        self.model.is_full_now
    }

    /// Adapts the bound in flight to what probes show. Returns whether it changed the state.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        let is_start = self.model.rounds.is_start;
        if self.cycle.acks == Acks::ProbeStarting && is_start {
            self.cycle.acks = Acks::ProbeFeedback;
        }
        if self.cycle.acks == Acks::ProbeStopping && is_start {
            self.cycle.is_probe_sample = false;
            self.cycle.acks = Acks::Others;
            if self.state.is_in_cycle() && !sample.is_app_limited {
                self.model.advance_max_rate();
            }
            if self.state.is_in_cycle() && self.cycle.was_precautionary && !self.cycle.was_too_high {
                self.start_refill();
                return true;
            }
        }
        if !self.is_too_high(sample) && self.model.long_term.is_finite() {
            self.model.long_term = self.model.long_term.max(sample.in_flight);
            if self.state == State::Up {
                self.probe_upward();
            }
        }
        false
    }

    fn probe_upward(&mut self) {
        if !self.is_used_up() || self.window < self.model.long_term {
            return;
        }
        self.cycle.up_acked += 1.0;
        if self.cycle.up_acked >= self.cycle.up_acked_per_packet {
            self.cycle.up_acked -= self.cycle.up_acked_per_packet;
            self.model.long_term += 1.0;
        }
        if self.model.rounds.is_start {
            self.raise_slope();
        }
    }

    /// More was lost since the packet of the sample was sent than a path that is not overloaded loses.
    pub(super) fn is_too_high(&self, sample: &Sample) -> bool {
        sample.lost > sample.in_flight * self.innocent.threshold(LOSS_THRESHOLD, sample.in_flight)
    }

    /// A probe lost too much.
    pub(super) fn lower_long_term(&mut self, now: Instant, sample: &Sample) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !sample.is_app_limited {
            let target = self.product().min(self.window);
            let threshold = self.innocent.threshold(LOSS_THRESHOLD, sample.in_flight);
            let (before, lost_before) = (sample.in_flight - 1.0, sample.lost - 1.0);
            let prefix = (threshold * before - lost_before) / (1.0 - threshold);
            self.model.long_term = (before + prefix.max(0.0)).max(BETA * target);
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }
}
