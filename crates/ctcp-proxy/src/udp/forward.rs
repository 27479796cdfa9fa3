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

mod sources;

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::associations::Outlet;
use super::{BATCH, DATAGRAM_BYTES_MAX, DEADLINE_MAX, PENDING_BYTES_MAX, send_answer};
use crate::address::TargetAddress;
use crate::client::ForwardProxy;
use crate::counters::{Counters, DropReason};
use crate::link::Connector;
use crate::request::{ReplyCode, put_datagram_head, split_datagram};
use sources::{Entry, Shared, Source, Sources};

/// How long a forward refuses: longer than the 5 s after which a resolver repeats its query.
const REFUSAL: Duration = Duration::from_secs(6);

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
    sources: Sources<K::Connection>,
    tasks: JoinSet<Ended<K::Connection>>,
}

/// A program whose association ended.
struct Ended<C> {
    from: SocketAddr,
    shared: Arc<Shared<C>>,
    /// There were too many associations.
    is_limit: bool,
}

impl<K: Connector> ForwardProxy<K> {
    /// Serves a fixed forward of UDP until the future is dropped. See [`crate::udp::listen`] for the socket.
    pub async fn serve_udp_forward(self: &Arc<Self>, socket: UdpSocket, target: TargetAddress) {
        let mut head = Vec::new();
        put_datagram_head(&mut head, 0, &target);
        let counters = self.link().counters().clone();
        let common = Common { proxy: self.clone(), socket, counters, refused: Notify::new() };
        let (sources, tasks) = (Sources::default(), JoinSet::new());
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
                    if let Ok(ended) = ended {
                        self.forget(&ended);
                    }
                }
            }
        }
    }

    fn forget(&mut self, ended: &Ended<K::Connection>) {
        self.common.count_waiting(&ended.shared);
        let entries = &mut self.sources.entries;
        if entries.get(&ended.from).is_some_and(|entry| Arc::ptr_eq(&entry.shared, &ended.shared)) {
            entries.remove(&ended.from);
        }
        if ended.is_limit {
            self.sources.on_limit(Instant::now());
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
        let now = Instant::now();
        if !self.sources.entries.contains_key(&from) && !self.open(from, now) {
            return;
        }
        let Some(entry) = self.sources.entries.get_mut(&from) else { return };
        entry.used = now;
        match &mut *entry.shared.lock() {
            Source::Open(outlet) => outlet.send(message, bytes),
            Source::Opening { messages, bytes: waiting }
                if messages.is_empty() || *waiting + message.len() <= PENDING_BYTES_MAX =>
            {
                *waiting += message.len();
                messages.push((message.to_vec(), now));
            }
            Source::Opening { .. } => {
                self.common.counters.udp.on_dropped(DropReason::Full, "too much waits for an association");
            }
        }
    }

    /// Opens an association for a program. Returns false if there are too many that cannot give way.
    fn open(&mut self, from: SocketAddr, now: Instant) -> bool {
        let Some(removed) = self.sources.make_room(now) else {
            let why = "too many programs wait for their first answer";
            self.common.counters.udp.on_dropped(DropReason::Full, why);
            return false;
        };
        for entry in removed {
            entry.task.abort();
            self.common.count_waiting(&entry.shared);
        }
        let shared = Arc::new(Shared::new());
        let (common, own, head_bytes) = (self.common.clone(), shared.clone(), self.head.len());
        let task = self.tasks.spawn(async move {
            let is_limit = common.serve_source(from, &own, head_bytes).await;
            Ended { from, shared: own, is_limit }
        });
        self.sources.entries.insert(from, Entry { shared, used: now, task });
        true
    }

    /// Lets the system refuse datagrams for a while.
    async fn refuse(&mut self) {
        self.tasks.shutdown().await;
        let sources = core::mem::take(&mut self.sources);
        sources.entries.values().for_each(|entry| self.common.count_waiting(&entry.shared));
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
            self.common.counters.udp.on_dropped(DropReason::Unreachable, "the target was refused");
        }
        if let Err(error) = accept_again(socket) {
            warn!(%error, "a forward of UDP cannot accept datagrams again");
        }
    }
}

impl<K: Connector> Common<K> {
    /// Serves one program until its association ends. Returns whether it got none because there are too many.
    async fn serve_source(
        self: &Arc<Self>,
        from: SocketAddr,
        shared: &Arc<Shared<K::Connection>>,
        head_bytes: usize,
    ) -> bool {
        let (common, answered) = (self.clone(), shared.clone());
        let receiver = Arc::new(move |message: Vec<u8>| {
            answered.on_answer();
            common.answer(from, &message);
        });
        // What waits leaves right behind the request: a resolver that uses a port per query would pay a round trip for
        // each.
        let on_asked = |outlet: Arc<Outlet<K::Connection>>| {
            let opening = core::mem::replace(&mut *shared.lock(), Source::Open(outlet.clone()));
            if let Source::Opening { messages, .. } = opening {
                for (mut message, at) in messages {
                    if at.elapsed() < DEADLINE_MAX {
                        let bytes = message.len() - head_bytes;
                        outlet.send(&mut message, bytes);
                    } else {
                        self.counters.udp.on_dropped(DropReason::Late, "it waited for an association");
                    }
                }
            }
        };
        let mut association = match self.proxy.associate(true, receiver, on_asked).await {
            Ok(association) => association,
            Err(error) => {
                self.on_refused(error.code());
                return error.code() == ReplyCode::TooManyStreams;
            }
        };
        let _present = self.counters.udp.associations.enter();
        self.proxy.watch(&mut association, |notice| self.on_refused(notice.code)).await;
        false
    }

    /// Refuses all programs if the reason is the target or the server, and not one program's datagram or a limit.
    fn on_refused(&self, code: ReplyCode) {
        if !matches!(code, ReplyCode::GeneralFailure | ReplyCode::TooManyStreams) {
            self.refused.notify_one();
        }
    }

    /// Counts what still waits for an association that there will not be.
    fn count_waiting(&self, shared: &Shared<K::Connection>) {
        if let Source::Opening { messages, .. } = &mut *shared.lock() {
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
