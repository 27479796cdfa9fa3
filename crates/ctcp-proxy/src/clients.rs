//! The clients of a server: their names and the traffic of their connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::traffic::{Traffic, TrafficStats};

/// How many clients have counters of their own. Each client is a label of every metric, which costs a metrics server
/// memory. Beyond this number the counters of disconnected clients are added up under [`OTHERS`], so that unknown
/// clients cannot fill the memory.
pub const CLIENTS_MAX: usize = 1000;

/// The name of all clients without counters of their own.
pub const OTHERS: &str = "others";

/// How many characters of a key name a client without a name, as in [`ctcp::PublicKey::short`].
const SHORT_LENGTH: usize = 8;

/// The names and counters of a server's clients.
#[derive(Debug, Default)]
pub struct Clients(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Names by key.
    names: BTreeMap<String, String>,
    /// Counters by name.
    traffic: BTreeMap<String, Arc<Traffic>>,
}

impl Clients {
    /// Sets the names of clients by their public keys in base64. Replaces all names; open connections keep theirs.
    pub fn set_names(&self, names: impl IntoIterator<Item = (String, String)>) {
        self.lock().names = names.into_iter().collect();
    }

    /// Returns the name of the client with this key, or the beginning of the key if it has none.
    #[must_use]
    pub fn name(&self, key: &str) -> String {
        let name = self.lock().names.get(key).cloned();
        name.unwrap_or_else(|| key.chars().take(SHORT_LENGTH).collect())
    }

    /// The counters of each client that ever connected, by name.
    #[must_use]
    pub fn stats(&self) -> Vec<(String, TrafficStats)> {
        let traffic: Vec<_> =
            self.lock().traffic.iter().map(|(name, traffic)| (name.clone(), traffic.clone())).collect();
        // Without the lock, because reading a connection locks its endpoint.
        traffic.into_iter().map(|(name, traffic)| (name, traffic.stats())).collect()
    }

    /// The counters for connections of the client with this name.
    pub(crate) fn traffic(&self, name: &str) -> Arc<Traffic> {
        let mut state = self.lock();
        if let Some(traffic) = state.traffic.get(name) {
            return traffic.clone();
        }
        if state.traffic.len() >= CLIENTS_MAX {
            let is_idle = |name: &str, traffic: &Arc<Traffic>| {
                name != OTHERS && Arc::strong_count(traffic) == 1 && traffic.is_idle()
            };
            let idle = state.traffic.iter().find(|(name, traffic)| is_idle(name, traffic));
            let idle = idle.map(|(name, _)| name.clone());
            let others = state.traffic.entry(OTHERS.to_owned()).or_default().clone();
            let Some(idle) = idle else { return others };
            if let Some(traffic) = state.traffic.remove(&idle) {
                others.absorb(&traffic);
            }
        }
        state.traffic.entry(name.to_owned()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_name_or_the_beginning_of_its_key() {
        let clients = Clients::default();
        assert_eq!(clients.name("AbCdEfGhIjKl"), "AbCdEfGh");
        clients.set_names([("AbCdEfGhIjKl".to_owned(), "anna".to_owned())]);
        assert_eq!((clients.name("AbCdEfGhIjKl"), clients.name("x")), ("anna".to_owned(), "x".to_owned()));
    }

    #[test]
    fn the_number_of_client_names_is_bounded_and_open_connections_keep_theirs() {
        let clients = Clients::default();
        let stays = clients.traffic("stays").enter(ctcp::ConnectionStats::default);
        for number in 0..3 * CLIENTS_MAX {
            drop(clients.traffic(&number.to_string()).enter(ctcp::ConnectionStats::default));
        }
        let stats = clients.stats();
        assert!(stats.len() <= CLIENTS_MAX + 1, "{}", stats.len());
        let connections: u64 = stats.iter().map(|(_, stats)| stats.connections_total).sum();
        assert_eq!(connections, 3 * CLIENTS_MAX as u64 + 1);
        assert!(stats.iter().any(|(name, stats)| name == "stays" && stats.connections == 1));
        drop(stays);
    }
}
