//! Who may stay: the list of clients while the endpoint runs, and how many connections each of them has.
//!
//! The endpoint cannot close a connection itself, since the runtime owns it. It says which ones must go:
//!
//! ```text
//!   set_clients: key no longer listed ----+
//!                                         +--> poll_close --> Connection::close_for
//!   Confirmed: one too many of its client-+
//! ```

use super::{ConnectionHandle, Endpoint};
use crate::config::ClientPolicy;
use crate::error::{CloseReason, TransportErrorCode};

/// What clients are told whose key was taken off the list.
const NO_LONGER_LISTED: &str = "this client's public key is no longer on the server's list";

/// What a client is told that has too many connections.
pub(super) const TOO_MANY_OF_CLIENT: &str = "this client has as many connections as it may have";

impl Endpoint {
    /// Replaces the list of clients. New handshakes are judged by it from now on, and connections of clients that are not
    /// on it must be closed: [`Self::poll_close`] names them. Connections that we opened are not affected.
    ///
    /// An endpoint that was made to connect only goes on accepting nobody.
    pub fn set_clients(&mut self, clients: ClientPolicy) {
        if self.config.accept.is_none() {
            return;
        }
        let confirmed = self.clients.owners();
        let half_open = self.half_open_keys.iter();
        let unlisted = confirmed.chain(half_open).filter(|(_, key)| !clients.accepts(key));
        let reason = close(NO_LONGER_LISTED);
        self.closes.extend(unlisted.map(|(&handle, _)| (handle, reason.clone())));
        self.config.accept = Some(clients);
    }

    /// The next connection that the endpoint wants closed, and why: pass it to [`crate::Connection::close_for`]. To be
    /// drained after [`Self::set_clients`] and [`Self::handle_event`].
    pub fn poll_close(&mut self) -> Option<(ConnectionHandle, CloseReason)> {
        self.closes.pop_front()
    }

    /// A client proved its key. Handshakes that were half-open at the same time all passed the check of the first packet,
    /// so the number of connections is checked again here.
    pub(super) fn on_confirmed(&mut self, handle: ConnectionHandle) {
        let Some(key) = self.half_open_keys.remove(&handle) else { return };
        if self.clients.count(key) < self.config.connections_per_client {
            self.clients.insert(handle, key);
        } else {
            self.closes.push_back((handle, close(TOO_MANY_OF_CLIENT)));
        }
    }
}

fn close(reason: &str) -> CloseReason {
    CloseReason {
        by_application: false,
        code: TransportErrorCode::NoError.number(),
        reason: reason.to_owned(),
    }
}
