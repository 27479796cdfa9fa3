//! Closing a connection (PROTOCOL.md section 7).

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::Instant;

use super::{Connection, ConnectionStats, Established, State};
use crate::error::{CloseReason, ConnectionError};
use crate::event::{EndpointEvent, Event};
use crate::id::{PathId, Role};
use crate::message::Incoming;
use crate::network::{NetworkPath, Transmit};
use crate::stream::Streams;
use crate::wire::Frame;

/// Longest reason that is sent, in bytes, so that a CLOSE fits any datagram.
const REASON_MAX: usize = 256;

/// A connection that is closed for the application but still answers, or ignores, late packets.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The sealed CLOSE for each path, since the peer may be reachable on one only. Empty if the peer closed, after which nothing may be
    /// sent.
    closes: Vec<PathClose>,
    remote: SocketAddr,
    /// How many of them are to be sent now.
    due: usize,
    deadline: Instant,
    /// Packets received since. The CLOSE is repeated when this is a power of two, so that two closing sides do not answer each other for
    /// ever.
    arrived: u32,
}

/// A CLOSE for a path.
#[derive(Debug)]
struct PathClose {
    datagram: Vec<u8>,
    network: NetworkPath,
}

/// State kept after an established connection has closed. The application can still read data that arrived before the peer closed.
pub(super) struct Remains {
    /// Only for reading.
    pub(super) streams: Streams,
    /// Messages that were not read.
    pub(super) messages: Incoming,
    /// The final statistics.
    pub(super) stats: ConnectionStats,
}

impl Ending {
    /// Counts a datagram for this connection, authentic or not, and answers fewer and fewer of them (RFC 9000 section 10.2.1).
    pub(super) fn handle_datagram(&mut self) {
        self.arrived = self.arrived.saturating_add(1);
        if self.arrived.is_power_of_two() {
            self.due = self.closes.len();
        }
    }

    pub(super) fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.due = self.due.checked_sub(1)?;
        let PathClose { datagram, network } = &self.closes[self.due];
        buffer.extend_from_slice(datagram);
        let NetworkPath { local, remote } = *network;
        Some(Transmit { destination: remote, source: local, ecn: None, size: buffer.len() })
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }
}

impl Connection {
    /// Sends a CLOSE and waits for late packets.
    pub(super) fn begin_ending(&mut self, now: Instant, close: &CloseReason, error: ConnectionError) {
        if let State::Established(established) = &mut self.state {
            let closes = if established.is_gated() { Vec::new() } else { established.seal_closes(close) };
            let ending = established.ending(now, closes);
            self.leave(State::Ending(ending));
            self.events.push_back(Event::Closed(error));
        }
    }

    /// Handles a CLOSE: nothing is sent any more.
    pub(super) fn on_closed_by_peer(&mut self, now: Instant, close: CloseReason) {
        if let State::Established(established) = &mut self.state {
            let ending = established.ending(now, Vec::new());
            self.leave(State::Ending(ending));
            self.events.push_back(Event::Closed(ConnectionError::ClosedByPeer(close)));
        }
    }

    /// Ends the connection at once without a CLOSE, because the peer is not there.
    pub(super) fn end(&mut self, error: ConnectionError) {
        if matches!(self.state, State::Ending(_) | State::Over) {
            return;
        }
        self.leave(State::Over);
        self.events.push_back(Event::Closed(error));
        self.endpoint_events.push_back(EndpointEvent::Retired);
    }

    pub(super) fn retire(&mut self) {
        self.leave(State::Over);
        self.endpoint_events.push_back(EndpointEvent::Retired);
    }

    /// Enters a closed state, after forwarding pending events and keeping the streams and statistics.
    fn leave(&mut self, next: State) {
        self.drain_established();
        let stats = self.stats();
        if let State::Established(established) = core::mem::replace(&mut self.state, next) {
            let Established { mut streams, messages, .. } = *established;
            streams.shrink();
            self.remains = Some(Box::new(Remains { streams, messages: messages.incoming, stats }));
        }
    }
}

impl Established {
    fn ending(&self, now: Instant, closes: Vec<PathClose>) -> Ending {
        let drain: Duration = self.paths.main().probe_interval().saturating_mul(3);
        let remote = self.paths.main().network.remote;
        Ending { due: closes.len(), closes, remote, deadline: now + drain, arrived: 0 }
    }

    /// Seals a CLOSE for each path, that of the main one last. It is left out where it cannot be sealed.
    fn seal_closes(&mut self, close: &CloseReason) -> Vec<PathClose> {
        let cut =
            (0..=REASON_MAX.min(close.reason.len())).rev().find(|&end| close.reason.is_char_boundary(end));
        let reason = &close.reason[..cut.unwrap_or(0)];
        let main = self.paths.main().id;
        let others = self.paths.iter().filter(|path| path.is_validated() && path.id != main);
        let ids: Vec<PathId> = others.map(|path| path.id).chain([main]).collect();
        let is_alone = ids.len() == 1;
        let mut closes = Vec::with_capacity(ids.len());
        for id in ids {
            let mut builder = self.open_builder(id, Vec::new(), crate::wire::DATAGRAM_SIZE_MIN);
            builder.write(&Frame::Close { by_application: close.by_application, code: close.code, reason });
            let Ok(datagram) = self.seal(builder) else { continue };
            let network = self.paths[id].network;
            let of_system = NetworkPath { local: None, ..network };
            // A client's last address may be gone. Its path may also have a socket of its own, if it is not the first one.
            if self.role == Role::Client && is_alone {
                closes.push(PathClose { datagram: datagram.clone(), network: of_system });
            }
            if self.role == Role::Server || !is_alone || id != PathId(0) {
                closes.push(PathClose { datagram, network });
            }
        }
        closes
    }
}
