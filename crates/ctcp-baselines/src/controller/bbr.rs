//! BBR version 3 (draft-ietf-ccwg-bbr), to compare `default` with, and as a competitor in simulations.
//!
//! ```text
//!   Startup --> Drain --> Down --> Cruise --> Refill --> Up
//!                          ^                             |
//!                          '-----------------------------'       every 2 to 3 s, or some 60 round trips
//!          any of them --> ProbeRtt --> Cruise (or Startup)      every 5 s unless the queue was empty by itself
//! ```
//!
//! It follows the draft's pseudocode, with these differences:
//!
//! - Amounts are packets.
//! - Acknowledgements are processed packet by packet. The rate of a round trip is its greatest one.
//! - A timeout leaves four packets.
//! - There is no undo after spurious losses, and no packet conservation in recovery.
//! - Marks count as a loss in the round.
//!
//! [`BBR`] takes more than 2 % loss for congestion. [`BBR_TOLERANT`] is the same, except that loss while there is no
//! queue is taken for the path's own: the threshold is that much higher, and as much more is sent. It is one of the designs
//! that `default` was compared with.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_proto::congestion::{
    Acked, Algorithm, AlgorithmSpec, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WindowOf,
};

mod cycle;
mod innocent;
mod model;
mod sampler;

use cycle::Cycle;
use innocent::Innocent;
use model::Model;
use sampler::{Sample, Sampler};

pub(super) const PARTS: &[Algorithm] = &[BBR, BBR_TOLERANT];

/// BBR version 3.
pub const BBR: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 7,
    name: "bbr",
    make: |datagram_size| Box::new(Bbr::new(datagram_size, false)),
    answers_to_marks: true,
    is_punctual: false,
    window: Some(WindowOf::Packets),
});

/// BBR version 3 that tolerates the path's own loss.
pub const BBR_TOLERANT: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 8,
    name: "bbr-tolerant",
    make: |datagram_size| Box::new(Bbr::new(datagram_size, true)),
    answers_to_marks: true,
    is_punctual: false,
    window: Some(WindowOf::Packets),
});

/// Packets of the initial window, as in `default`.
const INITIAL_WINDOW: f64 = 32.0;
/// Packets in flight at least (draft: `MinPipeCwnd`).
const WINDOW_LEAST: f64 = 4.0;

/// Pacing is this much below the estimated bandwidth (draft: `PacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;

/// Times of `ProbeRtt` (draft: `ProbeRTTInterval`, `ProbeRTTDuration`, `MinRTTFilterLen`).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
const MIN_RTT_KEPT: Duration = Duration::from_secs(10);

/// The share of the window in `ProbeRtt` (draft: `ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: f64 = 0.5;

/// After so many round trips, `Drain` ends in any case.
const DRAIN_ROUNDS: u64 = 3;

/// The states of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// The gains of pacing rate and window.
    fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    /// Whether it probes for bandwidth.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Whether it belongs to the cycle that probes for bandwidth.
    fn is_in_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// The smallest round-trip time and the times at which it is measured.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    value: Duration,
    at: Instant,
    /// The smallest one since the last probe.
    recent: Duration,
    recent_at: Instant,
    /// When the running probe ends, once little enough is in flight.
    ends: Option<Instant>,
    is_round_done: bool,
}

/// The controller.
#[derive(Debug)]
struct Bbr {
    datagram: u64,
    state: State,
    sampler: Sampler,
    model: Model,
    cycle: Cycle,
    innocent: Innocent,
    min_rtt: Option<MinRtt>,
    /// Packets that may be in flight, and before a probe or a timeout.
    window: f64,
    window_before: f64,
    /// Packets per second.
    pacing: Option<f64>,
    drain_began: u64,
    /// In the latest round trips the window was used up.
    used_up_in: u64,
    /// Nothing was in flight, so the queue was empty.
    is_restarting: bool,
}

impl Bbr {
    fn new(datagram: u64, tolerates_loss: bool) -> Self {
        Self {
            datagram,
            state: State::Startup,
            sampler: Sampler::default(),
            model: Model::default(),
            cycle: Cycle::default(),
            innocent: Innocent::new(tolerates_loss),
            min_rtt: None,
            window: INITIAL_WINDOW,
            window_before: 0.0,
            pacing: None,
            drain_began: 0,
            used_up_in: 0,
            is_restarting: false,
        }
    }

    fn minimum(&self) -> Duration {
        self.min_rtt.map_or(Duration::ZERO, |min_rtt| min_rtt.value)
    }

    /// Bandwidth times smallest round trip, in packets to be sent.
    fn product(&self) -> f64 {
        self.model.bandwidth() * self.minimum().as_secs_f64() / self.innocent.arrives()
    }

    /// The same, whatever recent losses bound.
    fn product_at_most(&self) -> f64 {
        let product = self.model.max_rate() * self.minimum().as_secs_f64() / self.innocent.arrives();
        product.max(WINDOW_LEAST)
    }

    /// So many products, and what acknowledgements need.
    fn in_flight_for(&self, gain: f64) -> f64 {
        let least = (gain * self.product()).max(WINDOW_LEAST);
        if self.state == State::Up { least + 2.0 } else { least }
    }

    fn is_used_up(&self) -> bool {
        self.model.rounds.count - self.used_up_in <= 1
    }

    fn update_state(&mut self, acked: &Acked, sample: &Sample) {
        if self.state == State::Startup && self.model.is_full_reached() {
            self.state = State::Drain;
            self.drain_began = self.model.rounds.count;
        }
        let in_flight = acked.in_flight as f64;
        let is_late = self.model.rounds.count > self.drain_began + DRAIN_ROUNDS;
        if self.state == State::Drain && (in_flight <= self.in_flight_for(1.0) || is_late) {
            self.start_down(acked.now);
        }
        self.advance_cycle(acked, sample);
        self.update_min_rtt(acked);
        self.model.end_ack(sample);
    }

    fn update_min_rtt(&mut self, acked: &Acked) {
        let latest = acked.sample.unwrap_or(acked.rtt.latest);
        let now = acked.now;
        let min_rtt = self.min_rtt.get_or_insert(MinRtt {
            value: latest,
            at: now,
            recent: latest,
            recent_at: now,
            ends: None,
            is_round_done: false,
        });
        let is_due = now > min_rtt.recent_at + PROBE_RTT_INTERVAL;
        if latest < min_rtt.recent || is_due {
            (min_rtt.recent, min_rtt.recent_at) = (latest, now);
        }
        if min_rtt.recent < min_rtt.value || now > min_rtt.at + MIN_RTT_KEPT {
            (min_rtt.value, min_rtt.at) = (min_rtt.recent, min_rtt.recent_at);
        }
        if self.state != State::ProbeRtt && is_due && !self.is_restarting {
            self.state = State::ProbeRtt;
            min_rtt.ends = None;
            self.window_before = self.window;
            self.cycle.stop_probing();
            self.model.rounds.begin(&self.sampler);
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(acked);
        }
    }

    fn probe_rtt(&mut self, acked: &Acked) {
        // Its low rates say nothing about the path.
        self.sampler.limit_by_application(acked.in_flight);
        let is_small = acked.in_flight as f64 <= self.in_flight_for(PROBE_RTT_GAIN);
        let Some(min_rtt) = &mut self.min_rtt else { return };
        let Some(ends) = min_rtt.ends else {
            if is_small {
                min_rtt.ends = Some(acked.now + PROBE_RTT_TIME);
                min_rtt.is_round_done = false;
                self.model.rounds.begin(&self.sampler);
            }
            return;
        };
        min_rtt.is_round_done |= self.model.rounds.is_start;
        if min_rtt.is_round_done && acked.now > ends {
            min_rtt.recent_at = acked.now;
            self.window = self.window.max(self.window_before);
            self.model.forget_short_term();
            if self.model.is_full_reached() {
                self.start_down(acked.now);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    fn set_pacing(&mut self, acked: &Acked) {
        let (gain, _) = self.state.gains();
        let first = gain * INITIAL_WINDOW / acked.rtt.smoothed.as_secs_f64().max(1e-3);
        self.pacing.get_or_insert(first);
        let rate = gain * self.model.bandwidth() * PACING_MARGIN / self.innocent.arrives();
        if rate > 0.0 && (self.model.is_full_reached() || self.pacing.is_none_or(|pacing| rate > pacing)) {
            self.pacing = Some(rate);
        }
    }

    fn set_window(&mut self) {
        let (_, gain) = self.state.gains();
        let most = self.in_flight_for(gain) + self.model.extra() / self.innocent.arrives();
        if self.model.is_full_reached() {
            self.window = (self.window + 1.0).min(most);
        } else if self.window < most || (self.sampler.delivered as f64) < INITIAL_WINDOW {
            self.window += 1.0;
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.in_flight_for(PROBE_RTT_GAIN));
        }
        let bound = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.model.long_term,
            State::Cruise | State::ProbeRtt => self.model.with_headroom(),
        };
        let bound = bound.min(self.model.short_term()).max(WINDOW_LEAST);
        self.window = self.window.min(bound).clamp(WINDOW_LEAST, WINDOW_MAX);
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        self.sampler.on_sent(sent);
        self.is_restarting |= sent.in_flight <= 1;
        if sent.in_flight as f64 + 1.0 >= self.window {
            self.used_up_in = self.model.rounds.count;
        }
    }

    fn on_ack(&mut self, acked: &Acked) {
        if acked.ecn_ce {
            self.model.note_loss(&self.sampler);
        }
        let Some(sample) = self.sampler.on_ack(acked, self.minimum()) else { return };
        self.innocent.on_fate(false, acked.rtt.latest, self.minimum());
        let limits = model::Limits {
            innocent: self.innocent,
            window: self.window,
            product: self.product(),
        };
        self.model.on_ack(acked.now, &sample, &self.sampler, self.state, &limits);
        self.update_state(acked, &sample);
        self.set_pacing(acked);
        self.set_window();
        self.is_restarting = false;
    }

    fn on_loss(&mut self, lost: &Lost) {
        let Some(sample) = self.sampler.on_loss(lost) else { return };
        self.innocent.on_fate(true, lost.rtt.latest, self.minimum());
        self.model.on_loss(lost.number, &self.sampler);
        if self.cycle.is_probe_sample && self.is_too_high(&sample) {
            self.lower_long_term(lost.now, &sample);
        }
    }

    fn on_timeout(&mut self, _: &TimedOut) {
        self.model.note_loss(&self.sampler);
        self.window = WINDOW_LEAST;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        let factor = bytes as f64 / self.datagram.max(1) as f64;
        self.model.scale(factor);
        self.pacing = self.pacing.map(|pacing| pacing / factor);
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing.map(|packets| packets * self.datagram as f64)
    }

    fn phase(&self) -> Phase {
        if self.state == State::Startup { Phase::SlowStart } else { Phase::Avoidance }
    }

    fn name(&self) -> &'static str {
        if self.innocent.is_tolerated() { "bbr-tolerant" } else { "bbr" }
    }
}

#[cfg(test)]
mod tests;
