//! Packets that are sent, and the first one after a pause of the flow.

use core::time::Duration;

use super::super::Sent;
use super::Steady;
use super::peak::Peak;

impl Steady {
    /// A packet is sent. Before the first acknowledgement, the handshake or the validation of the path may have measured the round trip.
    pub(super) fn note_sent(&mut self, sent: &Sent) {
        if self.rate.is_none() {
            self.rtt = Some(sent.rtt);
        }
        // Computes the window only until it is full for the first time.
        self.has_filled_window = self.has_filled_window || sent.in_flight as f64 >= self.in_flight().floor();
        if sent.in_flight <= 1 {
            self.begin_flight(sent);
        }
    }

    /// A packet is sent while nothing else is in flight, so this flow hardly has a queue. After a long pause the flight is paced over the round trip
    /// of the empty path, but at most at the rate that was delivered lately, times the gain.
    fn begin_flight(&mut self, sent: &Sent) {
        self.empty_at = Some(sent.now);
        self.peak = Peak::default();
        let at_rate = self.rate.map_or(0.0, |rate| self.in_flight() * self.datagram as f64 / rate.max(1.0));
        let paced_over = sent.rtt.smoothed.as_secs_f64().max(at_rate);
        if let Some(rtt) = &mut self.rtt {
            rtt.smoothed = Duration::from_secs_f64(paced_over.min(rtt.smoothed.as_secs_f64()));
        }
    }
}
