//! Our default: the paper's back-off `RTTmin / RTT`, made robust against noise and quick to fill a link.

use core::time::Duration;

use super::round::{Plateau, Round};
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate};
use crate::recovery::rtt::RttView;

/// Packets of the initial window; they leave paced, not in a burst.
const INITIAL_WINDOW: f64 = 32.0;

const SLOW_START_QUEUE_MIN: Duration = Duration::from_millis(4);
const PACING_GAIN: f64 = 1.15;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// The most packets in flight for one that arrives: beyond 75 % loss a path is no path.
const COMPENSATION_MAX: f64 = 4.0;

/// The default controller.
#[derive(Debug)]
pub(super) struct Steady {
    tokens: f64,
    is_slow_start: bool,
    loss_average: f64,
    backed_off: Round,
    plateau: Plateau,
    is_recovering: bool,
    datagram: u64,
    rtt: Option<RttView>,
}

impl Steady {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            tokens: INITIAL_WINDOW,
            is_slow_start: true,
            loss_average: 0.0,
            backed_off: Round::default(),
            plateau: Plateau::default(),
            is_recovering: false,
            datagram,
            rtt: None,
        }
    }

    fn target(&self, rtt: &RttView) -> Duration {
        let packet = Duration::from_secs_f64(2.0 * rtt.minimum.as_secs_f64() / self.tokens.max(1.0));
        packet.max(rtt.minimum / 10)
    }

    fn back_off(&mut self, rtt: &RttView, largest_sent: crate::PacketNumber) {
        let wanted = rtt.minimum + self.target(rtt);
        let beta = wanted.as_secs_f64() / rtt.standing.as_secs_f64().max(1e-6);
        self.tokens = (self.tokens * beta.min(1.0)).max(WINDOW_MIN);
        self.backed_off.begin(largest_sent);
        self.is_recovering = true;
    }
}

impl Controller for Steady {
    fn on_sent(&mut self, _sent: &Sent) {}

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        self.loss_average = acked.loss_average;
        if self.backed_off.is_behind(acked.number) {
            self.is_recovering = false;
        }
        let rtt = &acked.rtt;
        if self.is_slow_start {
            if !acked.is_app_limited {
                self.tokens = (self.tokens + 1.0).min(WINDOW_MAX);
            }
            let is_queueing = rtt.standing_queue() > SLOW_START_QUEUE_MIN.max(rtt.minimum / 8);
            if is_queueing || self.plateau.on_ack(acked) {
                self.is_slow_start = false;
                self.back_off(rtt, acked.largest_sent);
            }
        } else if !acked.is_app_limited {
            let is_below = rtt.standing_queue() < self.target(rtt);
            let growth = if is_below { (self.tokens / 16.0).max(1.0) } else { 1.0 };
            self.tokens = (self.tokens + growth / self.tokens).min(WINDOW_MAX);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        self.loss_average = lost.loss_average;
        if !self.is_slow_start && self.backed_off.is_behind(lost.number) {
            self.back_off(&lost.rtt, lost.largest_sent);
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        self.tokens = INITIAL_WINDOW;
        self.is_slow_start = true;
        self.plateau = Plateau::default();
        self.backed_off.begin(timed_out.largest_sent);
        self.is_recovering = false;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        let arrives = 1.0 - self.loss_average;
        (self.tokens / arrives.max(1.0 / COMPENSATION_MAX)).min(WINDOW_MAX)
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.is_slow_start { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        self.rtt.map(|rtt| pacing_rate(gain, self.window(), self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        match (self.is_slow_start, self.is_recovering) {
            (true, _) => Phase::SlowStart,
            (false, true) => Phase::Recovery,
            (false, false) => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        "steady"
    }
}
