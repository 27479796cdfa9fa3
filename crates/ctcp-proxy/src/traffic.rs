//! Statistics of coded connections, summed over the connections of one peer.
//!
//! A connection counts from zero. Here the counts continue when it ends and another one takes its place:
//!
//! ```text
//!   total = counts of closed connections + counts of open ones
//! ```

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp::ConnectionStats;

/// A counter of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// Its name, without the ending `_total` that formats add.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    of: fn(&ConnectionStats) -> u64,
}

const fn total(name: &'static str, help: &'static str, of: fn(&ConnectionStats) -> u64) -> Total {
    Total { name, help, of }
}

/// The counters that are summed.
pub const TOTALS: [Total; 22] = [
    total("ctcp_datagrams_sent", "UDP datagrams sent", |stats| stats.datagrams_sent),
    total("ctcp_datagrams_received", "UDP datagrams received and authenticated", |stats| {
        stats.datagrams_received
    }),
    total(
        "ctcp_datagrams_dropped",
        "UDP datagrams received that failed authentication or were duplicates",
        |stats| stats.datagrams_dropped,
    ),
    total("ctcp_bytes_sent", "Bytes of UDP payload sent", |stats| stats.bytes_sent),
    total("ctcp_bytes_received", "Bytes of UDP payload received and authenticated", |stats| {
        stats.bytes_received
    }),
    total("ctcp_packets_lost", "Packets sent that were lost", |stats| stats.packets_lost),
    total("ctcp_congestion_marks", "Packets sent that the network marked (ECN)", |stats| {
        stats.congestion_marks
    }),
    total("ctcp_spurious_losses", "Packets that arrived after they were declared lost", |stats| {
        stats.spurious_losses
    }),
    total("ctcp_timeouts", "Probe time-outs", |stats| stats.timeouts),
    total("ctcp_symbols_sent", "New source symbols sent", |stats| stats.symbols_sent),
    total("ctcp_repairs_sent", "Combinations and repeated symbols sent to repair losses", |stats| {
        stats.repairs_sent
    }),
    total("ctcp_symbols_decoded", "Source symbols decoded", |stats| stats.symbols_decoded),
    total("ctcp_repairs_received", "Combinations of several symbols received", |stats| {
        stats.repairs_received
    }),
    total("ctcp_redundant_received", "Symbols and combinations received without new information", |stats| {
        stats.redundant_received
    }),
    total("ctcp_window_stalls", "How often data waited only because the coding window was full", |stats| {
        stats.window_stalls
    }),
    total("ctcp_messages_sent", "Messages sent, at least in part (UDP of programs)", |stats| {
        stats.messages.sent
    }),
    total("ctcp_messages_expired", "Messages that were dropped before all of them was sent", |stats| {
        stats.messages.expired
    }),
    total(
        "ctcp_messages_unconfirmed",
        "Messages sent whose arrival was not confirmed by their deadlines",
        |stats| stats.messages.unconfirmed,
    ),
    total("ctcp_messages_received", "Messages received", |stats| stats.messages.received),
    total("ctcp_messages_repaired", "Messages received only thanks to repairs", |stats| {
        stats.messages.repaired
    }),
    total("ctcp_messages_unread", "Messages received and dropped because nobody read them", |stats| {
        stats.messages.unread
    }),
    total("ctcp_migrations", "Changes of the peer's address", |stats| stats.migrations),
];

/// A value for each of [`TOTALS`].
pub type Totals = [u64; TOTALS.len()];

/// The connections of one peer.
#[derive(Default)]
pub struct Traffic(Mutex<State>);

type Stats = Box<dyn Fn() -> ConnectionStats + Send>;

#[derive(Default)]
struct State {
    /// The counts of closed connections.
    past: Totals,
    /// Connections so far; also the key of the next one.
    connections: u64,
    up: BTreeMap<u64, Stats>,
}

/// Statistics of a peer's connections.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TrafficStats {
    /// A value for each of [`TOTALS`], over all connections so far.
    pub totals: Totals,
    /// Connections so far.
    pub connections_total: u64,
    /// Open connections.
    pub connections: u64,
    /// The current loss average of sent packets, of the connection with the largest one.
    pub loss: f64,
    /// The current smoothed round-trip time, of the connection with the longest one.
    pub round_trip: Duration,
    /// The minimum round-trip time of the last ten seconds, of the connection with the longest one. If there were
    /// hardly any samples in that time the smoothed value can be smaller, and is used instead.
    pub round_trip_minimum: Duration,
    /// The sum of the current congestion windows, in packets.
    pub window: f64,
    /// The sum of the packets in flight.
    pub in_flight: u64,
    /// The largest datagram in bytes that the path carries; the smallest value of the connections.
    pub datagram_size: u64,
    /// The sum of the symbols sent that the peer may still lack.
    pub symbols_outstanding: u64,
}

/// An open connection, until this is dropped. Its counts stay in the totals.
pub struct Up {
    traffic: Arc<Traffic>,
    key: u64,
}

impl fmt::Debug for Traffic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter.debug_struct("Traffic").field("connections", &state.connections).finish_non_exhaustive()
    }
}

impl Traffic {
    /// Adds a connection; `stats` reads its statistics, also after it is closed.
    pub fn enter(self: &Arc<Self>, stats: impl Fn() -> ConnectionStats + Send + 'static) -> Up {
        let mut state = self.lock();
        let key = state.connections;
        state.connections += 1;
        state.up.insert(key, Box::new(stats));
        Up { traffic: self.clone(), key }
    }

    /// The current statistics.
    #[must_use]
    pub fn stats(&self) -> TrafficStats {
        let state = self.lock();
        let up = state.up.len() as u64;
        let mut sum = TrafficStats {
            totals: state.past,
            connections_total: state.connections,
            connections: up,
            ..TrafficStats::default()
        };
        for stats in state.up.values().map(|read| read()) {
            add(&mut sum.totals, &counts(&stats));
            // Before the first loss the average is only an initial guess.
            sum.loss = sum.loss.max(if stats.packets_lost == 0 { 0.0 } else { stats.loss });
            sum.round_trip = sum.round_trip.max(stats.rtt.smoothed);
            sum.round_trip_minimum = sum.round_trip_minimum.max(stats.rtt.minimum.min(stats.rtt.smoothed));
            sum.window += stats.window;
            sum.in_flight += stats.in_flight;
            sum.datagram_size = match sum.datagram_size {
                0 => stats.datagram_size,
                least => least.min(stats.datagram_size),
            };
            sum.symbols_outstanding += stats.symbols_outstanding;
        }
        sum
    }

    /// Returns true if no connection is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().up.is_empty()
    }

    /// Adds the counts of another one, which must be idle.
    pub(crate) fn absorb(&self, other: &Self) {
        let (past, connections) = {
            let other = other.lock();
            (other.past, other.connections)
        };
        let mut state = self.lock();
        add(&mut state.past, &past);
        state.connections += connections;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let mut state = self.traffic.lock();
        let Some(read) = state.up.remove(&self.key) else { return };
        add(&mut state.past, &counts(&read()));
        drop(state);
        // Dropped without the lock: this may be the last handle of the connection, whose drop takes other locks.
        drop(read);
    }
}

fn counts(stats: &ConnectionStats) -> Totals {
    TOTALS.map(|total| (total.of)(stats))
}

fn add(sum: &mut Totals, other: &Totals) {
    for (sum, value) in sum.iter_mut().zip(other) {
        *sum = sum.saturating_add(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: u64, loss: f64) -> impl Fn() -> ConnectionStats {
        move || {
            let mut stats = ConnectionStats::default();
            (stats.bytes_sent, stats.loss, stats.window) = (bytes, loss, 10.0);
            stats.packets_lost = 1;
            stats
        }
    }

    fn bytes_sent(traffic: &Traffic) -> u64 {
        let index = TOTALS.iter().position(|total| total.name == "ctcp_bytes_sent").unwrap();
        traffic.stats().totals[index]
    }

    /// A connection that was idle for the whole window has no minimum, and the transport's guess is far above the
    /// earlier samples.
    #[test]
    fn the_least_round_trip_time_is_never_above_the_smoothed_one() {
        let traffic = Arc::new(Traffic::default());
        let idle = || {
            let mut stats = ConnectionStats::default();
            (stats.rtt.smoothed, stats.rtt.minimum) = (Duration::from_millis(20), Duration::from_millis(333));
            stats
        };
        let busy = || {
            let mut stats = ConnectionStats::default();
            (stats.rtt.smoothed, stats.rtt.minimum) = (Duration::from_millis(40), Duration::from_millis(30));
            stats
        };
        let first = traffic.enter(idle);
        let stats = traffic.stats();
        assert_eq!(
            (stats.round_trip, stats.round_trip_minimum),
            (Duration::from_millis(20), Duration::from_millis(20))
        );
        let _second = traffic.enter(busy);
        let stats = traffic.stats();
        assert_eq!(
            (stats.round_trip, stats.round_trip_minimum),
            (Duration::from_millis(40), Duration::from_millis(30))
        );
        drop(first);
    }

    #[test]
    fn totals_include_closed_connections_and_other_values_only_open_ones() {
        let traffic = Arc::new(Traffic::default());
        let first = traffic.enter(sent(100, 0.1));
        let second = traffic.enter(sent(10, 0.3));
        assert_eq!((bytes_sent(&traffic), traffic.stats().loss, traffic.stats().window), (110, 0.3, 20.0));
        drop(second);
        assert_eq!((bytes_sent(&traffic), traffic.stats().loss, traffic.stats().window), (110, 0.1, 10.0));
        drop(first);
        let _third = traffic.enter(sent(5, 0.0));
        assert_eq!(bytes_sent(&traffic), 115);
        assert_eq!((traffic.stats().connections, traffic.stats().connections_total), (1, 3));
    }
}
