//! No control: for paths through a relay, of which each hop controls congestion itself and takes a bounded number of datagrams.

use super::{Acked, Controller, Lost, Phase, Sent, TimedOut};

/// The window before anything was measured, in packets.
const WINDOW_FIRST: f64 = 16.0;

/// A controller that measures only. Its window is what the path carries in a round trip, by which the paths of a connection are compared. What
/// may be sent is up to the hop.
#[derive(Debug)]
pub(crate) struct Unlimited {
    window: f64,
    datagram_size: u64,
}

impl Unlimited {
    pub(crate) const NAME: &'static str = "hop-by-hop";

    /// Given the size of a full datagram in bytes.
    pub(crate) fn new(datagram_size: u64) -> Self {
        Self { window: WINDOW_FIRST, datagram_size }
    }
}

impl Controller for Unlimited {
    fn on_sent(&mut self, _sent: &Sent) {}

    fn on_ack(&mut self, acked: &Acked) {
        if let Some(rate) = acked.delivery_rate {
            let bytes = rate * acked.rtt.smoothed.as_secs_f64();
            self.window = (bytes / self.datagram_size as f64).max(WINDOW_FIRST);
        }
    }

    fn on_loss(&mut self, _lost: &Lost) {}

    fn on_timeout(&mut self, _timed_out: &TimedOut) {}

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram_size = bytes;
    }

    fn window(&self) -> f64 {
        self.window
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
