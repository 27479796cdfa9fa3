//! A connection to one peer. This module only dispatches: each file under `connection/` handles one direction or one concern, and the
//! algorithms are in the modules that these files call.
//!
//! ```text
//!   write/read/open ...                     poll_event
//!        |                                      ^
//!  Streams, Messages <- symbols - CodedReceiver |     receive.rs, acknowledged.rs
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
//! After any input (a `handle_*` call or a call on a stream), call [`Connection::poll_transmit`], [`Connection::poll_event`] and
//! [`Connection::poll_endpoint_event`] until each returns `None`. Then call [`Connection::poll_timeout`] once, and
//! [`Connection::handle_timeout`] when that time has come. Calls are legal in any order, and spurious calls change nothing. Not draining
//! costs latency, never correctness. `now` must not go back; an earlier `now` counts as the latest one seen.

mod acknowledged;
mod close;
mod contents;
mod contexts;
mod control;
mod copies;
mod early;
mod facts;
#[cfg(any(test, feature = "forge"))]
mod forge;
mod grease;
mod handshaking;
mod idle;
mod keys;
mod lease;
mod messages;
mod migration;
mod negotiation;
mod path_ids;
mod paths;
mod receive;
mod relayed;
mod repeats;
mod reports;
mod resets;
mod stats;
mod streams;
mod timers;
mod transmit;

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::Instant;

use crate::config::TransportConfig;
use crate::crypto::random::SecretRng;
use crate::crypto::{EarlyKey, PacketProtection, PublicKey, ResetKey, TicketKey};
use crate::error::{CloseReason, ConnectionError, TransportError};
use crate::event::{EndpointEvent, Event};
use crate::id::{ConnectionId, ContextId, Role};
use crate::network::{Ecn, NetworkPath, Transmit};
use crate::path::{CopyBudget, Path, Paths};
use crate::recovery::rtt::INITIAL_RTT;
use crate::stream::{Interactive, StreamEvent, Streams};
use crate::wire::{Parameters, VARINT_MAX};

use crate::memory::Lease;
use close::{Ending, Remains};
pub(crate) use contents::Contents;
use contexts::Contexts;
use control::ControlFrames;
use early::Early;
pub(crate) use early::{EarlyFlight, has_room_for_early_data};
use grease::Grease;
pub(crate) use handshaking::{ClientHandshake, KemOffer};
use idle::Idleness;
use keys::Keys;
use messages::Messages;
pub(crate) use negotiation::{
    Negotiated, VERSIONS, client_parameters, is_downgraded, negotiate, server_parameters, streams,
};
use path_ids::PathIds;
pub(crate) use path_ids::SPARE as PATH_IDS_SPARE;
pub(crate) use paths::PathChanges;
use paths::PathEvent;
pub use paths::{PathError, PathStats};
use receive::Received;
pub use relayed::{Carriage, HopRepair};
use resets::Resets;
use stats::Counts;
pub use stats::{ConnectionStats, MessageStats, RttStats};
pub use timers::TimerKind;
use timers::Timers;

/// A connection to one peer.
///
/// ```text
///                  RESPONSE                    close(), CLOSE sent
///   Handshaking ------------> Established ---------------------------> Ending --> Over
///        |                      |    ^                                   ^
///        | timeout, refusal     |    | (a server's connection begins     | CLOSE received, fault
///        v                      |    |  here, unconfirmed)               |
///      Over <-------------------+    +-- Endpoint::accept       ---------+
///            idle timeout, stateless reset
/// ```
pub struct Connection {
    role: Role,
    config: TransportConfig,
    state: State,
    peer_key: PublicKey,
    /// The latest `now` of any call. Earlier values are raised to it.
    now: Instant,
    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEvent>,
    /// State kept after an established connection has closed.
    remains: Option<Box<Remains>>,
    /// This connection's share of the endpoint's memory budget.
    lease: Option<Lease>,
}

enum State {
    /// A client that waits for the RESPONSE.
    Handshaking(Box<ClientHandshake>),
    Established(Box<Established>),
    /// CLOSE was sent or received; late packets are answered or ignored for a while.
    Ending(Ending),
    Over,
}

/// State that exists only while the connection is established.
pub(crate) struct Established {
    role: Role,
    config: TransportConfig,
    local_id: ConnectionId,
    remote_id: ConnectionId,
    negotiated: Negotiated,
    protection: PacketProtection,
    keys: Keys,
    paths: Paths,
    path_changes: PathChanges,
    copy_budget: CopyBudget,
    resets: Resets,
    early: Early,
    /// The peer's static public key.
    peer_key: PublicKey,
    contexts: Contexts,
    streams: Streams,
    messages: Messages,
    /// Datagrams of other connections.
    relayed: Messages,
    /// The context of the last combination sent.
    last_context: ContextId,
    /// A server's RESPONSE, kept until the client is confirmed.
    response: Option<PendingResponse>,
    /// A packet that the peer sealed with the connection's keys has arrived.
    is_confirmed: bool,
    /// The endpoint has not been notified of the confirmation yet.
    is_newly_confirmed: bool,
    /// A PING must be sent: to confirm the keys, to keep the connection alive or to check that the peer is still there.
    ping: bool,
    control: ControlFrames,
    grease: Grease,
    counts: Counts,
    timers: Timers,
    idleness: Idleness,
    /// Source of values that the peer must not be able to guess.
    rng: SecretRng,
}

/// The result of a handshake, from which [`Established`] is built.
pub(crate) struct Setup {
    pub(crate) role: Role,
    pub(crate) config: TransportConfig,
    pub(crate) own: Parameters,
    pub(crate) peer: Parameters,
    pub(crate) negotiated: Negotiated,
    pub(crate) protection: PacketProtection,
    pub(crate) network: NetworkPath,
    pub(crate) peer_key: PublicKey,
    /// Only for a server.
    pub(crate) reset_key: Option<ResetKey>,
    /// Only for a server whose client showed a ticket.
    pub(crate) early_key: Option<EarlyKey>,
    /// Only for a server whose client wants tickets.
    pub(crate) tickets: Option<TicketKey>,
    /// The streams that a client has opened during the handshake.
    pub(crate) streams: Option<Streams>,
    pub(crate) rng: SecretRng,
}

/// Times a RESPONSE is sent at once. It is not longer than the INITIATE that it answers, and losing it costs as much.
const RESPONSE_COPIES: usize = 2;

/// A server's RESPONSE while it may have to be sent again.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    /// The RESPONSE and its part, if it has one.
    datagrams: Vec<Vec<u8>>,
    /// How many datagrams to send now.
    due: usize,
    /// When the first copy was sent.
    first_sent: Option<Instant>,
    /// The client's first sealed packet must arrive before this time.
    deadline: Instant,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Handshaking(_) => "handshaking",
            State::Established(_) => "established",
            State::Ending(_) => "ending",
            State::Over => "over",
        };
        formatter
            .debug_struct("Connection")
            .field("role", &self.role)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

impl PendingResponse {
    pub(crate) fn new(datagrams: Vec<Vec<u8>>, deadline: Instant) -> Self {
        Self { due: RESPONSE_COPIES * datagrams.len(), datagrams, first_sent: None, deadline }
    }

    /// A datagram of the INITIATE was repeated. Each of them triggers its share of the copies, so that what leaves is at most about twice as
    /// long as what arrived.
    fn on_repeated(&mut self) {
        self.due = RESPONSE_COPIES;
    }

    /// The next datagram to send.
    fn poll(&mut self, now: Instant) -> Option<&[u8]> {
        self.due = self.due.checked_sub(1)?;
        self.first_sent.get_or_insert(now);
        let index = self.datagrams.len() - 1 - self.due % self.datagrams.len();
        self.datagrams.get(index).map(Vec::as_slice)
    }
}

impl Established {
    fn new(now: Instant, setup: Setup) -> Self {
        let Setup { role, config, own, peer, negotiated, protection, network, rng, .. } = setup;
        let mut streams = setup.streams.unwrap_or_else(|| streams(role, &config, &own));
        streams.set_peer_limits(peer.max_data, peer.max_stream_data, peer.max_streams);
        let contexts = Contexts::new(role, &config, &negotiated);
        if negotiated.profile.rules.interactive && contexts.takes(ContextId::Interactive) {
            streams.set_interactive(Interactive::Automatic);
        }
        let path = Path::new(now, network, negotiated.profile, negotiated.datagram_size_max)
            .with_window_max(config.congestion_window_max)
            .with_unpaced(contexts.streams().sender.scheme().is_unpaced())
            .with_controller(config.controller.clone())
            .with_destination(peer.connection_id);
        Self {
            role,
            local_id: own.connection_id,
            remote_id: peer.connection_id,
            protection,
            keys: Keys::new(now),
            paths: Paths::new(path, negotiated.path_mode),
            path_changes: PathChanges::new(PathIds::new(
                (own.connection_id, &own.path_ids),
                (peer.connection_id, &peer.path_ids),
            )),
            copy_budget: CopyBudget::default(),
            resets: Resets::new(setup.reset_key),
            early: Early::new(setup.early_key, setup.tickets),
            peer_key: setup.peer_key,
            contexts,
            config,
            streams,
            messages: Messages::default(),
            relayed: Messages::default(),
            last_context: ContextId::Streams,
            response: None,
            is_confirmed: false,
            is_newly_confirmed: false,
            ping: false,
            control: ControlFrames::default(),
            grease: Grease::default(),
            counts: Counts::default(),
            timers: Timers::new(now),
            idleness: Idleness::default(),
            rng,
            negotiated,
        }
    }

    /// Uses the handshake as the first round-trip sample. Without a sample, a loss among the first packets would cost the initial probe
    /// timeout of one second. If a message was sent twice, the reply may be to either copy. The sample then starts at the first copy, so
    /// that it errs on the long side.
    fn on_handshake_round_trip(&mut self, now: Instant, first_sent: Option<Instant>) {
        let Some(rtt) = first_sent.map(|sent| now - sent) else { return };
        let path = self.paths.main_mut();
        // A sample longer than the initial estimate may be due to a lost message rather than a long path. Wait for the first ACK instead.
        if rtt < INITIAL_RTT {
            path.on_rtt_sample(now, rtt, Duration::ZERO);
        } else {
            path.admission.on_slow_handshake();
        }
    }
}

impl Connection {
    pub(crate) fn client(now: Instant, config: TransportConfig, handshake: ClientHandshake) -> Self {
        let peer_key = handshake.server_key();
        let state = State::Handshaking(Box::new(handshake));
        Self { role: Role::Client, config, state, peer_key, now, ..Self::blank() }
    }

    pub(crate) fn server(now: Instant, setup: Setup, response: PendingResponse) -> Self {
        let (config, peer_key) = (setup.config.clone(), setup.peer_key);
        let mut established = Established::new(now, setup);
        established.response = Some(response);
        let state = State::Established(Box::new(established));
        Self { role: Role::Server, config, state, peer_key, now, ..Self::blank() }
    }

    fn blank() -> Self {
        Self {
            role: Role::Client,
            config: TransportConfig::default(),
            state: State::Over,
            peer_key: PublicKey([0; 32]),
            now: Instant::ZERO,
            events: VecDeque::new(),
            endpoint_events: VecDeque::new(),
            remains: None,
            lease: None,
        }
    }

    /// Handles a datagram that [`crate::Endpoint::handle_datagram`] routed to this connection. A violation by the authenticated peer ends
    /// the connection. A datagram that anyone could have sent is dropped.
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
                let ahead = self.apply_handshake(now, network_path, step);
                for mut datagram in ahead {
                    self.handle_datagram(now, network_path, None, &mut datagram);
                }
            }
            // The idle timeout has passed before its timer ran, for example because this process was suspended. Datagrams that queued up
            // meanwhile do not show that the peer still has the connection.
            State::Established(established) if established.is_idle_time_over(now) => {
                let error = established.silence_error();
                self.end(error);
            }
            State::Established(established) => {
                match established.handle_datagram(now, network_path, ecn, datagram) {
                    Ok(Received::Handled) => self.drain_established(),
                    Ok(Received::Closed(close)) => self.on_closed_by_peer(now, close),
                    Ok(Received::Reset) => self.end(ConnectionError::Reset),
                    Err(fault) => self.on_fault(now, fault),
                }
            }
            State::Ending(ending) => ending.handle_datagram(),
            State::Over => {}
        }
        self.settle();
    }

    /// Fetches and delivers what an external decoder ([`crate::scheme::Coding`]) has decoded from combinations that did not arrive in a
    /// packet, for example from a simulated relay.
    pub fn on_decoder_news(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.config.coding.is_none() {
            return;
        }
        if let State::Established(established) = &mut self.state {
            match established.handle_decoder_news(now) {
                Ok(()) => self.drain_established(),
                Err(fault) => self.on_fault(now, fault),
            }
        }
        self.settle();
    }

    /// Handles all deadlines that are due at `now`. Does nothing if none is.
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
                Err(timers::IdleTimedOut) => {
                    let error = established.silence_error();
                    self.end(error);
                }
            },
            State::Ending(ending) if ending.is_over(now) => self.retire(),
            State::Ending(_) | State::Over => {}
        }
    }

    /// Closes the connection and sends the peer `code` (at most 2^62 - 1) and `reason` (truncated to fit a packet). Unfinished streams are
    /// lost.
    pub fn close(&mut self, now: Instant, code: u64, reason: &str) {
        let code = code.min(VARINT_MAX);
        self.close_for(now, &CloseReason { by_application: true, code, reason: reason.to_owned() });
    }

    /// Closes the connection for the reason that [`crate::Endpoint::poll_close`] returned. The peer receives the reason; the local error is
    /// [`ConnectionError::ClosedLocally`].
    pub fn close_for(&mut self, now: Instant, reason: &CloseReason) {
        let now = self.advance(now);
        match &self.state {
            State::Handshaking(_) => self.end(ConnectionError::ClosedLocally),
            State::Established(_) => self.begin_ending(now, reason, ConnectionError::ClosedLocally),
            State::Ending(_) | State::Over => {}
        }
    }

    /// Writes the next datagram to send into `buffer`, which is cleared first. Returns `None` if there is nothing to send.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let now = self.advance(now);
        buffer.clear();
        self.settle();
        match &mut self.state {
            State::Handshaking(handshake) => handshake.poll_transmit(now, buffer),
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

    /// Returns the next event for the application, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.drain_established();
        }
        self.events.pop_front()
    }

    /// Returns the next event for the endpoint. Pass it to [`crate::Endpoint::handle_event`].
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint_events.pop_front()
    }

    /// Whether the next datagram, if sent at `now`, may contain a fresh key share. If so, call [`Self::mix_entropy`] before
    /// [`Self::poll_transmit`].
    #[must_use]
    pub fn wants_entropy(&self, now: Instant) -> bool {
        matches!(&self.state, State::Established(established) if established.wants_entropy(now))
    }

    /// Mixes entropy from the operating system into the connection's random generator.
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        if let State::Established(established) = &mut self.state {
            established.rng.mix(entropy);
        }
    }

    /// When [`Self::handle_timeout`] must be called next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        match &self.state {
            State::Handshaking(handshake) => Some(handshake.next_timeout()),
            State::Established(established) => established.next_timeout(self.now),
            State::Ending(ending) => Some((ending.deadline(), TimerKind::Close)),
            State::Over => None,
        }
    }

    /// Simulates a path that no longer carries datagrams of the current size.
    #[cfg(test)]
    pub(crate) fn shrink_datagrams(&mut self) {
        if let State::Established(established) = &mut self.state {
            let path = established.paths.main_mut();
            let size = path.owed.mtu.current();
            path.owed.mtu.on_too_big(self.now, size);
        }
    }

    fn advance(&mut self, now: Instant) -> Instant {
        let before = self.now;
        self.now = before.max(now);
        if let State::Established(established) = &mut self.state {
            if self.now - before > timers::SUSPENDED {
                established.on_pause(self.now);
            }
            established.on_handling();
            established.streams.set_now(self.now);
        }
        self.now
    }

    /// Forwards pending notifications of the components to the application and the endpoint.
    fn drain_established(&mut self) {
        let State::Established(established) = &mut self.state else { return };
        if core::mem::take(&mut established.early.is_news) {
            self.events.push_back(Event::Connected);
        }
        if core::mem::take(&mut established.is_newly_confirmed) && self.role == Role::Server {
            self.endpoint_events.push_back(EndpointEvent::Confirmed);
            if !established.early.is_accepted {
                self.events.push_back(Event::Connected);
            }
        }
        if core::mem::take(&mut established.early.is_ticket_news) {
            self.events.push_back(Event::TicketReceived);
        }
        if let Some(token) = established.resets.poll_new_token() {
            let remote = established.paths.main().network.remote;
            self.endpoint_events.push_back(EndpointEvent::ResetToken { remote, token });
        }
        if established.messages.incoming.poll_news() {
            self.events.push_back(Event::MessageReceived);
        }
        while let Some(event) = established.path_changes.ids.poll_event() {
            self.endpoint_events.push_back(event);
        }
        while let Some(event) = established.path_changes.poll_event() {
            self.events.push_back(match event {
                PathEvent::Opened(id) => Event::PathOpened(id),
                PathEvent::Closed(id) => Event::PathClosed(id),
            });
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
