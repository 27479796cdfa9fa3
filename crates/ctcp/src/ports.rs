//! The sockets of an endpoint: one for all connections, and one for each further local address of a client's paths.

use core::future::poll_fn;
use core::task::Poll;
use std::io;
use std::net::IpAddr;

use crate::outbox::Outbox;
use crate::socket::{ReceiveBatch, Socket, Train};

/// Bytes that may wait for one of several sockets. What exceeds them is lost on its path. The congestion window is usually smaller.
const WAITING_MAX: usize = 1 << 20;

/// A socket and the datagrams that wait for it.
struct Port {
    socket: Socket,
    outbox: Outbox,
}

/// All sockets of an endpoint.
pub(crate) struct Ports {
    main: Port,
    /// Those bound to an address of their own.
    others: Vec<(IpAddr, Port)>,
    /// Send from the address that the peer wrote to. A client lets the system choose instead, so that it recovers from a change of the
    /// machine's address.
    keeps_source: bool,
    /// The socket to receive from next, so that a busy one does not starve the others.
    next: usize,
}

impl Port {
    fn new(socket: Socket) -> Self {
        Self { socket, outbox: Outbox::default() }
    }
}

impl Ports {
    pub(crate) fn new(socket: Socket, keeps_source: bool) -> Self {
        Self { main: Port::new(socket), others: Vec::new(), keeps_source, next: 0 }
    }

    /// Replaces the main socket.
    pub(crate) fn replace(&mut self, socket: Socket) {
        self.main.socket = socket;
    }

    /// Adds a socket that is bound to `local`, instead of an earlier one.
    pub(crate) fn add(&mut self, local: IpAddr, socket: Socket) {
        self.remove(local);
        self.others.push((local, Port::new(socket)));
    }

    /// Closes the socket that is bound to `local`.
    pub(crate) fn remove(&mut self, local: IpAddr) {
        self.others.retain(|(address, _)| *address != local);
    }

    /// Bytes that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.iter().map(|port| port.outbox.waiting()).sum()
    }

    /// Whether the sockets have accepted everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.iter().all(|port| port.outbox.is_empty())
    }

    /// Queues a datagram. `head` has its size as segment size, and its source if it matters.
    pub(crate) fn push(&mut self, head: Train, datagram: &[u8]) {
        let has_others = !self.others.is_empty();
        let other =
            self.others.iter_mut().find(|(address, _)| head.source == Some(*address)).map(|(_, port)| port);
        let source = head.source.filter(|_| self.keeps_source && other.is_none());
        let port = other.unwrap_or(&mut self.main);
        if has_others && port.outbox.waiting() + datagram.len() > WAITING_MAX {
            return port.socket.note_dropped();
        }
        let train_length_max = port.socket.train_length_max();
        port.outbox.push(Train { source, ..head }, datagram, train_length_max);
    }

    /// Sends as much as the sockets accept. Returns false if all are full: one full socket does not stop the paths of the others.
    pub(crate) fn flush(&mut self) -> bool {
        let mut has_room = false;
        for port in core::iter::once(&mut self.main).chain(self.others.iter_mut().map(|(_, port)| port)) {
            has_room |= port.outbox.flush(&mut port.socket);
        }
        has_room
    }

    /// Receives the datagrams that wait at one of the sockets. Returns false if there are none at any.
    ///
    /// # Errors
    /// See [`Socket::try_receive`].
    pub(crate) fn try_receive(&mut self, batch: &mut ReceiveBatch) -> io::Result<bool> {
        let count = 1 + self.others.len();
        for _ in 0..count {
            let index = self.next % count;
            self.next = index + 1;
            let port = self.iter().nth(index).unwrap_or(&self.main);
            if port.socket.try_receive(batch)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until a socket is probably readable.
    pub(crate) async fn readable(&self) {
        poll_fn(|context| {
            let is_ready =
                self.iter().filter(|port| port.socket.poll_readable(context).is_ready()).count() > 0;
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits until a socket for which datagrams wait is probably writable.
    pub(crate) async fn writable(&self) {
        poll_fn(|context| {
            let blocked = self.iter().filter(|port| !port.outbox.is_empty());
            let is_ready = blocked.filter(|port| port.socket.poll_writable(context).is_ready()).count() > 0;
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn iter(&self) -> impl Iterator<Item = &Port> {
        core::iter::once(&self.main).chain(self.others.iter().map(|(_, port)| port))
    }
}
