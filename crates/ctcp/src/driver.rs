//! The task behind an endpoint. Only this task uses the socket: it passes datagrams and time to the protocol, sends the protocol's
//! output, and wakes the tasks that wait for events.
//!
//! ```text
//!        datagram | deadline | work          (wait for any)
//!                     |
//!          receive -> time-outs -> turns     (a turn: one peer, a bounded time, a bounded number of datagrams)
//!                                  |    |
//!                                socket wakers
//! ```
//!
//! All work is bounded and the task yields between two rounds, so neither a flood of datagrams nor one busy connection can starve the
//! others. Peers share the time evenly (`turns.rs`): the datagrams of a peer that is ahead of others wait, and are dropped unopened when
//! too many wait.

use core::any::Any;
use core::future::poll_fn;
use core::net::IpAddr;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::Arc;

use ctcp_base::Instant;

use crate::clock::Clock;
use crate::entropy;
use crate::ports::Ports;
use crate::refusals::Refusals;
use crate::socket::{ReceiveBatch, Received, Socket, Train};
use crate::state::SocketChange;
use crate::state::{Fault, Key, Shared, State};
use crate::timer::{Deadline, Timer};
use crate::turns::{PeerId, TURN, Waiting};
use ctcp_proto::wire::is_long_header;
use ctcp_proto::{DatagramOutcome, Ecn, NetworkPath, hop_of};

/// The maximum number of receive calls per round: with full batches 1 ms of work at 1 GB/s of decryption.
const RECEIVES_PER_ROUND: usize = 2;

/// The maximum number of turns per round. The socket's receive buffer must hold the datagrams that arrive during a round, and an
/// unprivileged process often gets no more than 200 kB of it: 1 ms at 1 Gbit/s.
const TURNS_PER_ROUND: usize = 4;

/// The maximum number of datagrams of one connection per turn: as many as one full train of segmentation offload.
const DATAGRAMS_PER_TURN: usize = 44;

/// For how long received datagrams are handled before they wait for their peer's turn, even if no other peer has work. Other tasks may
/// have to wait this long for the mutex.
const RECEIVE_TIME: Duration = Duration::from_millis(2);

/// Replies to unknown senders wait in the outbox only up to this many bytes; further ones are dropped. A full socket must not let a flood
/// of first packets fill the memory.
const ANSWERS_SIZE_MAX: usize = 256 << 10;

/// After this many failed receives in a row the driver pauses receiving, so that a broken socket does not make it spin.
const RECEIVE_ERRORS_IN_A_ROW: u32 = 16;

/// The length of that pause.
const RECEIVE_REST: Duration = Duration::from_millis(100);

/// For how long a removed socket may wait until everything is sent. A full one would wait for ever.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// Runs an endpoint until its last handle and connection are gone.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    ports: Ports,
    batch: ReceiveBatch,
    /// The datagram being built.
    datagram: Vec<u8>,
    wakers: Vec<Waker>,
    receive_errors: u32,
    rest_until: Option<Instant>,
    refusals: Refusals,
    timer: Timer,
    /// Sockets must change before anything is sent.
    awaits_sockets: bool,
    /// The sockets that close once nothing waits to be sent, and at the latest at this time: a connection that ends may still have to say so
    /// there. Oldest first, each once.
    leaving: Vec<(IpAddr, Instant)>,
    /// Why the driver ends, if it ends while it is needed. It starts as `Shutdown`, which applies if the runtime drops the task, even
    /// before its first poll.
    fault: Option<Fault>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, socket: Socket, keeps_source: bool) -> Self {
        Self {
            shared,
            ports: Ports::new(socket, keeps_source),
            batch: ReceiveBatch::new(),
            datagram: Vec::new(),
            wakers: Vec::new(),
            receive_errors: 0,
            rest_until: None,
            refusals: Refusals::default(),
            timer: Timer::new(),
            awaits_sockets: false,
            leaving: Vec::new(),
            fault: Some(Fault::Shutdown),
        }
    }

    /// Drives the endpoint until it is finished. A panic inside is a bug of ours; it is caught here so that all tasks waiting for the
    /// endpoint get an error.
    pub(crate) async fn run(mut self) {
        let outcome = {
            let mut driving = pin!(self.drive());
            let poll = |context: &mut Context<'_>| match catch_unwind(AssertUnwindSafe(|| {
                driving.as_mut().poll(context)
            })) {
                Ok(poll) => poll,
                Err(panic) => Poll::Ready(Err(Fault::Panic(message(&*panic)))),
            };
            poll_fn(poll).await
        };
        self.fault = outcome.err();
        match &self.fault {
            Some(fault) => tracing::error!(?fault, "endpoint lost"),
            None => tracing::debug!("endpoint ended"),
        }
    }

    async fn drive(&mut self) -> Result<(), Fault> {
        loop {
            if self.shared.is_broken() {
                return Err(Fault::Panic("a call on one of its handles panicked".to_owned()));
            }
            self.change_sockets();
            let mut has_more = self.receive();
            has_more |= self.transmit();
            let (deadline, is_finished) = self.look(has_more);
            if is_finished {
                return Ok(());
            }
            if has_more {
                tokio::task::yield_now().await;
            } else {
                self.wait(deadline).await;
            }
        }
    }

    /// Adds and replaces sockets as the endpoint's handles asked for, and notes which ones are to close. Datagrams still in a socket that goes
    /// count as lost.
    fn change_sockets(&mut self) {
        let changes = core::mem::take(&mut self.shared.lock().socket_changes);
        for change in changes {
            let open = |socket| Socket::new(socket, Arc::clone(&self.shared.counters));
            let result = match change {
                SocketChange::Main(socket) => open(socket).map(|socket| self.ports.replace(socket)),
                SocketChange::Add(local, socket) => {
                    self.leaving.retain(|&(address, _)| address != local);
                    open(socket).map(|socket| self.ports.add(local, socket))
                }
                SocketChange::Remove(local) => {
                    if self.leaving.iter().all(|&(address, _)| address != local) {
                        self.leaving.push((local, self.shared.clock.now() + LEAVING_MAX));
                    }
                    Ok(())
                }
            };
            if let Err(error) = result {
                tracing::warn!(%error, "new socket is unusable");
            }
        }
    }

    /// Receives a bounded number of batches. Returns true if there may be more.
    fn receive(&mut self) -> bool {
        for _ in 0..RECEIVES_PER_ROUND {
            if self.rest_until.is_some_and(|until| self.shared.clock.now() < until) {
                return false;
            }
            self.rest_until = None;
            match self.ports.try_receive(&mut self.batch) {
                Ok(true) => {
                    self.receive_errors = 0;
                    self.handle_batch();
                }
                Ok(false) => return false,
                Err(error) => {
                    tracing::trace!(%error, "receive failed");
                    self.receive_errors += 1;
                    if self.receive_errors >= RECEIVE_ERRORS_IN_A_ROW {
                        self.receive_errors = 0;
                        self.rest_until = Some(self.shared.clock.now() + RECEIVE_REST);
                        return false;
                    }
                }
            }
        }
        true
    }

    fn handle_batch(&mut self) {
        let shared = Arc::clone(&self.shared);
        let reading = shared.clock.reading();
        let state = &mut *shared.lock();
        let mut booking = Booking::begin(&shared.clock);
        let mut is_mixed = false;
        for received in self.batch.iter_mut() {
            let at = state.at(reading.received_at(received.stamp));
            let network_path = NetworkPath { local: received.local, remote: received.remote };
            // No network carries the addresses that stand for hops.
            if hop_of(network_path.remote).is_some() {
                continue;
            }
            let Received { ecn, bytes, segment_size, .. } = received;
            for datagram in bytes.chunks_mut(segment_size) {
                tracing::trace!(remote = %network_path.remote, size = datagram.len(), "received");
                // A first packet may need ephemeral keys, so each batch with one mixes in fresh entropy.
                if is_long_header(datagram) && !core::mem::replace(&mut is_mixed, true) {
                    entropy::mix(|fresh| state.endpoint.mix_entropy(fresh));
                }
                let outcome = state.endpoint.handle_datagram(at, network_path, ecn, datagram);
                if let Some(refused) = state.endpoint.poll_refused() {
                    let name = refused.key().and_then(|key| state.client_names.get(&key));
                    self.refusals.note(at, network_path.remote, refused, name.map(String::as_str));
                }
                match outcome {
                    DatagramOutcome::Connection(handle) => {
                        let Some(key) = state.key_of(handle) else { continue };
                        let arrival = Arrival { at, network_path, ecn, datagram };
                        handle_or_keep(state, &mut booking, key, arrival, &mut self.wakers);
                    }
                    DatagramOutcome::Incoming(incoming) => {
                        state.admit(at, *incoming, network_path.remote);
                    }
                    DatagramOutcome::Answer(answer) if self.ports.waiting() < ANSWERS_SIZE_MAX => {
                        let source = network_path.local;
                        let destination = network_path.remote;
                        let head = Train { destination, source, ecn: None, segment_size: answer.len() };
                        self.ports.push(head, &answer);
                    }
                    DatagramOutcome::Answer(_) => {}
                    DatagramOutcome::Dropped(reason) => tracing::trace!(?reason, "dropped"),
                }
            }
        }
        booking.end(state);
    }

    /// Handles the deadlines that have passed and gives peers their turns. Returns true if peers still have work.
    fn transmit(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        shared.lock().handle_timeouts(shared.clock.now(), &mut self.wakers);
        self.wake();
        if !self.ports.flush() {
            return self.only_receive(&shared);
        }
        let mut last = None;
        for _ in 0..TURNS_PER_ROUND {
            last = self.take_turn(&shared, last);
            if last.is_none() {
                return core::mem::take(&mut self.awaits_sockets);
            }
            // Flushes and wakes without the mutex: these are system calls, and woken tasks need the mutex at once.
            let is_flushed = self.ports.flush();
            self.wake();
            if !is_flushed {
                return self.only_receive(&shared);
            }
        }
        if let Some((peer, begun)) = last {
            let time = shared.clock.now() - begun;
            shared.lock().turns.charge(peer, time);
        }
        true
    }

    /// Handles received datagrams while the socket accepts no more. Returns true if further datagrams wait.
    fn only_receive(&mut self, shared: &Shared) -> bool {
        let state = &mut *shared.lock();
        let Some(peer) = state.turns.begin_turn_with_datagrams() else { return false };
        let mut booking = Booking::begin(&shared.clock);
        handle_kept(state, &mut booking, peer, &mut self.wakers);
        state.turns.charge(peer, booking.elapsed());
        state.turns.end_turn(peer);
        state.turns.has_datagrams()
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Gives a turn to the peer that has used the least time: handles its waiting datagrams and drains one of its connections, both up to
    /// a limit. `last` is the peer of the previous turn, which is not charged yet, and when that turn began. Returns `None` if no peer
    /// has work.
    fn take_turn(&mut self, shared: &Shared, last: Option<(PeerId, Instant)>) -> Option<(PeerId, Instant)> {
        let flushed = shared.clock.now();
        let state = &mut *shared.lock();
        if let Some((peer, begun)) = last {
            state.turns.charge(peer, flushed - begun);
        }
        // A path may begin at a socket that was added after the changes of this round. Its packets must not leave from another one.
        if !state.socket_changes.is_empty() {
            self.awaits_sockets = true;
            return None;
        }
        let peer = state.turns.begin_turn()?;
        let begun = shared.clock.now();
        let mut booking = Booking::begin(&shared.clock);
        handle_kept(state, &mut booking, peer, &mut self.wakers);
        let now = state.at(shared.clock.now());
        if let Some(key) = state.take_ready(peer) {
            state.is_sending = true;
            let is_drained = self.collect_datagrams(state, now, key);
            if state.drain_events(now, key, &mut self.wakers) {
                shared.incoming.notify_waiters();
            }
            if is_drained {
                state.update_deadline(key);
            } else {
                state.mark_ready(key);
            }
        }
        state.turns.end_turn(peer);
        Some((peer, begun))
    }

    /// Returns true if the connection has nothing more to send.
    fn collect_datagrams(&mut self, state: &mut State, now: Instant, key: Key) -> bool {
        if state.has_hops {
            state.tell_room(key);
        }
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(slot) = state.slot(key) else { return true };
            if slot.connection.wants_entropy(now) {
                entropy::mix(|fresh| slot.connection.mix_entropy(fresh));
            }
            let Some(transmit) = slot.connection.poll_transmit(now, &mut self.datagram) else {
                state.on_drained(key);
                return true;
            };
            let Some(datagram) = self.datagram.get(..transmit.size) else { continue };
            tracing::trace!(remote = %transmit.destination, size = transmit.size, "sent");
            if hop_of(transmit.destination).is_some() {
                state.send_relayed(now, key, transmit, datagram);
                continue;
            }
            let head = Train {
                destination: transmit.destination,
                source: transmit.source,
                ecn: transmit.ecn,
                segment_size: transmit.size,
            };
            self.ports.push(head, datagram);
        }
        false
    }

    /// Returns when to wake up, and whether the endpoint is finished.
    fn look(&mut self, has_more: bool) -> (Option<Deadline>, bool) {
        let now = self.shared.clock.now();
        self.close_leaving(|latest| latest <= now);
        let (is_idle, deadline, is_finished) = {
            let state = &mut *self.shared.lock();
            let is_idle = !has_more && !state.turns.has_work() && self.ports.is_empty();
            if is_idle {
                state.is_sending = false;
                self.shared.idle.notify_waiters();
            }
            (is_idle, state.deadline(), state.is_finished() && self.ports.is_empty())
        };
        if is_idle {
            self.close_leaving(|_| true);
        }
        let latest = self.leaving.first().map(|&(_, latest)| latest);
        let others = [self.rest_until, latest].into_iter().flatten().map(Deadline::lax);
        (deadline.into_iter().chain(others).reduce(Deadline::min), is_finished)
    }

    /// Closes removed sockets, depending on when they have to be closed. Not while the mutex is held, since these are system calls.
    fn close_leaving(&mut self, is_due: impl Fn(Instant) -> bool) {
        let Self { leaving, ports, .. } = self;
        leaving.retain(|&(local, latest)| {
            let stays = !is_due(latest);
            if !stays {
                ports.remove(local);
            }
            stays
        });
    }

    async fn wait(&mut self, deadline: Option<Deadline>) {
        self.timer.set(&self.shared.clock, deadline);
        let is_blocked = !self.ports.is_empty();
        let is_resting = self.rest_until.is_some();
        tokio::select! {
            () = self.ports.readable(), if !is_resting => {}
            () = self.ports.writable(), if is_blocked => {}
            () = self.timer.passed() => {}
            () = self.shared.work.notified() => {}
        }
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

/// A datagram of a connection.
struct Arrival<'a> {
    at: Instant,
    network_path: NetworkPath,
    ecn: Option<Ecn>,
    datagram: &'a mut [u8],
}

/// Measures the time spent on datagrams and charges it to their peers.
struct Booking<'a> {
    clock: &'a Clock,
    begun: Instant,
    /// The peer whose datagrams are being handled, and since when.
    current: Option<(PeerId, Instant)>,
    latest: Instant,
}

impl<'a> Booking<'a> {
    fn begin(clock: &'a Clock) -> Self {
        let begun = clock.now();
        Self { clock, begun, current: None, latest: begun }
    }

    /// The time that the peer has used and that is not charged yet.
    fn unbooked(&self, peer: PeerId) -> Duration {
        let current = self.current.filter(|(current, _)| *current == peer);
        current.map_or(Duration::ZERO, |(_, since)| self.latest - since)
    }

    /// The time since [`Booking::begin`].
    fn elapsed(&self) -> Duration {
        self.latest - self.begun
    }

    /// Records that a datagram of the peer was handled.
    fn on_handled(&mut self, state: &mut State, peer: PeerId) {
        if let Some((current, since)) = self.current.filter(|(current, _)| *current != peer) {
            state.turns.charge(current, self.latest - since);
            self.current = None;
        }
        self.current.get_or_insert((peer, self.latest));
        self.latest = self.clock.now();
    }

    fn end(self, state: &mut State) {
        if let Some((current, since)) = self.current {
            state.turns.charge(current, self.latest - since);
        }
    }
}

/// Hands a datagram to its connection, or keeps it for the peer's turn.
fn handle_or_keep(
    state: &mut State,
    booking: &mut Booking<'_>,
    key: Key,
    arrival: Arrival<'_>,
    wakers: &mut Vec<Waker>,
) {
    let Some(peer) = state.slot(key).map(|slot| slot.peer) else { return };
    if booking.elapsed() < RECEIVE_TIME && state.turns.may_go_first(peer, booking.unbooked(peer)) {
        handle(state, key, arrival, wakers);
        booking.on_handled(state, peer);
        return;
    }
    let Arrival { at, network_path, ecn, datagram } = arrival;
    state
        .turns
        .push_datagram(peer, Waiting { connection: key, at, network_path, ecn, bytes: datagram.to_vec() });
}

/// Handles the waiting datagrams of a peer, for at most the time of a turn.
fn handle_kept(state: &mut State, booking: &mut Booking<'_>, peer: PeerId, wakers: &mut Vec<Waker>) {
    while booking.elapsed() < TURN
        && let Some(mut waiting) = state.turns.pop_datagram(peer)
    {
        let Waiting { connection, at, network_path, ecn, .. } = waiting;
        handle(state, connection, Arrival { at, network_path, ecn, datagram: &mut waiting.bytes }, wakers);
        booking.latest = booking.clock.now();
    }
}

fn handle(state: &mut State, key: Key, arrival: Arrival<'_>, wakers: &mut Vec<Waker>) {
    let Arrival { at, network_path, ecn, datagram } = arrival;
    if let Some(slot) = state.slot(key) {
        slot.connection.handle_datagram(at, network_path, ecn, datagram);
    }
    state.on_input(at, key, wakers);
}

impl Drop for Driver {
    fn drop(&mut self) {
        let wakers = self.shared.lock().on_driver_end(self.fault.take());
        self.shared.incoming.notify_waiters();
        self.shared.idle.notify_waiters();
        for waker in self.wakers.drain(..).chain(wakers) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
