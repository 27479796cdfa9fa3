//! No control: for paths through a relay, of which each hop controls congestion itself and takes a bounded number of datagrams.

use super::{Acked, Controller, Lost, Phase, Sent, TimedOut};

/// The window in packets. What a hop takes limits what is in flight much earlier.
const WINDOW: f64 = 16_384.0;

/// A window that never fills up.
#[derive(Debug)]
pub(crate) struct Unlimited;

impl Unlimited {
    pub(crate) const NAME: &'static str = "hop-by-hop";
}

impl Controller for Unlimited {
    fn on_sent(&mut self, _sent: &Sent) {}

    fn on_ack(&mut self, _acked: &Acked) {}

    fn on_loss(&mut self, _lost: &Lost) {}

    fn on_timeout(&mut self, _timed_out: &TimedOut) {}

    fn on_datagram_size(&mut self, _bytes: u64) {}

    fn window(&self) -> f64 {
        WINDOW
    }

    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    fn phase(&self) -> Phase {
        Phase::Avoidance
    }

    fn name(&self) -> &'static str {
        Self::NAME
    }
}
