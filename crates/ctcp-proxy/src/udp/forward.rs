//! A fixed forward of UDP: each program's address has an association of its own, and all have the same target.
//!
//! ```text
//!            datagram of a new address: ask for an association; the datagram follows the request at once
//!  Open -------------------------------------------------------------------------> Open
//!   |  ^
//!   |  | after a while
//!   v  |   the target or the server refuses
//!  Refusing: the socket is connected to itself, so the system answers every datagram with "port unreachable"
//! ```
//!
//! A program that sends to a port where nothing listens gets an ICMP message. A program without root cannot send one,
//! but the system does when no socket takes a datagram, and a connected socket takes only those of its peer. It keeps
//! the port, so no other program can take it.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::associations::Outlet;
use super::{BATCH, DATAGRAM_BYTES_MAX, PENDING_BYTES_MAX, send_answer};
use crate::address::TargetAddress;
use crate::client::ForwardProxy;
use crate::counters::{Counters, DropReason};
use crate::link::Connector;
use crate::request::{ReplyCode, put_datagram_head, split_datagram};

/// Addresses of programs that one forward serves. A further one replaces the one that was idle longest: a resolver uses
/// a new port for each query.
const SOURCES_MAX: usize = 128;

/// How long a forward refuses: longer than the 5 s after which a resolver repeats its query.
const REFUSAL: Duration = Duration::from_secs(6);

/// The association of one program.
enum Source<C> {
    /// Messages that wait for it.
    Opening {
        messages: Vec<Vec<u8>>,
        bytes: usize,
    },
    Open(Arc<Outlet<C>>),
}

type SharedSource<C> = Arc<Mutex<Source<C>>>;

fn lock<C>(source: &SharedSource<C>) -> MutexGuard<'_, Source<C>> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Entry<C> {
    source: SharedSource<C>,
    used: Instant,
    task: AbortHandle,
}

/// What the tasks of a forward share.
struct Common<K: Connector> {
    proxy: Arc<ForwardProxy<K>>,
    socket: UdpSocket,
    counters: Arc<Counters>,
    refused: Notify,
}

struct UdpForward<K: Connector> {
    common: Arc<Common<K>>,
    /// What precedes a datagram in a message; the number is filled in later.
    head: Vec<u8>,
    sources: BTreeMap<SocketAddr, Entry<K::Connection>>,
    /// Each returns its address and its source when it ends.
    tasks: JoinSet<(SocketAddr, SharedSource<K::Connection>)>,
}

impl<K: Connector> ForwardProxy<K> {
    /// Serves a fixed forward of UDP until the future is dropped. See [`crate::udp::listen`] for the socket.
    pub async fn serve_udp_forward(self: &Arc<Self>, socket: UdpSocket, target: TargetAddress) {
        let mut head = Vec::new();
        put_datagram_head(&mut head, 0, &target);
        let counters = self.link().counters().clone();
        let common = Common { proxy: self.clone(), socket, counters, refused: Notify::new() };
        let (sources, tasks) = (BTreeMap::new(), JoinSet::new());
        UdpForward { common: Arc::new(common), head, sources, tasks }.serve().await;
    }
}

impl<K: Connector> UdpForward<K> {
    async fn serve(mut self) {
        let common = self.common.clone();
        loop {
            tokio::select! {
                readable = common.socket.readable() => match readable {
                    Ok(()) => self.carry(),
                    Err(_) => return, // the runtime ends
                },
                () = common.refused.notified() => self.refuse().await,
                Some(ended) = self.tasks.join_next() => {
                    if let Ok((from, source)) = ended {
                        self.forget(from, &source);
                    }
                }
            }
        }
    }

    fn forget(&mut self, from: SocketAddr, source: &SharedSource<K::Connection>) {
        self.common.count_waiting(source);
        if self.sources.get(&from).is_some_and(|entry| Arc::ptr_eq(&entry.source, source)) {
            self.sources.remove(&from);
        }
    }

    /// Carries the datagrams that wait in the socket.
    fn carry(&mut self) {
        let mut message = Vec::with_capacity(self.head.len() + DATAGRAM_BYTES_MAX);
        for _ in 0..BATCH {
            message.clear();
            message.extend_from_slice(&self.head);
            match self.common.socket.try_recv_buf_from(&mut message) {
                Ok((bytes, from)) => self.on_datagram(from, &mut message, bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {} // an ICMP message about an answer
            }
        }
    }

    fn on_datagram(&mut self, from: SocketAddr, message: &mut [u8], bytes: usize) {
        if !self.sources.contains_key(&from) {
            self.make_room();
            let entry = self.open(from);
            self.sources.insert(from, entry);
        }
        let Some(entry) = self.sources.get_mut(&from) else { return };
        entry.used = Instant::now();
        match &mut *lock(&entry.source) {
            Source::Open(outlet) => outlet.send(message, bytes),
            Source::Opening { messages, bytes: waiting }
                if messages.is_empty() || *waiting + message.len() <= PENDING_BYTES_MAX =>
            {
                *waiting += message.len();
                messages.push(message.to_vec());
            }
            Source::Opening { .. } => {
                self.common.counters.udp.on_dropped(DropReason::Full, "too much waits for an association");
            }
        }
    }

    /// Ends the association that was idle longest if there are too many.
    fn make_room(&mut self) {
        if self.sources.len() < SOURCES_MAX {
            return;
        }
        let oldest = self.sources.iter().min_by_key(|(_, entry)| entry.used).map(|(from, _)| *from);
        if let Some(entry) = oldest.and_then(|oldest| self.sources.remove(&oldest)) {
            entry.task.abort();
            self.common.count_waiting(&entry.source);
        }
    }

    fn open(&mut self, from: SocketAddr) -> Entry<K::Connection> {
        let source = Arc::new(Mutex::new(Source::Opening { messages: Vec::new(), bytes: 0 }));
        let (common, shared, head_bytes) = (self.common.clone(), source.clone(), self.head.len());
        let task = self.tasks.spawn(async move {
            common.serve_source(from, &shared, head_bytes).await;
            (from, shared)
        });
        Entry { source, used: Instant::now(), task }
    }

    /// Lets the system refuse datagrams for a while.
    async fn refuse(&mut self) {
        self.tasks.shutdown().await;
        core::mem::take(&mut self.sources)
            .values()
            .for_each(|entry| self.common.count_waiting(&entry.source));
        let socket = &self.common.socket;
        if !is_refusing(socket) {
            return;
        }
        sleep(REFUSAL).await;
        // Other programs were refused for the same reason.
        tokio::select! {
            biased;
            () = self.common.refused.notified() => {}
            () = core::future::ready(()) => {}
        }
        // What had arrived before belongs to programs that repeat it.
        let mut rest = Vec::with_capacity(DATAGRAM_BYTES_MAX);
        while socket.try_recv_buf_from(&mut rest).is_ok() {
            rest.clear();
        }
        if let Err(error) = accept_again(socket) {
            warn!(%error, "a forward of UDP cannot accept datagrams again");
        }
    }
}

impl<K: Connector> Common<K> {
    /// Serves one program until its association ends.
    async fn serve_source(
        self: &Arc<Self>,
        from: SocketAddr,
        source: &SharedSource<K::Connection>,
        head_bytes: usize,
    ) {
        let common = self.clone();
        let receiver = Arc::new(move |message: Vec<u8>| common.answer(from, &message));
        // What waits leaves right behind the request: a resolver that uses a port per query would pay a round trip for
        // each.
        let on_asked = |outlet: Arc<Outlet<K::Connection>>| {
            let opening = core::mem::replace(&mut *lock(source), Source::Open(outlet.clone()));
            if let Source::Opening { messages, .. } = opening {
                for mut message in messages {
                    let bytes = message.len() - head_bytes;
                    outlet.send(&mut message, bytes);
                }
            }
        };
        let mut association = match self.proxy.associate(true, receiver, on_asked).await {
            Ok(association) => association,
            Err(error) => return self.on_refused(error.code()),
        };
        let _present = self.counters.udp.associations.enter();
        self.proxy.watch(&mut association, |notice| self.on_refused(notice.code)).await;
    }

    /// Refuses all programs if the reason is the target or the server, and not one program's datagram or a limit.
    fn on_refused(&self, code: ReplyCode) {
        if !matches!(code, ReplyCode::GeneralFailure | ReplyCode::TooManyStreams) {
            self.refused.notify_one();
        }
    }

    /// Counts what still waits for an association that there will not be.
    fn count_waiting(&self, source: &SharedSource<K::Connection>) {
        if let Source::Opening { messages, .. } = &mut *lock(source) {
            for _ in messages.drain(..) {
                self.counters.udp.on_dropped(DropReason::Unknown, "there is no association");
            }
        }
    }

    fn answer(&self, to: SocketAddr, message: &[u8]) {
        let udp = &self.counters.udp;
        let Some(Ok((_, data))) = message.get(4..).map(split_datagram) else {
            return udp.on_dropped(DropReason::Malformed, "a message of the server");
        };
        send_answer(&self.socket, data, data.len(), to, udp);
    }
}

/// Connects a socket to itself. Returns false if the system does not.
#[cfg(unix)]
fn is_refusing(socket: &UdpSocket) -> bool {
    let Ok(mut own) = socket.local_addr() else { return false };
    if own.ip().is_unspecified() {
        own.set_ip(match own {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    SockRef::from(socket).connect(&own.into()).is_ok()
}

/// Disconnects a socket.
#[cfg(unix)]
fn accept_again(socket: &UdpSocket) -> io::Result<()> {
    rustix::net::connect_unspec(socket).map_err(Into::into)
}

#[cfg(not(unix))]
fn is_refusing(_: &UdpSocket) -> bool {
    false
}

#[cfg(not(unix))]
fn accept_again(_: &UdpSocket) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::super::listen;
    use super::*;

    async fn program(to: SocketAddr) -> UdpSocket {
        let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        program.connect(to).await.unwrap();
        program
    }

    #[tokio::test]
    async fn a_socket_refuses_datagrams_and_accepts_them_again_on_the_same_port() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let socket = listen(address.parse().unwrap()).unwrap();
            let bound = socket.local_addr().unwrap();
            let mut reached = bound;
            reached.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
            assert!(is_refusing(&socket));
            let refused = program(reached).await;
            refused.send(b"x").await.unwrap();
            assert_eq!(refused.recv(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
            assert!(listen(reached).is_err(), "the port is kept");
            accept_again(&socket).unwrap();
            assert_eq!(socket.local_addr().unwrap(), bound);
            let accepted = program(reached).await;
            accepted.send(b"y").await.unwrap();
            let mut buffer = [0; 2];
            let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..count], from), (&b"y"[..], accepted.local_addr().unwrap()));
            socket.send_to(b"z", from).await.unwrap();
            accepted.recv(&mut buffer).await.unwrap();
        }
    }
}
