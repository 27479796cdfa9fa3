//! The state that the handles of an endpoint and its driver share: the protocol's endpoint, its connections, and the
//! tasks that wait. One mutex guards it all and is never held across a system call or an await.
//!
//! A task registers to wait while it holds the mutex and after it saw that there is nothing yet. The driver wakes tasks
//! while it holds the mutex, or afterwards from a list built under it. So no wake-up is lost.
//!
//! A connection is removed when the protocol has retired it and no handle of it exists or will exist.

use core::task::Waker;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp_base::Instant;
use ctcp_proto::{
    Connection, ConnectionError, ConnectionHandle, Endpoint, EndpointEvent, Event, Incoming, PublicKey,
    TransportConfig,
};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::EndpointLost;
use crate::relayed::Load;
use crate::slot::{Owner, Signals, Slot};
use crate::socket::Counters;
use crate::timer::Deadline;
use crate::turns::{PeerId, Turns};

/// The maximum number of established connections that the application has not accepted yet. Beyond it clients are
/// refused as busy, so that connections do not pile up at an application that does not accept.
const BACKLOG_MAX: usize = 1024;

/// The code and text for those clients.
const BUSY: (u64, &str) = (0, "the server is busy");

/// How long a closing endpoint waits for its hops beyond their round trips, and at most.
const CARRIAGE_SLACK: Duration = Duration::from_millis(20);
const CARRIAGE_MAX: Duration = Duration::from_millis(700);

/// The driver's own id of a connection: never reused, unlike the protocol's handles.
pub(crate) type Key = u64;

/// Why the driver ended while it was still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A panic, with its message.
    Panic(String),
    /// Its runtime was shut down.
    Shutdown,
}

/// The state shared by the handles and the driver of one endpoint.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<Counters>,
    /// Wakes the driver: there is something to send, or the endpoint shall end.
    pub(crate) work: Notify,
    /// Wakes tasks that wait for a client.
    pub(crate) incoming: Notify,
    /// Wakes tasks that wait until everything is sent.
    pub(crate) idle: Notify,
}

impl Shared {
    pub(crate) fn new(state: State, clock: Clock, counters: Arc<Counters>) -> Self {
        let (work, incoming, idle) = <(Notify, Notify, Notify)>::default();
        Self { state: Mutex::new(state), clock, counters, work, incoming, idle }
    }

    /// Locks the state. A poisoned mutex is accepted: the driver then ends the endpoint, and all waiting tasks get an
    /// error.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a thread panicked while it held the state, which may be inconsistent since then.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.is_poisoned()
    }
}

/// A change of the endpoint's sockets, which the driver makes.
pub(crate) enum SocketChange {
    /// The socket of all connections is replaced.
    Main(std::net::UdpSocket),
    /// A socket for paths that begin at this address.
    Add(std::net::IpAddr, std::net::UdpSocket),
    /// The socket of this address closes once nothing waits to be sent.
    Remove(std::net::IpAddr),
}

/// The state of an endpoint; see the module's documentation.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    /// The limits of outgoing connections.
    pub(crate) transport: TransportConfig,
    pub(crate) local_address: SocketAddr,
    /// What the driver shall do to its sockets.
    pub(crate) socket_changes: Vec<SocketChange>,
    slots: BTreeMap<Key, Slot>,
    /// The protocol's handles of connections that are not retired.
    keys: BTreeMap<ConnectionHandle, Key>,
    next_key: Key,
    deadlines: BTreeSet<(Instant, Key)>,
    /// The deadlines of connections whose packets wait for the pacer and whose profile needs millisecond precision.
    punctual: BTreeSet<(Instant, Key)>,
    /// The names of clients in the log.
    pub(crate) client_names: BTreeMap<PublicKey, String>,
    /// The pending work of each peer.
    pub(crate) turns: Turns,
    backlog: VecDeque<Key>,
    /// The application closed the endpoint.
    pub(crate) is_closed: bool,
    /// The driver has ended.
    pub(crate) is_dead: bool,
    /// Why the driver ended, if it ended unexpectedly.
    pub(crate) lost: Option<EndpointLost>,
    /// The driver is sending datagrams that it took from the connections.
    pub(crate) is_sending: bool,
    /// Handles of the endpoint exist.
    pub(crate) is_held: bool,
    /// Some connection carries others.
    pub(crate) has_hops: bool,
    latest: Instant,
}

impl State {
    pub(crate) fn new(endpoint: Endpoint, transport: TransportConfig, local_address: SocketAddr) -> Self {
        Self {
            endpoint,
            transport,
            local_address,
            socket_changes: Vec::new(),
            slots: BTreeMap::new(),
            keys: BTreeMap::new(),
            next_key: 0,
            deadlines: BTreeSet::new(),
            punctual: BTreeSet::new(),
            client_names: BTreeMap::new(),
            turns: Turns::default(),
            backlog: VecDeque::new(),
            is_closed: false,
            is_dead: false,
            lost: None,
            is_sending: false,
            is_held: true,
            has_hops: false,
            latest: Instant::ZERO,
        }
    }

    /// Returns `instant`, or the latest one that the protocol has seen if that is later: its time never goes back.
    pub(crate) fn at(&mut self, instant: Instant) -> Instant {
        self.latest = self.latest.max(instant);
        self.latest
    }

    /// Looks up a connection. It exists as long as a handle holds it.
    pub(crate) fn slot(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots.get_mut(&key)
    }

    pub(crate) fn key_of(&self, handle: ConnectionHandle) -> Option<Key> {
        self.keys.get(&handle).copied()
    }

    /// Adds a new connection of the protocol.
    pub(crate) fn insert(
        &mut self,
        handle: ConnectionHandle,
        connection: Connection,
        remote: SocketAddr,
        owner: Owner,
    ) -> (Key, Arc<Signals>) {
        let key = self.next_key;
        self.next_key += 1;
        let peer = self.turns.open(connection.peer_key());
        let slot = Slot::new(handle, connection, remote, owner, peer);
        let signals = Arc::clone(&slot.signals);
        self.slots.insert(key, slot);
        self.keys.insert(handle, key);
        self.mark_ready(key);
        (key, signals)
    }

    /// Accepts a client that has sent its first packet, or refuses it. Returns its connection, unless the limit of connections is reached.
    pub(crate) fn admit(&mut self, now: Instant, incoming: Incoming, remote: SocketAddr) -> Option<Key> {
        if !self.is_held || self.is_closed {
            self.endpoint.refuse(incoming);
            return None;
        }
        let (handle, connection) = self.endpoint.accept(now, incoming)?;
        Some(self.insert(handle, connection, remote, Owner::HalfOpen).0)
    }

    /// Marks that the outputs of a connection need draining. Returns true if they were not marked before.
    pub(crate) fn mark_ready(&mut self, key: Key) -> bool {
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| !slot.is_ready) else { return false };
        slot.is_ready = true;
        self.turns.push_ready(slot.peer, key);
        true
    }

    /// Removes and returns the peer's next connection with work.
    pub(crate) fn take_ready(&mut self, peer: PeerId) -> Option<Key> {
        let key = self.turns.pop_ready(peer)?;
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.is_ready = false;
        }
        Some(key)
    }

    /// The time at which the driver must act without any input.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let connections = self.deadlines.first().map(|&(at, _)| Deadline::lax(at));
        let punctual = self.punctual.first().map(|&(at, _)| Deadline { at, is_punctual: true });
        let endpoint = self.endpoint.poll_timeout().map(Deadline::lax);
        [connections, punctual, endpoint].into_iter().flatten().reduce(Deadline::min)
    }

    /// Called after a connection got input: marks its outputs for draining. If the input closed it, its events are
    /// drained at once, so that handles get the reason.
    pub(crate) fn on_input(&mut self, now: Instant, key: Key, wakers: &mut Vec<Waker>) {
        self.mark_ready(key);
        self.hand_on(now, key, wakers);
        let has_ended = |slot: &Slot| slot.error.is_none() && slot.connection.is_closed();
        if self.slots.get(&key).is_some_and(has_ended) {
            self.drain_events(now, key, wakers);
        }
    }

    /// Handles all deadlines up to `now`.
    pub(crate) fn handle_timeouts(&mut self, now: Instant, wakers: &mut Vec<Waker>) {
        let now = self.at(now);
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        while let Some(&(deadline, key)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            self.punctual.remove(&(deadline, key));
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.deadline = None;
                slot.connection.handle_timeout(now);
                self.on_input(now, key, wakers);
            }
        }
    }

    /// Updates the deadline of a drained connection.
    pub(crate) fn update_deadline(&mut self, key: Key) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let wanted = slot.connection.poll_timeout().map(|(deadline, _)| deadline);
        let is_punctual = slot.connection.is_paced()
            && slot.connection.profile().is_some_and(|profile| profile.congestion.is_punctual());
        if let Some(old) = slot.deadline {
            self.punctual.remove(&(old, key));
        }
        if let Some(new) = wanted.filter(|_| is_punctual) {
            self.punctual.insert((new, key));
        }
        if slot.deadline != wanted {
            if let Some(old) = slot.deadline {
                self.deadlines.remove(&(old, key));
            }
            if let Some(new) = wanted {
                self.deadlines.insert((new, key));
            }
            slot.deadline = wanted;
        }
    }

    /// Passes a connection's events to the waiting tasks. Their wakers are added to `wakers`, to be woken without the
    /// mutex. Returns true if there is a client to accept.
    pub(crate) fn drain_events(&mut self, now: Instant, key: Key, wakers: &mut Vec<Waker>) -> bool {
        while let Some(slot) = self.slots.get_mut(&key)
            && let Some(event) = slot.connection.poll_endpoint_event()
        {
            slot.is_retired |= event == EndpointEvent::Retired;
            let (handle, is_retired) = (slot.handle, slot.is_retired);
            self.endpoint.handle_event(handle, event);
            if is_retired {
                self.keys.remove(&handle);
            }
        }
        // This precedes the events, so that a client that must be closed is not accepted.
        self.close_what_must_go(now, wakers);
        let mut has_come_up = false;
        while let Some(slot) = self.slots.get_mut(&key)
            && let Some(event) = slot.connection.poll_event()
        {
            has_come_up |= event == Event::Connected;
            slot.on_event(event, wakers);
        }
        // First of all its own users have learnt why.
        let ended = self.slots.get_mut(&key).filter(|slot| slot.error.is_some());
        if let Some(load) = ended.and_then(|slot| slot.load.take()) {
            self.on_load_lost(now, key, load, wakers);
        }
        let has_client = has_come_up && self.on_client(now, key);
        self.forget_if_unwanted(key);
        has_client
    }

    /// Closes the connections that the protocol's endpoint wants closed: of clients that are no longer listed, or one
    /// too many of a client.
    pub(crate) fn close_what_must_go(&mut self, now: Instant, wakers: &mut Vec<Waker>) {
        // Collect all of them first: `on_input` leads back to this function, which must not recurse once for each of
        // thousands.
        let mut closed = Vec::new();
        while let Some((handle, reason)) = self.endpoint.poll_close() {
            let Some(key) = self.key_of(handle) else { continue };
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            let (remote, client) = (slot.remote(), slot.connection.peer_key().short());
            tracing::debug!(%remote, client, reason = reason.reason, "closed the connection of a client");
            slot.connection.close_for(now, &reason);
            closed.push(key);
        }
        for key in closed {
            self.on_input(now, key, wakers);
        }
    }

    /// Handles that a connection was established. Returns true if it is a client's that the application may accept.
    fn on_client(&mut self, now: Instant, key: Key) -> bool {
        let has_taker = self.is_held && !self.is_closed && self.backlog.len() < BACKLOG_MAX;
        let Some(slot) = self.slots.get_mut(&key) else { return false };
        if slot.owner != Owner::HalfOpen {
            return false;
        }
        if slot.connection.is_closed() {
            slot.owner = Owner::Abandoned;
            return false;
        }
        if has_taker {
            slot.owner = Owner::Waiting;
            self.backlog.push_back(key);
        } else {
            slot.owner = Owner::Abandoned;
            slot.connection.close(now, BUSY.0, BUSY.1);
            self.mark_ready(key);
        }
        has_taker
    }

    /// Returns the next client, which the caller owns from now on.
    pub(crate) fn accept(&mut self) -> Option<(Key, Arc<Signals>)> {
        let key = self.backlog.pop_front()?;
        let slot = self.slots.get_mut(&key)?;
        slot.owner = Owner::Held;
        Some((key, Arc::clone(&slot.signals)))
    }

    /// The last handle of the connection was dropped.
    pub(crate) fn release(&mut self, now: Instant, key: Key) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        slot.owner = Owner::Abandoned;
        if slot.error.is_none() {
            slot.connection.close(now, 0, "");
        }
        self.mark_ready(key);
        self.forget_if_unwanted(key);
    }

    fn forget_if_unwanted(&mut self, key: Key) {
        if self.slots.get(&key).is_some_and(Slot::is_unwanted) {
            let Some(slot) = self.slots.remove(&key) else { return };
            if let Some(deadline) = slot.deadline {
                self.deadlines.remove(&(deadline, key));
                self.punctual.remove(&(deadline, key));
            }
            self.turns.close(slot.peer);
        }
    }

    /// Closes a connection; its handles learn of it at once.
    pub(crate) fn close_connection(
        &mut self,
        now: Instant,
        key: Key,
        (code, reason): (u64, &str),
        wakers: &mut Vec<Waker>,
    ) {
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.connection.close(now, code, reason);
        }
        self.on_input(now, key, wakers);
    }

    /// Closes every connection, including those in the backlog, and accepts no more. The hops of others stay open for now. The caller
    /// must wake the returned wakers.
    pub(crate) fn close(&mut self, now: Instant, close: (u64, &str)) -> Vec<Waker> {
        self.is_closed = true;
        for key in self.give_up_backlog() {
            self.forget_if_unwanted(key);
        }
        self.close_each(now, close, |slot| !slot.is_hop())
    }

    /// Closes the hops, too.
    pub(crate) fn close_hops(&mut self, now: Instant, close: (u64, &str)) -> Vec<Waker> {
        self.close_each(now, close, Slot::is_hop)
    }

    fn close_each(&mut self, now: Instant, close: (u64, &str), which: impl Fn(&Slot) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let keys = self.slots.iter().filter(|(_, slot)| which(slot)).map(|(&key, _)| key);
        for key in keys.collect::<Vec<_>>() {
            self.close_connection(now, key, close, &mut wakers);
        }
        wakers
    }

    /// How long the hops of connections that are open need to carry their last datagrams, with one repair. Zero without any.
    pub(crate) fn carriage_time(&self) -> Duration {
        let is_open = |key: &Key| self.slots.get(key).is_some_and(|slot| !slot.connection.is_closed());
        let hops = self.slots.values().filter(|slot| match &slot.load {
            Some(Load::Carried(keys)) => !slot.connection.is_closed() && keys.iter().any(is_open),
            _ => false,
        });
        let time = hops.map(|slot| 2 * slot.connection.stats().rtt.smoothed + CARRIAGE_SLACK).max();
        time.unwrap_or_default().min(CARRIAGE_MAX)
    }

    /// Returns true if nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_dead || !(self.is_sending || self.turns.has_work())
    }

    /// The last handle of the endpoint was dropped, so the clients in the backlog cannot be accepted.
    pub(crate) fn release_endpoint(&mut self, now: Instant) {
        self.is_held = false;
        for key in self.give_up_backlog() {
            self.release(now, key);
        }
    }

    fn give_up_backlog(&mut self) -> VecDeque<Key> {
        let backlog = core::mem::take(&mut self.backlog);
        for key in &backlog {
            if let Some(slot) = self.slots.get_mut(key) {
                slot.owner = Owner::Abandoned;
            }
        }
        backlog
    }

    /// Returns true if no handle and no connection is left.
    pub(crate) fn is_finished(&self) -> bool {
        !self.is_held && self.slots.is_empty()
    }

    /// The driver ends, for whatever reason: fails all connections so that no task waits forever.
    pub(crate) fn on_driver_end(&mut self, fault: Option<Fault>) -> Vec<Waker> {
        self.is_dead = true;
        self.is_closed = true;
        self.lost = fault.map(EndpointLost);
        let mut wakers = Vec::new();
        for slot in self.slots.values_mut() {
            let error = slot.error.clone().unwrap_or(ConnectionError::EndpointLost);
            slot.on_event(Event::Closed(error), &mut wakers);
        }
        wakers
    }
}
