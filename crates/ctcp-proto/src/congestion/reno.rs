//! Standard TCP's congestion control (RFC 5681, with one reduction per round trip as in RFC 6582), counted in packets. Used by profile
//! `tcp` and as a baseline.

use super::round::Round;
use super::{Acked, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate};
use crate::recovery::rtt::RttView;

/// RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;

/// RFC 5681 3.1: the window after a timeout.
const LOSS_WINDOW: f64 = 1.0;

/// RFC 5681 3.1: half.
const BACK_OFF: f64 = 0.5;

const PACING_GAIN: f64 = 1.2;
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Reno.
#[derive(Debug)]
pub(super) struct Reno {
    window: f64,
    threshold: f64,
    backed_off: Round,
    is_recovering: bool,
    datagram: u64,
    rtt: Option<RttView>,
}

impl Reno {
    /// A controller in slow start.
    pub(super) fn new(datagram: u64) -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            backed_off: Round::default(),
            is_recovering: false,
            datagram,
            rtt: None,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn back_off(&mut self, largest_sent: crate::PacketNumber) {
        self.window = (self.window * BACK_OFF).max(WINDOW_MIN);
        self.threshold = self.window;
        self.backed_off.begin(largest_sent);
        self.is_recovering = true;
    }
}

impl Controller for Reno {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        if !self.backed_off.is_after(acked.number) {
            // RFC 6582: the window is constant during the round trip of a back-off.
            return;
        }
        self.is_recovering = false;
        if acked.ecn_ce {
            // RFC 3168 6.1.2: a mark is treated as a loss.
            self.back_off(acked.largest_sent);
        } else if !acked.is_app_limited {
            let growth = if self.is_slow_start() { 1.0 } else { 1.0 / self.window };
            self.window = (self.window + growth).min(WINDOW_MAX);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.backed_off.is_after(lost.number) {
            self.back_off(lost.largest_sent);
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        // RFC 5681 3.1: a second timeout in a row says nothing new about the path and must not lower the threshold.
        if self.window > LOSS_WINDOW {
            self.threshold = (self.window * BACK_OFF).max(WINDOW_MIN);
        }
        self.window = LOSS_WINDOW;
        self.backed_off.begin(timed_out.largest_sent);
        self.is_recovering = false;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.is_slow_start() { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        self.rtt.map(|rtt| pacing_rate(gain, self.window, self.datagram, rtt.smoothed))
    }

    fn phase(&self) -> Phase {
        match (self.is_recovering, self.is_slow_start()) {
            (true, _) => Phase::Recovery,
            (false, true) => Phase::SlowStart,
            (false, false) => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketNumber;
    use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};
    use ctcp_base::Instant;

    #[test]
    fn consecutive_timeouts_keep_the_threshold_of_the_first() {
        let mut reno = Reno { window: 40.0, ..Reno::new(1200) };
        let timed_out = TimedOut {
            now: Instant::ZERO,
            in_flight: 40,
            largest_sent: PacketNumber(40),
            rtt: RttEstimator::new(INITIAL_RTT).view(Instant::ZERO),
        };
        for _ in 0..3 {
            reno.on_timeout(&timed_out);
            assert_eq!((reno.window, reno.threshold), (1.0, 20.0));
        }
    }
}
