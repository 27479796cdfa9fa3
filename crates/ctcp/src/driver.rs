//! The task behind an endpoint. It alone touches the socket: it feeds datagrams and time to the protocol, and
//! carries what comes out to the network and to those who wait.
//!
//! ```text
//!        datagram | deadline | work          (wait for any)
//!                     |
//!          receive -> time-outs -> turns     (a turn: one peer, a bounded time, a bounded number of datagrams)
//!                                  |    |
//!                                socket wakers
//! ```
//!
//! Work is bounded everywhere, and between two rounds the runtime gets its chance, so that neither a flood of
//! datagrams nor one busy connection can starve the others. Peers share the time evenly (`turns.rs`): the datagrams of one that is
//! ahead of others wait, and are dropped unopened when too many do.

use core::any::Any;
use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::Arc;

use ctcp_base::Instant;

use crate::clock::Clock;
use crate::entropy;
use crate::outbox::Outbox;
use crate::refusals::Refusals;
use crate::slot::Owner;
use crate::socket::{ReceiveBatch, Received, Socket, Train};
use crate::state::{Fault, Key, Shared, State};
use crate::timer::{Deadline, Timer};
use crate::turns::{PeerId, TURN, Waiting};
use ctcp_proto::wire::is_long_header;
use ctcp_proto::{DatagramOutcome, Ecn, NetworkPath};

/// Receive calls in a round: with full batches 1 ms of work at 1 GB/s of decryption.
const RECEIVES_PER_ROUND: usize = 2;

/// Turns in a round. The socket's receive buffer must hold what comes meanwhile, and an unprivileged process
/// often gets no more than 200 kB of it: 1 ms at 1 Gbit/s.
const TURNS_PER_ROUND: usize = 4;

/// Datagrams of one connection in a turn: what fits one full train of segmentation offload.
const DATAGRAMS_PER_TURN: usize = 44;

/// The time in which what was received is handled without waiting for turns, even if nobody else has work: so long others
/// may have to wait for the mutex.
const RECEIVE_TIME: Duration = Duration::from_millis(2);

/// Answers to strangers wait in the outbox only up to this many bytes; beyond it they are dropped. A full
/// socket must not let a flood of first packets fill the memory.
const ANSWERS_SIZE_MAX: usize = 256 << 10;

/// After so many failed receives in a row the socket gets a rest, lest a broken one keep us spinning.
const RECEIVE_ERRORS_IN_A_ROW: u32 = 16;

/// How long that rest is.
const RECEIVE_REST: Duration = Duration::from_millis(100);

/// Runs an endpoint until nobody needs it.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    socket: Socket,
    /// Send from the address that the peer wrote to. A client lets the system choose instead, so that a change of
    /// the machine's address heals by itself.
    keeps_source: bool,
    batch: ReceiveBatch,
    outbox: Outbox,
    /// The datagram in the making.
    datagram: Vec<u8>,
    wakers: Vec<Waker>,
    receive_errors: u32,
    rest_until: Option<Instant>,
    refusals: Refusals,
    timer: Timer,
    /// Why it ends, if it should not: with its runtime, perhaps before it began, unless it comes to another end.
    fault: Option<Fault>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, socket: Socket, keeps_source: bool) -> Self {
        Self {
            shared,
            socket,
            keeps_source,
            batch: ReceiveBatch::new(),
            outbox: Outbox::default(),
            datagram: Vec::new(),
            wakers: Vec::new(),
            receive_errors: 0,
            rest_until: None,
            refusals: Refusals::default(),
            timer: Timer::new(),
            fault: Some(Fault::Shutdown),
        }
    }

    /// Drives the endpoint until it is finished. A panic on the way is a fault of ours; it is caught here so that everybody
    /// who waits for the endpoint learns of it.
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
            self.move_to_new_socket();
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

    /// Takes the socket that [`crate::Endpoint::rebind`] left. What is still in the old one counts as lost.
    fn move_to_new_socket(&mut self) {
        let Some(socket) = self.shared.lock().new_socket.take() else { return };
        match Socket::new(socket, Arc::clone(&self.shared.counters)) {
            Ok(socket) => self.socket = socket,
            Err(error) => tracing::warn!(%error, "new socket is unusable, the old one stays"),
        }
    }

    /// Receives a bounded number of batches. True: there may be more.
    fn receive(&mut self) -> bool {
        for _ in 0..RECEIVES_PER_ROUND {
            if self.rest_until.is_some_and(|until| self.shared.clock.now() < until) {
                return false;
            }
            self.rest_until = None;
            match self.socket.try_receive(&mut self.batch) {
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
            let Received { ecn, bytes, segment_size, .. } = received;
            for datagram in bytes.chunks_mut(segment_size) {
                tracing::trace!(remote = %network_path.remote, size = datagram.len(), "received");
                // A first packet may ask for keys: those of each batch have entropy of their own.
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
                    DatagramOutcome::Incoming(incoming) if state.is_held && !state.is_closed => {
                        // None: the limit of connections is reached.
                        if let Some((handle, connection)) = state.endpoint.accept(at, *incoming) {
                            state.insert(handle, connection, network_path.remote, Owner::HalfOpen);
                        }
                    }
                    DatagramOutcome::Incoming(incoming) => state.endpoint.refuse(*incoming),
                    DatagramOutcome::Answer(answer) if self.outbox.len() < ANSWERS_SIZE_MAX => {
                        let source = network_path.local.filter(|_| self.keeps_source);
                        let destination = network_path.remote;
                        let head = Train { destination, source, ecn: None, segment_size: answer.len() };
                        self.outbox.push(head, &answer, 1);
                    }
                    DatagramOutcome::Answer(_) => {}
                    DatagramOutcome::Dropped(reason) => tracing::trace!(?reason, "dropped"),
                }
            }
        }
        booking.end(state);
    }

    /// Hands time to those whose deadline has come and gives peers their turn. True: some want another.
    fn transmit(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        shared.lock().handle_timeouts(shared.clock.now(), &mut self.wakers);
        self.wake();
        if !self.outbox.flush(&mut self.socket) {
            return self.only_receive(&shared);
        }
        let mut last = None;
        for _ in 0..TURNS_PER_ROUND {
            last = self.take_turn(&shared, last);
            if last.is_none() {
                return false;
            }
            // Without the mutex: system calls, and tasks that would want it at once.
            let is_flushed = self.outbox.flush(&mut self.socket);
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

    /// The socket takes nothing more: what arrived is handled all the same. True: more of that waits.
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

    /// Handles what waits of the peer that has used least, and drains one of its connections, both up to a limit. `last`: whose
    /// turn before is not charged yet, and when it began. `None`: nobody has work.
    fn take_turn(&mut self, shared: &Shared, last: Option<(PeerId, Instant)>) -> Option<(PeerId, Instant)> {
        let flushed = shared.clock.now();
        let state = &mut *shared.lock();
        if let Some((peer, begun)) = last {
            state.turns.charge(peer, flushed - begun);
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

    /// True: the connection has nothing more to send.
    fn collect_datagrams(&mut self, state: &mut State, now: Instant, key: Key) -> bool {
        let Some(slot) = state.slot(key) else { return true };
        let train_length_max = self.socket.train_length_max();
        for _ in 0..DATAGRAMS_PER_TURN {
            if slot.connection.wants_entropy(now) {
                entropy::mix(|fresh| slot.connection.mix_entropy(fresh));
            }
            let Some(transmit) = slot.connection.poll_transmit(now, &mut self.datagram) else { return true };
            let Some(datagram) = self.datagram.get(..transmit.size) else { continue };
            tracing::trace!(remote = %transmit.destination, size = transmit.size, "sent");
            let head = Train {
                destination: transmit.destination,
                source: transmit.source.filter(|_| self.keeps_source),
                ecn: transmit.ecn,
                segment_size: transmit.size,
            };
            self.outbox.push(head, datagram, train_length_max);
        }
        false
    }

    /// When to wake up, and whether to end.
    fn look(&mut self, has_more: bool) -> (Option<Deadline>, bool) {
        let state = &mut *self.shared.lock();
        if !has_more && !state.turns.has_work() && self.outbox.is_empty() {
            state.is_sending = false;
            self.shared.idle.notify_waiters();
        }
        let deadline = match (state.deadline(), self.rest_until.map(Deadline::lax)) {
            (Some(deadline), Some(rest)) => Some(deadline.min(rest)),
            (one, other) => one.or(other),
        };
        (deadline, state.is_finished() && self.outbox.is_empty())
    }

    async fn wait(&mut self, deadline: Option<Deadline>) {
        self.timer.set(&self.shared.clock, deadline);
        let is_blocked = !self.outbox.is_empty();
        let is_resting = self.rest_until.is_some();
        tokio::select! {
            () = self.socket.readable(), if !is_resting => {}
            () = self.socket.writable(), if is_blocked => {}
            () = self.timer.passed() => {}
            () = self.shared.work.notified() => {}
        }
    }
}

/// What a panic said.
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

/// Charges peers for the time between one datagram and the next.
struct Booking<'a> {
    clock: &'a Clock,
    begun: Instant,
    /// Whose datagrams are being handled, and since when.
    current: Option<(PeerId, Instant)>,
    latest: Instant,
}

impl<'a> Booking<'a> {
    fn begin(clock: &'a Clock) -> Self {
        let begun = clock.now();
        Self { clock, begun, current: None, latest: begun }
    }

    /// What the peer has used that is not charged yet.
    fn unbooked(&self, peer: PeerId) -> Duration {
        let current = self.current.filter(|(current, _)| *current == peer);
        current.map_or(Duration::ZERO, |(_, since)| self.latest - since)
    }

    /// Since the beginning.
    fn elapsed(&self) -> Duration {
        self.latest - self.begun
    }

    /// A datagram of the peer was handled.
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

/// Hands a datagram to its connection, or keeps it for its peer's turn.
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

/// Handles datagrams of a peer that waited, for the time of a turn.
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
