//! The list of clients, which can change while the endpoint runs, and the number of connections of each client.
//!
//! The endpoint cannot close a connection itself, since the runtime owns it. It names the connections to close:
//!
//! ```text
//!   set_clients: key no longer listed ----+
//!                                         +--> poll_close --> Connection::close_for
//!   Confirmed: one too many of its client-+
//! ```

use super::{ConnectionHandle, Endpoint};
use crate::config::ClientPolicy;
use crate::error::{CloseReason, TransportErrorCode};

/// The reason sent to clients whose key was removed from the list.
const NO_LONGER_LISTED: &str = "this client's public key is no longer on the server's list";

/// The reason sent to a client with too many connections.
pub(super) const TOO_MANY_OF_CLIENT: &str = "this client has as many connections as it may have";

impl Endpoint {
    /// Replaces the list of clients. It applies to new handshakes from now on. Connections of clients that are not on it must be closed:
    /// [`Self::poll_close`] returns them. Connections that this endpoint opened are not affected.
    ///
    /// An endpoint that only connects continues to accept nobody.
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

    /// Returns the next connection that must be closed, and the reason. Pass it to [`crate::Connection::close_for`]. Drain this after
    /// [`Self::set_clients`] and [`Self::handle_event`].
    pub fn poll_close(&mut self) -> Option<(ConnectionHandle, CloseReason)> {
        self.closes.pop_front()
    }

    /// A client proved its key. Several handshakes of one client may have been half-open at the same time and all passed the check of the
    /// first packet, so the number of connections is checked again here.
    pub(super) fn on_confirmed(&mut self, handle: ConnectionHandle) {
        let Some(key) = self.half_open_keys.remove(&handle) else { return };
        if self.clients.count(key) < self.config.connections_of(&key) {
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
