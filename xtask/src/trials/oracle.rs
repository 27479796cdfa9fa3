//! A sender that knows the properties of its path.

use ctcp_proto::congestion::{Acked, Controller, Lost, Phase, Sent, TimedOut};

use ctcp_repro::random_path::RandomPath;

/// The share of the link that it uses. With all of it, the queue would grow at random.
const SHARE: f64 = 0.99;

/// Paces at the rate of the link, divided by the share of packets that arrive.
#[derive(Debug)]
pub(super) struct Oracle {
    /// Packets per second that the link carries, and the corresponding packets in flight.
    packets_per_second: f64,
    window: f64,
    datagram: u64,
    /// Bytes that the link charges for a packet besides its payload.
    overhead: u64,
}

impl Oracle {
    pub(super) fn new(path: &RandomPath, datagram: u64) -> Self {
        let mut oracle =
            Self { packets_per_second: 0.0, window: 0.0, datagram, overhead: ctcp_netem::IPV4_UDP_OVERHEAD };
        oracle.tell(path);
        oracle
    }

    fn tell(&mut self, path: &RandomPath) {
        let bytes_per_second = path.rate.as_bits_per_second() as f64 / 8.0 / (1.0 - path.loss);
        self.packets_per_second = SHARE * bytes_per_second;
        // Large enough for jitter and delayed acknowledgements, so that the pacer is the limit.
        let longest = path.rtt.as_secs_f64() + 2.0 * path.jitter.as_secs_f64() + 0.02;
        self.window = 2.0 * longest * self.packets_per_second / 1_228.0 + 16.0;
    }
}

impl Controller for Oracle {
    fn on_sent(&mut self, _: &Sent) {}
    fn on_ack(&mut self, _: &Acked) {}
    fn on_loss(&mut self, _: &Lost) {}
    fn on_timeout(&mut self, _: &TimedOut) {}
    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.packets_per_second * self.datagram as f64 / (self.datagram + self.overhead) as f64)
    }
    fn phase(&self) -> Phase {
        Phase::Avoidance
    }
    fn name(&self) -> &'static str {
        "oracle"
    }
}
