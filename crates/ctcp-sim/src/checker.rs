//! Checks that must hold after every event on any network: the limits that both sides agreed on, time that never goes
//! back, and deadlines that lead to progress.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use ctcp_base::Instant;
use ctcp_proto::{Role, TimerKind, Transmit, TransportConfig};

use crate::mischief::Mischief;
use crate::node::host::Peer;

/// A host that is woken this often at the same time is spinning. An application with many streams and a connection with
/// a dozen deadlines stay far below it.
const WAKES_AT_ONCE_MAX: u32 = 100;

/// Bytes that a server may send to an unvalidated address for each byte received from it (RFC 9000 section 8).
const AMPLIFICATION_MAX: u64 = 3;

/// Watches a simulation and records violations.
#[derive(Clone, Debug)]
pub struct Checker {
    transport: TransportConfig,
    now: Instant,
    /// When each host was last woken, by its number, and how often at that time.
    wakes_at_once: Vec<(Instant, u32)>,
    /// Why hosts were woken at the present time.
    reasons: Vec<TimerKind>,
    /// Whether the statistics of connections are compared with their limits.
    checks_limits: bool,
    /// Bytes exchanged by each host with each address that belongs to no host.
    strangers: BTreeMap<(String, SocketAddr), Exchanged>,
    violations: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Exchanged {
    received: u64,
    sent: u64,
}

impl Checker {
    /// Creates a checker of connections with this configuration.
    #[must_use]
    pub fn new(transport: TransportConfig) -> Self {
        Self {
            transport,
            now: Instant::ZERO,
            wakes_at_once: Vec::new(),
            reasons: Vec::new(),
            checks_limits: true,
            strangers: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// Sets whether the statistics of every connection are compared with their limits after each event. In large runs
    /// this takes a considerable share of the time.
    pub(crate) fn set_checks_limits(&mut self, checks_limits: bool) {
        self.checks_limits = checks_limits;
    }

    /// Records that an event happens at `now`.
    pub(crate) fn on_time(&mut self, now: Instant) {
        if now < self.now {
            self.complain(format!("time went back from {} to {now}", self.now));
        }
        if now > self.now {
            self.reasons.clear();
        }
        self.now = now;
    }

    /// Records that a host was woken for these reasons.
    pub(crate) fn on_wake(&mut self, number: usize, host: &str, kinds: &[TimerKind]) {
        self.reasons.extend_from_slice(kinds);
        if number >= self.wakes_at_once.len() {
            self.wakes_at_once.resize(number + 1, (Instant::ZERO, 0));
        }
        let (time, wakes) = &mut self.wakes_at_once[number];
        *wakes = if *time == self.now { *wakes + 1 } else { 1 };
        *time = self.now;
        if *wakes == WAKES_AT_ONCE_MAX {
            let last = self.reasons.iter().rev().take(8).collect::<Vec<_>>();
            self.complain(format!(
                "{host} was woken {WAKES_AT_ONCE_MAX} times at {}, last for {last:?}",
                self.now
            ));
        }
    }

    /// Records that a host received a datagram.
    pub(crate) fn on_received(&mut self, host: &str, source: SocketAddr, size: usize) {
        if Mischief::invented(source) {
            self.strangers.entry((host.to_owned(), source)).or_default().received += size as u64;
        }
    }

    /// Records that a host sends a datagram, with or without a connection.
    pub(crate) fn on_sent(&mut self, host: &str, destination: SocketAddr, size: usize) {
        if !Mischief::invented(destination) {
            return;
        }
        let exchanged = self.strangers.entry((host.to_owned(), destination)).or_default();
        exchanged.sent += size as u64;
        let Exchanged { sent, received } = *exchanged;
        if sent > AMPLIFICATION_MAX * received {
            self.complain(format!("{host} sends {sent} bytes to an unknown address that sent {received}"));
        }
    }

    /// Checks that the next deadline of a host that was just woken is in the future. Otherwise it would be woken again
    /// at once.
    pub(crate) fn check_deadline(&mut self, host: &str, next: Option<(Instant, TimerKind)>) {
        if let Some((time, kind)) = next.filter(|(time, _)| *time <= self.now) {
            self.complain(format!(
                "{host} was woken at {} but still has the deadline {kind:?} at {time}",
                self.now
            ));
        }
    }

    /// Checks a datagram that a connection of a host sends.
    pub(crate) fn on_transmit(&mut self, host: &str, peer: &Peer, transmit: &Transmit, datagram: &[u8]) {
        let most = usize::from(self.transport.datagram_size_max);
        if transmit.size != datagram.len() || datagram.is_empty() || datagram.len() > most {
            self.complain(format!("{host} sends {} bytes and says {}", datagram.len(), transmit.size));
        }
        let is_unproved = peer.connection.role() == Role::Server && peer.application.name().is_none();
        if is_unproved && peer.sent > AMPLIFICATION_MAX * peer.received {
            let Peer { sent, received, .. } = peer;
            self.complain(format!(
                "{host} sends {sent} bytes to an unvalidated address that sent {received}"
            ));
        }
    }

    /// Checks after an event that the statistics of a connection are within their limits.
    pub(crate) fn check_limits(&mut self, host: &str, peer: &Peer, now: Instant) {
        if !self.checks_limits || !peer.connection.is_connected() {
            return;
        }
        let stats = peer.connection.stats();
        // That of the streams, and two other contexts.
        let window = u64::from(self.transport.symbol_window) + 2 * u64::from(self.transport.coding_window);
        let complaint = if stats.symbols_outstanding > window {
            format!("{} symbols are outstanding in a window of {window}", stats.symbols_outstanding)
        } else if !(0.0..=1.0).contains(&stats.loss) {
            format!("the loss average is {}", stats.loss)
        } else if !stats.window.is_finite() || stats.window < 1.0 {
            format!("the congestion window is {}", stats.window)
        } else if !(1200..=u64::from(self.transport.datagram_size_max)).contains(&stats.datagram_size) {
            format!("the datagram size is {}", stats.datagram_size)
        } else {
            return;
        };
        self.complain(format!("{host} at {now}: {complaint}"));
    }

    /// Returns the violations found so far.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    fn complain(&mut self, what: String) {
        self.violations.push(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinning_host_is_a_violation() {
        let mut checker = Checker::new(TransportConfig::default());
        for step in 0..1_000 {
            checker.on_time(Instant::from_nanos(step));
            checker.on_wake(0, "client", &[TimerKind::Pacing]);
        }
        assert!(checker.violations().is_empty());
        // A thousand hosts that are woken once each are not spinning.
        for number in 0..1_000 {
            checker.on_time(Instant::from_nanos(1_000));
            checker.on_wake(number, "client", &[TimerKind::Pacing]);
        }
        assert!(checker.violations().is_empty());
        for _ in 0..1_000 {
            checker.on_time(Instant::from_nanos(1_000));
            checker.on_wake(7, "client", &[TimerKind::Pacing]);
        }
        assert_eq!(checker.violations().len(), 1);
    }

    #[test]
    fn time_that_goes_back_is_a_violation() {
        let mut checker = Checker::new(TransportConfig::default());
        checker.on_time(Instant::from_nanos(2));
        checker.on_time(Instant::from_nanos(1));
        assert_eq!(checker.violations().len(), 1);
    }
}
