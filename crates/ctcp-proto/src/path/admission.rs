//! Admission of the next packet: congestion control and the pacer.

use core::time::Duration;

use ctcp_base::Instant;

use crate::PacketNumber;
use crate::congestion::{self, Algorithm, Controller, ControllerFactory, Phase, Unlimited};
use crate::recovery::pacer::Pacer;
use crate::recovery::rtt::RttEstimator;

/// Pacing rate, in windows per round trip, where the controller has no rate of its own. Slow start doubles the window in a round trip.
const WINDOWS_A_ROUND_TRIP: f64 = 2.0;

/// How long a path counts as too small for what has filled its window.
const FILLED_MEMORY: Duration = Duration::from_secs(10);

/// Congestion control and pacing of one path.
pub(crate) struct Admission {
    pub(crate) controller: Box<dyn Controller>,
    pacer: Pacer,
    /// Maximum number of packets in flight, whatever congestion control allows.
    window_max: f64,
    /// When latency-sensitive data last filled the window by itself.
    filled_alone: Option<Instant>,
    /// Disables pacing for a controller that has no rate of its own.
    is_unpaced: bool,
    /// The handshake took so long that it gives no sample of the round trip.
    is_slow: bool,
    /// Whether congestion control has not begun anew, and shares no bottleneck with other paths. After a move, what is in flight has to leave
    /// the old route first.
    is_first_route: bool,
    /// The last packet after which there was no room for the application's data.
    filled_by: Option<PacketNumber>,
    factory: Option<ControllerFactory>,
    algorithm: Algorithm,
}

impl Admission {
    pub(super) fn new(now: Instant, algorithm: Algorithm, datagram_size: u64) -> Self {
        Self {
            controller: algorithm.controller(datagram_size),
            pacer: pacer(now, algorithm, datagram_size),
            window_max: f64::INFINITY,
            filled_alone: None,
            is_unpaced: false,
            is_slow: false,
            is_first_route: true,
            filled_by: None,
            factory: None,
            algorithm,
        }
    }

    pub(super) fn with_window_max(self, packets: u32) -> Self {
        Self { window_max: f64::from(packets), ..self }
    }

    pub(super) fn with_unpaced(self, is_unpaced: bool) -> Self {
        Self { is_unpaced, ..self }
    }

    pub(super) fn with_controller(self, factory: ControllerFactory, datagram_size: u64) -> Self {
        Self { controller: factory.controller(datagram_size), factory: Some(factory), ..self }
    }

    /// Whether something else controls congestion.
    pub(super) fn is_unlimited(&self) -> bool {
        self.controller.name() == Unlimited::NAME
    }

    /// The packets take a new network path, of which nothing is known.
    pub(super) fn on_new_route(&mut self, now: Instant, datagram_size: u64) {
        self.controller = match &self.factory {
            Some(factory) => factory.controller(datagram_size),
            None => self.algorithm.controller(datagram_size),
        };
        self.pacer = pacer(now, self.algorithm, datagram_size);
        self.filled_alone = None;
        self.is_slow = false;
        self.is_first_route = false;
    }

    /// The share of this path among those of the connection that carry data; `None` if it is the only one.
    pub(crate) fn set_share(&mut self, share: Option<f64>) {
        self.controller.set_share(share);
        self.is_first_route &= share.is_none();
    }

    /// The handshake took so long that it gives no sample. The first window is then paced over the initial estimate.
    pub(crate) fn on_slow_handshake(&mut self) {
        self.is_slow = true;
    }

    /// A packet that counts against the window was sent.
    pub(super) fn on_sent(&mut self, now: Instant, size: u64) {
        self.pacer.on_sent(now, size);
    }

    /// There is no room for `waiting` bytes after this packet. If they would fill the whole window again, it is what limits the application.
    pub(super) fn on_no_room(&mut self, number: PacketNumber, waiting: u64, datagram_size: u64) {
        let is_beginning = self.is_first_route && self.controller.phase() == Phase::SlowStart;
        if is_beginning && waiting as f64 >= self.window() * datagram_size as f64 {
            self.filled_by = Some(number);
        }
    }

    /// Whether the window has limited the application since this packet was sent, even if it had nothing to send before: a server waits for the
    /// first request (RFC 9002 section 7.8).
    pub(super) fn has_limited(&self, number: PacketNumber) -> bool {
        self.is_first_route && self.filled_by.is_some_and(|filled| number <= filled)
    }

    /// Updates the pacing rate after a change of the window or the round trip.
    pub(super) fn update_rate(&mut self, now: Instant, rtt: &RttEstimator, datagram_size: u64) {
        self.pacer.set_rate(now, self.pacing_rate(now, rtt, datagram_size));
    }

    /// Paces the first window over the round trip measured in the handshake, or the initial estimate if that took longer. After a long pause
    /// (`begins`) the controller chooses its rate anew.
    pub(super) fn spread_first_window(
        &mut self,
        now: Instant,
        begins: bool,
        rtt: &RttEstimator,
        datagram_size: u64,
    ) {
        let is_first = !self.pacer.has_rate() || begins && rtt.is_outdated(now);
        if is_first && (rtt.has_sample() || self.is_slow) {
            self.update_rate(now, rtt, datagram_size);
        }
    }

    /// The controller's rate. If it has none, one that spreads its window over half a round trip: a classical TCP relies on ACK clocking,
    /// which does not work for repairs.
    fn pacing_rate(&self, now: Instant, rtt: &RttEstimator, datagram_size: u64) -> Option<f64> {
        let rate = self.controller.pacing_rate();
        if rate.is_some() || self.is_unpaced || !rtt.has_sample() {
            return rate;
        }
        let window = self.window();
        Some(congestion::pacing_rate(WINDOWS_A_ROUND_TRIP, window, datagram_size, rtt.view(now).smoothed))
    }

    /// The datagram size of the path changed.
    pub(super) fn on_datagram_size(&mut self, bytes: u64) {
        self.pacer.set_datagram_size(bytes);
        self.controller.on_datagram_size(bytes);
    }

    /// The packets that may be in flight.
    pub(super) fn window(&self) -> f64 {
        self.controller.window().min(self.window_max)
    }

    /// True if there is room for another packet when `in_flight` are in flight, `waiting` of which have arrived and wait to be acknowledged:
    /// not more than a quarter of the window, whatever the peer does.
    pub(super) fn has_window(&self, in_flight: u64, waiting: u64) -> bool {
        let window = self.controller.window();
        (in_flight as f64) < (window + (waiting as f64).min(window / 4.0)).min(self.window_max)
    }

    /// Latency-sensitive data was sent, and nothing else is in flight. If it fills a window that has stopped growing, the path is too small
    /// for it.
    pub(crate) fn on_sent_alone(&mut self, now: Instant, in_flight: u64) {
        if !self.has_window(in_flight, 0) && self.controller.phase() != Phase::SlowStart {
            self.filled_alone = Some(now);
        }
    }

    /// Whether latency-sensitive data has filled the window by itself lately.
    pub(crate) fn is_too_small(&self, now: Instant) -> bool {
        self.filled_alone.is_some_and(|filled| now - filled < FILLED_MEMORY)
    }

    /// When the pacer allows the next full datagram. `None` means now.
    pub(super) fn next_paced(&self, now: Instant, datagram_size: u64) -> Option<Instant> {
        self.pacer.next_time(now, datagram_size).filter(|&time| time > now)
    }
}

fn pacer(now: Instant, algorithm: Algorithm, datagram_size: u64) -> Pacer {
    let pacer = Pacer::new(now, datagram_size);
    // Only where the driver has a timer that is precise enough.
    if algorithm.is_punctual() && cfg!(target_os = "linux") { pacer.punctual() } else { pacer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Sent;
    use crate::recovery::rtt::INITIAL_RTT;

    #[test]
    fn the_first_window_is_paced_though_the_handshake_took_too_long_for_a_sample() {
        let (now, rtt, size) = (Instant::ZERO, RttEstimator::new(INITIAL_RTT), 1200);
        let mut admission = Admission::new(now, Algorithm::DEFAULT, size);
        admission.on_slow_handshake();
        let mut sent = 0;
        while admission.next_paced(now, size).is_none() && sent < 32 {
            sent += 1;
            let number = PacketNumber(sent);
            admission.on_sent(now, size);
            admission.controller.on_sent(&Sent { now, number, size, in_flight: sent, rtt: rtt.view(now) });
            admission.spread_first_window(now, false, &rtt, size);
        }
        assert!(sent <= 4, "{sent} packets at once");
        let next = admission.next_paced(now, size).expect("a time");
        assert!(next - now < INITIAL_RTT / 16, "{:?}", next - now);
    }

    #[test]
    fn a_full_window_limits_the_application_if_it_has_another_window_of_data() {
        let (number, size) = (PacketNumber(31), 1200);
        let mut admission = Admission::new(Instant::ZERO, Algorithm::DEFAULT, size);
        let window = admission.window() as u64;
        admission.on_no_room(number, window * size - 1, size);
        assert!(!admission.has_limited(number), "the next window would not be full");
        admission.on_no_room(number, window * size, size);
        assert!(admission.has_limited(PacketNumber(0)) && admission.has_limited(number));
        assert!(!admission.has_limited(number.next()), "it was sent later");
        admission.set_share(Some(0.5));
        assert!(!admission.has_limited(number), "there are several paths");
        let mut moved = Admission::new(Instant::ZERO, Algorithm::DEFAULT, size);
        moved.on_new_route(Instant::ZERO, size);
        moved.on_no_room(number, window * size, size);
        assert!(!moved.has_limited(number), "the path has moved");
    }

    #[test]
    fn packets_that_wait_for_an_acknowledgement_add_a_quarter_of_the_window_at_most() {
        let admission = Admission::new(Instant::ZERO, Algorithm::DEFAULT, 1200);
        let window = admission.window() as u64;
        assert!(admission.has_window(window + 2, 3) && !admission.has_window(window + 3, 3));
        let most = window + window / 4;
        assert!(admission.has_window(most - 1, 1_000) && !admission.has_window(most, 1_000));
        let limited = admission.with_window_max(20);
        assert!(limited.has_window(19, 1_000) && !limited.has_window(20, 1_000), "a limit is a limit");
    }
}
