//! One peer: streams above, sealed packets below. This module only dispatches; each file under `connection/`
//! is one direction or one concern, and all arithmetic lives in the policies they ask.
//!
//! ```text
//!   write/read/open ...                     poll_event
//!        |                                      ^
//!     Streams <---- symbols ---- CodedReceiver  |      receive.rs, acknowledged.rs
//!        |                            ^         |
//!     CodedSender                   frames      |
//!        |                            |         |
//!     DatagramBuilder             PacketProtection
//!        |  (transmit.rs)             ^
//!   poll_transmit              handle_datagram
//! ```
//!
//! # The contract of the loop
//!
//! After any input (`handle_*`, a stream call) drain [`Connection::poll_transmit`], [`Connection::poll_event`] and
//! [`Connection::poll_endpoint_event`] until `None`, then ask [`Connection::poll_timeout`] once and call
//! [`Connection::handle_timeout`] when that time has come. Any order of calls is legal and spurious calls change
//! nothing: not draining costs latency, never correctness. `now` must not go back; a smaller one is taken as the
//! latest seen.

mod acknowledged;
mod close;
mod contents;
mod handshaking;
mod migration;
mod negotiation;
mod receive;
mod stats;
mod timers;
mod transmit;

use core::net::SocketAddr;
use std::collections::VecDeque;

use ctcp_base::Instant;

use crate::code::{CodedReceiver, CodedSender};
use crate::config::TransportConfig;
use crate::crypto::{PacketProtection, PublicKey};
use crate::network::{Ecn, NetworkPath, Transmit};
use crate::error::{CloseReason, ConnectionError, TransportError};
use crate::event::{EndpointEvent, Event};
use crate::id::{ConnectionId, Role, StreamId};
use crate::path::Path;
use crate::profile::Profile;
use crate::stream::{OpenError, ReadError, ReadOutcome, StreamEvent, Streams, WriteError};

pub(crate) use close::Ending;
pub(crate) use handshaking::ClientHandshake;
pub(crate) use negotiation::{Negotiated, client_parameters, negotiate, server_parameters};
pub use stats::{ConnectionStats, RttStats};
pub use timers::TimerKind;

/// A connection to one peer.
///
/// ```text
///                  RESPONSE                    close(), CLOSE sent
///   Handshaking ------------> Established ---------------------------> Ending --> Over
///        |                      |    ^                                   ^
///        | time-out, refusal    |    | (a server's connection begins     | CLOSE received, fault
///        v                      |    |  here, unconfirmed)               |
///      Over <-------------------+    +-- Endpoint::accept       ---------+
///            idle time-out, stateless reset
/// ```
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: TransportConfig,
    state: State,
    local_id: ConnectionId,
    peer_key: PublicKey,
    /// The latest time we were told, so that a smaller one cannot do harm.
    now: Instant,
    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEvent>,
}

#[derive(Debug)]
enum State {
    /// A client that waits for the RESPONSE.
    Handshaking(Box<ClientHandshake>),
    Established(Box<Established>),
    /// CLOSE was sent or received; late packets are answered or swallowed for a while.
    Ending(Ending),
    Over,
}

/// What exists only while the connection is up.
#[derive(Debug)]
pub(crate) struct Established {
    role: Role,
    config: TransportConfig,
    local_id: ConnectionId,
    remote_id: ConnectionId,
    negotiated: Negotiated,
    protection: PacketProtection,
    path: Path,
    sender: CodedSender,
    receiver: CodedReceiver,
    streams: Streams,
    /// A server's RESPONSE while it may have to be sent again, and whether it must be sent now.
    response: Option<PendingResponse>,
    /// The peer was heard under the connection's keys.
    is_confirmed: bool,
    /// PINGs owed: to confirm, to keep alive, to probe.
    ping: bool,
    counts: stats::Counts,
    timers: timers::Timers,
    /// Control frames read from the streams that did not fit, and those lost with a packet are asked for again
    /// by the streams themselves.
    pending_control: Option<crate::stream::Control>,
}

#[derive(Debug)]
struct PendingResponse {
    datagram: Vec<u8>,
    is_due: bool,
    /// When the client must have shown its first sealed packet.
    deadline: Instant,
}

impl Connection {
    pub(crate) fn client(
        now: Instant,
        config: TransportConfig,
        local_id: ConnectionId,
        handshake: ClientHandshake,
    ) -> Self {
        let peer_key = handshake.server_key();
        Self::with_state(now, Role::Client, config, local_id, peer_key, State::Handshaking(Box::new(handshake)))
    }

    fn with_state(
        now: Instant,
        role: Role,
        config: TransportConfig,
        local_id: ConnectionId,
        peer_key: PublicKey,
        state: State,
    ) -> Self {
        Self {
            role,
            config,
            state,
            local_id,
            peer_key,
            now,
            events: VecDeque::new(),
            endpoint_events: VecDeque::new(),
        }
    }

    /// Takes a datagram that [`crate::Endpoint::handle_datagram`] found to be ours. What the peer did wrong ends the
    /// connection; what anybody could have sent is dropped.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) {
        let now = self.advance(now);
        match &mut self.state {
            State::Handshaking(handshake) => {
                let step = handshake.handle_datagram(now, datagram);
                self.apply_handshake(now, network_path, step);
            }
            State::Established(established) => match established.handle_datagram(now, network_path, ecn, datagram) {
                Ok(None) => self.drain_established(),
                Ok(Some(close)) => self.on_closed_by_peer(now, close),
                Err(fault) => self.on_fault(now, fault),
            },
            State::Ending(ending) => ending.handle_datagram(now),
            State::Over => {}
        }
    }

    /// Does what is due at `now`. Harmless when nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        match &mut self.state {
            State::Handshaking(handshake) => {
                if let Some(error) = handshake.handle_timeout(now) {
                    self.end(error);
                }
            }
            State::Established(established) => match established.handle_timeout(now) {
                Ok(()) => self.drain_established(),
                Err(timers::Expired::Idle) => self.end(ConnectionError::TimedOut),
                Err(timers::Expired::Fault(fault)) => self.on_fault(now, fault),
            },
            State::Ending(ending) if ending.is_over(now) => self.retire(),
            State::Ending(_) | State::Over => {}
        }
    }

    /// Ends the connection: the peer is told `code` and `reason` (cut to what a packet holds). Streams are lost.
    pub fn close(&mut self, now: Instant, code: u64, reason: &str) {
        let now = self.advance(now);
        let close = CloseReason { by_application: true, code, reason: reason.to_owned() };
        match &self.state {
            State::Handshaking(_) => self.end(ConnectionError::ClosedLocally),
            State::Established(_) => self.begin_ending(now, &close, ConnectionError::ClosedLocally),
            State::Ending(_) | State::Over => {}
        }
    }

    /// Writes the next datagram to send into `buffer` (cleared before), or answers `None`.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.advance(now);
        buffer.clear();
        match &mut self.state {
            State::Handshaking(handshake) => handshake.poll_transmit(now, &self.local_id, buffer),
            State::Established(established) => match established.poll_transmit(now, buffer) {
                Ok(transmit) => transmit,
                Err(fault) => {
                    self.on_fault(now, fault);
                    self.poll_transmit(now, buffer)
                }
            },
            State::Ending(ending) => ending.poll_transmit(buffer),
            State::Over => None,
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.drain_established();
        }
        self.events.pop_front()
    }

    /// What the endpoint must know, see [`crate::Endpoint::handle_event`].
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint_events.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        match &self.state {
            State::Handshaking(handshake) => Some(handshake.next_timeout()),
            State::Established(established) => established.next_timeout(self.now),
            State::Ending(ending) => Some((ending.deadline(), TimerKind::Close)),
            State::Over => None,
        }
    }

    /// Opens a bidirectional stream. The peer learns of it with its first byte.
    ///
    /// # Errors
    /// When the peer allows no more now, or the connection is not up.
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        self.streams().ok_or(OpenError::NotConnected)?.open()
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self) -> Option<StreamId> {
        self.streams()?.accept()
    }

    /// Takes bytes to send on a stream and answers how many it took, at least one.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] while the buffer is full ([`Event::Writable`] follows); others when the stream takes
    /// no more.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.streams().ok_or(WriteError::UnknownStream)?.write(id, data)
    }

    /// Reads bytes in order.
    ///
    /// # Errors
    /// When the peer reset the stream, or there is no such stream.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        self.streams().ok_or(ReadError::UnknownStream)?.read(id, buffer)
    }

    /// Says that nothing more will be written to the stream.
    ///
    /// # Errors
    /// When the stream cannot be finished any more.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams().ok_or(WriteError::UnknownStream)?.finish(id)
    }

    /// Abandons what was not sent yet; the peer's reader gets an error with `code`.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        self.streams().ok_or(WriteError::UnknownStream)?.reset(id, code)
    }

    /// Says that we read no more of the stream; the peer's writer gets an error with `code`.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        self.streams().ok_or(ReadError::UnknownStream)?.stop(id, code)
    }

    /// Which side we are.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The peer's static public key. A client knows it from the start, a server since the handshake.
    #[must_use]
    pub fn peer_key(&self) -> PublicKey {
        self.peer_key
    }

    /// Where the peer is now.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        match &self.state {
            State::Handshaking(handshake) => Some(handshake.remote()),
            State::Established(established) => Some(established.path.network.remote),
            State::Ending(ending) => Some(ending.remote()),
            State::Over => None,
        }
    }

    /// True from [`Event::Connected`] to the end.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::Established(_))
    }

    /// True when nothing can be sent or received any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Ending(_) | State::Over)
    }

    /// What was granted in the handshake.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        match &self.state {
            State::Established(established) => Some(established.negotiated.profile),
            _ => None,
        }
    }

    fn streams(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Established(established) => Some(&mut established.streams),
            _ => None,
        }
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Carries what the parts have to tell to the application and the endpoint.
    fn drain_established(&mut self) {
        let State::Established(established) = &mut self.state else { return };
        if established.take_newly_confirmed() {
            self.endpoint_events.push_back(EndpointEvent::Confirmed);
        }
        while let Some(event) = established.streams.poll_event() {
            self.events.push_back(match event {
                StreamEvent::Opened => Event::StreamOpened,
                StreamEvent::Available => Event::StreamsAvailable,
                StreamEvent::Readable(id) => Event::Readable(id),
                StreamEvent::Writable(id) => Event::Writable(id),
                StreamEvent::Finished(id) => Event::Finished(id),
                StreamEvent::Stopped { id, code } => Event::Stopped { id, code },
            });
        }
    }

    fn on_fault(&mut self, now: Instant, fault: TransportError) {
        let close =
            CloseReason { by_application: false, code: fault.code.number(), reason: fault.reason.to_owned() };
        self.begin_ending(now, &close, ConnectionError::PeerFault(fault));
    }
}
