//! One association at the server: its sockets, and who may answer.
//!
//! ```text
//!  message --> rate --> contacted before? --no--> policy --> socket of the family --> target
//!                 name: resolve once, check --^
//!  answer  <-- rate <-- contacted? (with full cone: would the policy allow it?) <-- socket
//! ```

use core::future::pending;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp::MessageError;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::names::{Names, Next};
use super::rate::ClientRate;
use super::service::{Admitted, UdpService};
use super::targets::Targets;
use super::{BATCH, DATAGRAM_BYTES_MAX, DEADLINE_MAX, Deadline, bind, is_too_long, plain};
use crate::address::{Host, TargetAddress};
use crate::coded::CodedConnection;
use crate::counters::DropReason;
use crate::dial::DialError;
use crate::request::{Associate, Notice, ReplyCode, put_datagram_head, split_datagram, split_number};

/// How many notices wait to be written; further ones are dropped.
pub(super) const NOTICES_MAX: usize = 16;

/// The same target has one notice in this time.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);

/// A client that does not read its notices ends its association after this time.
const NOTICE_PATIENCE: Duration = Duration::from_secs(5);

/// Simultaneous lookups of one association.
const LOOKUPS_MAX: usize = 4;

/// An open association.
pub(super) struct Association<C> {
    service: Arc<UdpService>,
    connection: C,
    client: String,
    granted: Associate,
    rate: Arc<ClientRate>,
    deadline: Deadline,
    /// A socket was bound.
    bound: Notify,
    lookups: mpsc::Sender<TargetAddress>,
    notices: mpsc::Sender<Notice>,
    state: Mutex<State>,
}

struct State {
    /// For IPv4 and IPv6, bound when they are first used.
    sockets: [Option<Arc<UdpSocket>>; 2],
    /// The only target, to which the socket is connected so that the system reports errors.
    peer: Option<SocketAddr>,
    /// All addresses of the only target, and those of them that did not work.
    addresses: Vec<SocketAddr>,
    failed: Vec<SocketAddr>,
    targets: Targets,
    names: Names,
    /// When the client last got a notice about a target.
    noticed: BTreeMap<TargetAddress, Instant>,
    /// When a datagram last passed.
    used: Instant,
}

impl State {
    /// Whether another address of the only target is tried or used instead.
    fn passes_over(&self, address: SocketAddr) -> bool {
        let uses_other = |peer: SocketAddr| peer != address && self.addresses.contains(&peer);
        self.failed.contains(&address) || self.peer.is_some_and(uses_other)
    }

    /// An address of the only target does not work. Returns whether another one can be tried. After the last one, the first is next.
    fn leave(&mut self, address: SocketAddr) -> bool {
        if self.addresses.len() < 2 {
            return false;
        }
        self.failed.push(address);
        self.peer = None;
        self.sockets = [None, None];
        let has_other = self.addresses.iter().any(|other| !self.failed.contains(other));
        if !has_other {
            self.failed.clear();
        }
        has_other
    }
}

impl<C: CodedConnection> Association<C> {
    pub(super) fn new(
        service: Arc<UdpService>,
        connection: C,
        granted: Associate,
        (lookups, notices): (mpsc::Sender<TargetAddress>, mpsc::Sender<Notice>),
    ) -> Self {
        let client = connection.peer();
        let state = State {
            sockets: [None, None],
            peer: None,
            addresses: Vec::new(),
            failed: Vec::new(),
            targets: Targets::new(service.limits.targets, service.limits.idle),
            names: Names::default(),
            noticed: BTreeMap::new(),
            used: Instant::now(),
        };
        let rate = service.rate(&client);
        let (deadline, bound, state) = (Deadline::default(), Notify::new(), Mutex::new(state));
        Self { service, connection, client, granted, rate, deadline, bound, lookups, notices, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_one(&self, reason: DropReason, why: impl core::fmt::Display) {
        self.service.counters.udp.on_dropped(reason, why);
    }

    /// Handles a message of the client.
    pub(super) fn on_message(&self, message: &[u8]) {
        if !self.rate.upstream.take(message.len()) {
            return self.drop_one(DropReason::Rate, "the client exceeds its rate");
        }
        let parsed = split_number(message).map_err(Into::into).and_then(|(_, rest)| split_datagram(rest));
        let (target, datagram) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.drop_one(DropReason::Malformed, error),
        };
        match target.host {
            Host::Address(ip) => self.send_to_address(&target, ip, datagram),
            Host::Name(_) => self.send_to_name(&target, datagram),
        }
    }

    fn send_to_address(&self, target: &TargetAddress, ip: IpAddr, datagram: &[u8]) {
        let mut state = self.lock();
        let is_known = state.targets.touch(plain(SocketAddr::new(ip, target.port)), Instant::now());
        if !is_known && let Err(refusal) = self.service.dialer.check(ip, target.port) {
            return self.refuse(&mut state, target, &DialError::Refused(refusal));
        }
        self.send(&mut state, target, &[ip], datagram);
    }

    fn send_to_name(&self, target: &TargetAddress, datagram: &[u8]) {
        let mut state = self.lock();
        match state.names.next(target, datagram, Instant::now()) {
            Next::Send(addresses) => {
                let addresses = addresses.to_vec();
                self.send(&mut state, target, &addresses, datagram);
            }
            Next::Resolve => {
                // There is room for every name that is being resolved.
                let _ = self.lookups.try_send(target.clone());
            }
            Next::Wait => {}
            Next::Failed => self.drop_one(DropReason::Unresolved, format_args!("{target} failed lately")),
            Next::Full => self.drop_one(DropReason::Full, "too many datagrams wait for names"),
        }
    }

    fn on_resolved(&self, target: TargetAddress, outcome: Result<Vec<IpAddr>, DialError>) {
        let mut state = self.lock();
        match outcome {
            Ok(addresses) => {
                let now = Instant::now();
                let waiting = state.names.on_resolved(target.clone(), Some(addresses.clone()), now);
                for (datagram, at) in waiting {
                    if now.duration_since(at) < DEADLINE_MAX {
                        self.send(&mut state, &target, &addresses, &datagram);
                    } else {
                        self.drop_one(DropReason::Late, format_args!("it waited for the name of {target}"));
                    }
                }
            }
            Err(error) => {
                for _ in state.names.on_resolved(target.clone(), None, Instant::now()) {
                    self.refuse(&mut state, &target, &error);
                }
            }
        }
    }

    /// Sends a datagram to the first address that works. All of them passed the policy.
    fn send(&self, state: &mut State, target: &TargetAddress, addresses: &[IpAddr], datagram: &[u8]) {
        let addresses = addresses.iter().map(|ip| plain(SocketAddr::new(*ip, target.port)));
        let addresses: Vec<SocketAddr> = addresses.collect();
        if self.granted.single && state.peer.is_none() && state.addresses != addresses {
            state.addresses.clone_from(&addresses);
            state.failed.clear();
        }
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            if state.passes_over(address) {
                continue;
            }
            match self.send_once(state, address, datagram) {
                Ok(()) => {
                    state.used = Instant::now();
                    self.service.counters.udp.on_upstream(datagram.len());
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.drop_one(DropReason::Full, "the socket's buffer is full");
                }
                Err(error) if is_too_long(&error) => {
                    let text = format!("a datagram of {} bytes is too long for {target}", datagram.len());
                    self.drop_one(DropReason::TooLong, &text);
                    return self.notify(state, target, ReplyCode::GeneralFailure, text);
                }
                Err(error) => {
                    last = error;
                    state.leave(address);
                }
            }
        }
        self.refuse(state, target, &DialError::Connect(last));
    }

    fn send_once(&self, state: &mut State, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let socket = match &mut state.sockets[usize::from(to.is_ipv6())] {
            Some(socket) => socket.clone(),
            none => {
                let any: IpAddr =
                    if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
                let socket = Arc::new(bind(SocketAddr::new(any, 0))?);
                *none = Some(socket.clone());
                self.bound.notify_one();
                socket
            }
        };
        state.targets.insert(to, Instant::now());
        // Directly, because tokio knows that a new socket is writable only after a while.
        let socket = SockRef::from(&*socket);
        if !self.granted.single {
            return socket.send_to(datagram, &to.into()).map(|_| ());
        }
        match state.peer {
            Some(peer) if peer != to => Err(io::ErrorKind::InvalidInput.into()),
            Some(_) => socket.send(datagram).map(|_| ()),
            None => {
                socket.connect(&to.into())?;
                state.peer = Some(to);
                socket.send(datagram).map(|_| ())
            }
        }
    }

    /// Drops a datagram whose target cannot be used, and tells the client and the log.
    fn refuse(&self, state: &mut State, target: &TargetAddress, error: &DialError) {
        let reason = match error {
            DialError::Refused(refusal) => {
                self.service.counters.targets_refused.add(1);
                let asked = format!("udp:{target}");
                self.service.refused.note_refused(&self.client, &asked, &refusal.to_string());
                DropReason::Forbidden
            }
            DialError::Unresolved(_) => DropReason::Unresolved,
            DialError::Connect(_) => DropReason::Unreachable,
        };
        self.drop_one(reason, format_args!("{target}: {error}"));
        self.notify(state, target, error.reply_code(), error.explain(target));
    }

    /// Tells the client why a datagram was dropped, unless it was told a moment ago.
    fn notify(&self, state: &mut State, target: &TargetAddress, code: ReplyCode, text: String) {
        let now = Instant::now();
        let is_recent = |at: &Instant| now.duration_since(*at) < NOTICE_PAUSE;
        if state.noticed.get(target).is_some_and(is_recent) {
            return;
        }
        state.noticed.retain(|_, at| is_recent(at));
        if state.noticed.len() < NOTICES_MAX {
            state.noticed.insert(target.clone(), now);
            let _ = self.notices.try_send(Notice { code, target: target.clone(), text });
        }
    }

    /// Sends the answers that wait in a socket to the client.
    fn forward_answers(&self, socket: &UdpSocket) {
        let is_ipv6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        let head_bytes = if is_ipv6 { 4 + 1 + 16 + 2 } else { 4 + 1 + 4 + 2 };
        let mut message = Vec::with_capacity(head_bytes + DATAGRAM_BYTES_MAX);
        for _ in 0..BATCH {
            message.clear();
            message.resize(head_bytes, 0);
            match socket.try_recv_buf_from(&mut message) {
                Ok((_, from)) => self.forward_answer(plain(from), &mut message, head_bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => self.on_socket_error(error),
            }
        }
    }

    /// A connected socket reports ICMP messages about its target: mostly that nothing listens on the port. The next datagram goes to the
    /// next address, if there is one.
    fn on_socket_error(&self, error: io::Error) {
        let mut state = self.lock();
        let Some(peer) = state.peer else { return };
        if state.leave(peer) {
            self.drop_one(DropReason::Unreachable, format_args!("{peer}: {error}"));
        } else {
            self.refuse(&mut state, &peer.into(), &DialError::Connect(error));
        }
    }

    /// Handles what the system reported about a socket: answers and errors.
    fn on_ready(&self, socket: &UdpSocket) {
        #[cfg(unix)]
        let _ = socket.try_io(Interest::ERROR, || {
            if let Some(error) = socket.take_error()? {
                self.on_socket_error(error);
            }
            Err::<(), _>(io::ErrorKind::WouldBlock.into()) // it was handled
        });
        self.forward_answers(socket);
    }

    fn forward_answer(&self, from: SocketAddr, message: &mut [u8], head_bytes: usize) {
        let now = Instant::now();
        let is_known = self.lock().targets.touch(from, now);
        let is_wanted =
            || self.granted.full_cone && self.service.dialer.check(from.ip(), from.port()).is_ok();
        if from.port() == 0 || !(is_known || is_wanted()) {
            return self.drop_one(DropReason::Unasked, format_args!("{from} was not contacted"));
        }
        let bytes = message.len() - head_bytes;
        if !self.rate.downstream.take(message.len()) {
            return self.drop_one(DropReason::Rate, "the answers exceed the client's rate");
        }
        let mut head = Vec::with_capacity(head_bytes);
        put_datagram_head(&mut head, self.granted.number, &from.into());
        message[..head_bytes].copy_from_slice(&head);
        match self.connection.send_message(message, self.deadline.of(&self.connection)) {
            Ok(()) => {
                self.lock().used = now;
                self.service.counters.udp.on_downstream(bytes);
            }
            Err(MessageError::QueueFull) => self.drop_one(DropReason::Full, "the connection's queue is full"),
            Err(MessageError::TooLong) => {
                self.drop_one(DropReason::TooLong, format_args!("{bytes} bytes from {from}"));
            }
            Err(_) => self.drop_one(DropReason::Unknown, "the connection carries no messages any more"),
        }
    }
}

/// An error alone does not make a socket readable.
#[cfg(unix)]
const NEWS: Interest = Interest::READABLE.add(Interest::ERROR);
#[cfg(not(unix))]
const NEWS: Interest = Interest::READABLE;

/// Waits until a socket has answers or an error. Without a socket it waits forever.
async fn ready(socket: Option<&Arc<UdpSocket>>) {
    match socket {
        Some(socket) => {
            let _ = socket.ready(NEWS).await;
        }
        None => pending().await,
    }
}

impl<C: CodedConnection> Admitted<C> {
    /// Serves the association until its stream or its connection ends, or nothing was sent for a while.
    pub(crate) async fn serve(mut self, mut stream: C::Stream) {
        let association = self.association.clone();
        let _present = association.service.counters.udp.associations.enter();
        if association.granted.reply().write(&mut stream).await.is_err() {
            return;
        }
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut resolving = JoinSet::new();
        let mut nothing = [0];
        loop {
            let ([v4, v6], used) = {
                let state = association.lock();
                (state.sockets.clone(), state.used)
            };
            let idle = used + association.service.limits.idle;
            tokio::select! {
                // The client sends nothing: this is the end.
                _ = reader.read(&mut nothing) => break,
                _ = association.connection.closed() => break,
                () = association.bound.notified() => {}
                () = ready(v4.as_ref()) => v4.iter().for_each(|socket| association.on_ready(socket)),
                () = ready(v6.as_ref()) => v6.iter().for_each(|socket| association.on_ready(socket)),
                Some(target) = self.lookups.recv(), if resolving.len() < LOOKUPS_MAX => {
                    let association = association.clone();
                    resolving.spawn(async move {
                        let found = association.service.dialer.allowed_addresses(&association.client, &target).await;
                        association.on_resolved(target, found);
                    });
                }
                Some(_) = resolving.join_next() => {}
                Some(notice) = self.notices.recv() => {
                    if !matches!(timeout(NOTICE_PATIENCE, notice.write(&mut writer)).await, Ok(Ok(()))) {
                        break;
                    }
                }
                () = sleep_until(idle) => {
                    if association.lock().used == used {
                        debug!(number = association.granted.number, "an idle association ends");
                        break;
                    }
                }
            }
        }
        let _ = writer.shutdown().await;
    }
}
