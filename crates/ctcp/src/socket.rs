//! The UDP socket: batched receive and send with segmentation offload, ECN and local addresses through quinn-udp. Every
//! error that a network can cause is treated as a lost datagram.
//!
//! On Linux quinn-udp 0.6.3 loses the ECN codepoint of most datagrams on receipt, so `receive` does it there.
//!
//! One IPv6 socket serves both families if the system supports it. Inside the library an IPv4 peer always has an IPv4
//! address; the mapped form (`::ffff:a.b.c.d`) exists in this file only.

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use std::io;
#[cfg(not(target_os = "linux"))]
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdUdpSocket};
use std::sync::Arc;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit as Segments, UdpSocketState};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use ctcp_proto::Ecn;

#[cfg(target_os = "linux")]
mod receive;

/// The kernel buffers requested, in bytes each way: 50 ms at 600 Mbit/s while the driver is not running. The system may
/// grant less, which is not an error.
const BUFFER_SIZE: usize = 4 << 20;

/// The number of buffers in a receive batch, filled by one system call. Each holds a whole offloaded train of
/// datagrams.
const BATCH: usize = if quinn_udp::BATCH_SIZE < 8 { quinn_udp::BATCH_SIZE } else { 8 };

/// The size of a buffer. It takes the largest UDP payload, so no datagram is truncated.
const DATAGRAMS_SIZE: usize = 1 << 16;

/// Counters of the socket, shared with the handles.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    sent: AtomicU64,
    send_calls: AtomicU64,
    send_errors: AtomicU64,
    received: AtomicU64,
    receive_errors: AtomicU64,
}

/// Counters of an endpoint's socket since the endpoint was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Datagrams handed to the operating system.
    pub sent: u64,
    /// System calls for sending: fewer than [`Self::sent`] if the system splits trains of datagrams.
    pub send_calls: u64,
    /// Datagrams that the operating system refused (no route, firewall, full queue), or that were dropped because too many waited for one of
    /// several sockets. They count as lost.
    pub send_errors: u64,
    /// Datagrams received.
    pub received: u64,
    /// Errors while receiving. None of them ends the endpoint or a connection.
    pub receive_errors: u64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> SocketStats {
        SocketStats {
            sent: self.sent.load(Ordering::Relaxed),
            send_calls: self.send_calls.load(Ordering::Relaxed),
            send_errors: self.send_errors.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            receive_errors: self.receive_errors.load(Ordering::Relaxed),
        }
    }
}

fn count(counter: &AtomicU64, number: usize) {
    counter.fetch_add(number as u64, Ordering::Relaxed);
}

/// A train of datagrams to one destination. All have `segment_size` bytes except the last, which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Train {
    pub(crate) destination: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) segment_size: usize,
}

/// The buffers of received datagrams.
pub(crate) struct ReceiveBatch {
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; BATCH],
    filled: usize,
}

/// Datagrams that arrived together from one peer.
pub(crate) struct Received<'a> {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Option<Ecn>,
    /// Wall clock time at which the kernel received them, since the Unix epoch.
    pub(crate) stamp: Option<core::time::Duration>,
    /// The datagrams, each of `segment_size` bytes except the last.
    pub(crate) bytes: &'a mut [u8],
    pub(crate) segment_size: usize,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        Self {
            buffers: (0..BATCH).map(|_| vec![0; DATAGRAMS_SIZE]).collect(),
            metas: [RecvMeta::default(); BATCH],
            filled: 0,
        }
    }

    /// The datagrams of the last receive call.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = Received<'_>> {
        let metas = self.metas.iter().take(self.filled);
        self.buffers.iter_mut().zip(metas).filter_map(|(buffer, meta)| {
            Some(Received {
                remote: to_canonical(meta.addr),
                local: meta.dst_ip.map(|address| address.to_canonical()),
                ecn: meta.ecn.map(from_codepoint),
                stamp: meta.timestamp,
                bytes: buffer.get_mut(..meta.len)?,
                segment_size: meta.stride.max(1),
            })
        })
    }
}

/// An open socket with the state of its offload.
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    is_ipv6: bool,
    /// The longest train that quinn-udp offered initially.
    offload_max: usize,
    /// False after the system refused a train and accepted its datagrams one by one.
    has_offload: bool,
    counters: Arc<Counters>,
}

impl Socket {
    /// Uses a socket from [`bind`].
    pub(crate) fn new(socket: StdUdpSocket, counters: Arc<Counters>) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        enlarge_buffers(&state, &socket);
        let offload_max = state.max_gso_segments();
        let is_ipv6 = socket.local_addr()?.is_ipv6();
        Ok(Self {
            io: UdpSocket::from_std(socket)?,
            state,
            is_ipv6,
            offload_max,
            has_offload: true,
            counters,
        })
    }

    /// Whether the socket is probably readable. The task is woken when it becomes so.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        // An error means that the runtime is shutting down, and this task with it.
        self.io.poll_recv_ready(context).map(drop)
    }

    /// Whether the socket is probably writable. The task is woken when it becomes so.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_send_ready(context).map(drop)
    }

    /// Receives the datagrams that wait. Returns false if there are none.
    ///
    /// # Errors
    /// Returns a transient error, such as an ICMP message for an earlier datagram. It is counted already.
    pub(crate) fn try_receive(&self, batch: &mut ReceiveBatch) -> io::Result<bool> {
        let ReceiveBatch { buffers, metas, filled } = batch;
        *filled = 0;
        let result = self.io.try_io(Interest::READABLE, || {
            #[cfg(target_os = "linux")]
            return receive::receive(&self.io, buffers, metas);
            #[cfg(not(target_os = "linux"))]
            {
                let mut slices = Vec::with_capacity(BATCH);
                slices.extend(buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)));
                self.state.recv((&self.io).into(), &mut slices, metas)
            }
        });
        match result {
            Ok(number) => {
                *filled = number;
                let segments = metas.iter().take(number).map(|meta| meta.len.div_ceil(meta.stride.max(1)));
                count(&self.counters.received, segments.sum());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => {
                count(&self.counters.receive_errors, 1);
                Err(error)
            }
        }
    }

    /// The longest train worth building, in datagrams.
    pub(crate) fn train_length_max(&self) -> usize {
        if self.has_offload { self.state.max_gso_segments().max(1) } else { 1 }
    }

    /// Sends a train. Returns false if the socket is full: try again when it is writable. Other failures are
    /// counted and treated as loss: the protocol repairs it, or times out if it cannot.
    pub(crate) fn try_send(&mut self, train: &Train, bytes: &[u8]) -> bool {
        match self.send_segments(train, train.source, bytes) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                self.send_one_by_one(train, bytes);
                true
            }
        }
    }

    /// The second try after the system refused a train: its driver may have no segmentation offload, or the source
    /// address is gone because the machine moved to another network.
    fn send_one_by_one(&mut self, train: &Train, bytes: &[u8]) {
        let is_train = bytes.len() > train.segment_size;
        for datagram in bytes.chunks(train.segment_size.max(1)) {
            self.restore_offload();
            let mut result = self.send_segments(train, train.source, datagram);
            if result.is_ok() && is_train {
                self.has_offload = false;
            }
            if result.is_err() && train.source.is_some() {
                self.restore_offload();
                result = self.send_segments(train, None, datagram);
            }
            if let Err(error) = result {
                count(&self.counters.send_errors, 1);
                tracing::trace!(destination = %train.destination, %error, "datagram refused by the system");
            }
        }
        self.restore_offload();
    }

    /// quinn-udp reads any invalid-argument error as missing offload *and* missing ECN, and disables both for good. A
    /// source address that is gone causes the same error, so we create a fresh state and decide ourselves.
    /// Counts a datagram that is dropped because too many wait for the operating system to take them.
    pub(crate) fn note_dropped(&self) {
        count(&self.counters.send_errors, 1);
    }

    fn restore_offload(&mut self) {
        if self.state.max_gso_segments() < self.offload_max
            && let Ok(state) = UdpSocketState::new((&self.io).into())
        {
            self.state = state;
        }
    }

    fn send_segments(&self, train: &Train, source: Option<IpAddr>, contents: &[u8]) -> io::Result<()> {
        let segments = Segments {
            destination: self.to_socket_family(train.destination),
            ecn: train.ecn.and_then(to_codepoint),
            contents,
            segment_size: Some(train.segment_size).filter(|&size| size < contents.len()),
            src_ip: source,
        };
        count(&self.counters.send_calls, 1);
        self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), &segments))?;
        count(&self.counters.sent, contents.len().div_ceil(train.segment_size.max(1)));
        Ok(())
    }

    fn to_socket_family(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.is_ipv6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
            other => other,
        }
    }
}

/// Binds a socket for [`Socket::new`]. `None` means any address, of both families if possible.
pub(crate) fn bind(address: Option<SocketAddr>) -> io::Result<StdUdpSocket> {
    match address {
        Some(address) => bind_to(address),
        None => bind_to(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0))
            .or_else(|_no_ipv6| bind_to(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0))),
    }
}

fn bind_to(address: SocketAddr) -> io::Result<StdUdpSocket> {
    let socket = RawSocket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Systems that cannot share a socket between families return an error here; then it is IPv6 only.
        let _ = socket.set_only_v6(false);
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Returns true if a socket bound to `local` can send to `remote`.
pub(crate) fn can_reach(local: SocketAddr, remote: SocketAddr) -> bool {
    match (local, remote) {
        (SocketAddr::V4(_), SocketAddr::V6(v6)) => v6.ip().to_ipv4_mapped().is_some(),
        (SocketAddr::V6(v6), SocketAddr::V4(_)) => v6.ip().is_unspecified(),
        _ => true,
    }
}

fn enlarge_buffers(state: &UdpSocketState, socket: &StdUdpSocket) {
    // Best effort: an unprivileged process gets what the system's limits allow.
    if state.recv_buffer_size(socket.into()).is_ok_and(|size| size < BUFFER_SIZE) {
        let _ = state.set_recv_buffer_size(socket.into(), BUFFER_SIZE);
    }
    if state.send_buffer_size(socket.into()).is_ok_and(|size| size < BUFFER_SIZE) {
        let _ = state.set_send_buffer_size(socket.into(), BUFFER_SIZE);
    }
}

/// Converts an IPv4-mapped address to its IPv4 form.
fn to_canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

fn from_codepoint(codepoint: EcnCodepoint) -> Ecn {
    match codepoint {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

#[cfg(test)]
mod tests;
