//! Growth of the window while the queue is held at its target, up to what the delivery rate supports.

use super::hold::Hold;
use super::loss::LARGE;
use super::{Acked, INITIAL_WINDOW, Steady};
use crate::congestion::WINDOW_MAX;

/// How far the window may exceed what the delivery rate supports, in targets and in packets (an ACK acknowledges two).
const CAP_TARGETS: f64 = 1.5;
const CAP_PACKETS: f64 = 2.5;

/// Where the queue stays short, a large window may exceed it by this fraction of the path.
const CAP_ROOM: u32 = 8;

impl Steady {
    /// A packet was acknowledged.
    pub(super) fn on_hold_ack(&mut self, acked: &Acked, hold: Hold) {
        if acked.is_app_limited && self.tokens >= INITIAL_WINDOW {
            self.regain = None;
            return;
        }
        let (base, target) = (self.base.empty(&acked.rtt), self.target(&acked.rtt));
        if let Some(wanted) = self.regain {
            if self.tokens < wanted {
                if acked.rtt.standing < base + target {
                    self.tokens += 1.0;
                }
                return;
            }
            self.regain = None;
        }
        if hold.is_learning() {
            let delivered = self.delivered_in(base + target / 2).unwrap_or(self.tokens);
            self.tokens = self.tokens.max(delivered).min(WINDOW_MAX);
        }
        if acked.rtt.standing < base + target && self.tokens < self.cap(acked, hold) {
            self.tokens += self.ceiling.limit(self.tokens, hold.growth()) / self.tokens.max(1.0);
        }
    }

    /// The largest window that the delivery rate supports.
    fn cap(&self, acked: &Acked, hold: Hold) -> f64 {
        let base = self.base.empty(&acked.rtt);
        let mut beyond = self.target(&acked.rtt).mul_f64(CAP_TARGETS);
        if hold.sees_room() && self.tokens >= LARGE {
            beyond = beyond.max(base / CAP_ROOM);
        }
        let room = self.delivered_in(base + beyond).map(|room| room * self.sent_per_delivered());
        // What an application sends is only a lower bound of what the path delivers.
        let unused = if acked.is_app_limited { INITIAL_WINDOW } else { 0.0 };
        room.map_or(WINDOW_MAX, |room| (room + CAP_PACKETS).max(unused).min(WINDOW_MAX))
    }

    /// Tokens per packet that arrives. On a path that loses in bursts hardly any experiment is long enough to prove its loss innocent. The
    /// window is then not increased by it, and would hold less than the path however often it grew to what was delivered.
    fn sent_per_delivered(&self) -> f64 {
        let is_known = self.loses_in_bursts() && !self.is_lossy;
        let arrives = 1.0 - self.origin.seen();
        if is_known { (1.0 - self.origin.innocent(self.tokens)) / arrives } else { 1.0 }
    }
}
