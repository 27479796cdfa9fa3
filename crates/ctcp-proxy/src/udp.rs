//! UDP through the proxies: associations, whose datagrams travel as messages of the coded connection.
//!
//! ```text
//!  program --UDP--> relay (SOCKS5) --+                                       +--> socket of the association
//!                                    +--> Outlet ==message==> Router --------+    policy, targets  --UDP--> target
//!  program --UDP--> forward ---------+                                       |
//!          <----------------------------- Router <==message== answers <------+
//! ```
//!
//! An association is a stream. Its request names the association, its reply says what is granted, notices on it say why
//! datagrams were dropped, and its end on either side ends the association. Datagrams may be lost, delayed and
//! reordered, as UDP allows, but are never cut or duplicated.
//!
//! No queue of datagrams is kept per association: a message is sent on in the call that delivers it. Only datagrams
//! that wait for a name or for a new association are stored, up to `PENDING_BYTES_MAX`.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};
use std::sync::{Mutex, PoisonError};

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::coded::CodedConnection;
use crate::counters::{DropReason, UdpCounters};

mod association;
pub(crate) mod associations;
mod forward;
mod names;
mod rate;
mod relay;
mod router;
pub(crate) mod service;
mod targets;

pub(crate) use router::Router;

/// Space for any UDP datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// How many datagrams of one socket are handled before other tasks get their turn.
const BATCH: usize = 64;

/// The bytes of datagrams that wait for a name, or for the association of a forward: one of the largest.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// A datagram is worthless after this time: a voice that is half a second late is not played, and a resolver or a QUIC
/// connection is about to repeat it. It is long enough for a queue and a repair on most paths.
const DEADLINE: Duration = Duration::from_millis(500);

/// The longest deadline, on paths with a long round trip: enough for a repair over a satellite.
const DEADLINE_MAX: Duration = Duration::from_secs(2);

/// How long a measured round-trip time is used.
const DEADLINE_AGE: Duration = Duration::from_secs(1);

/// An association without datagrams ends after this time, as RFC 4787 section 4.3 recommends for address translation.
pub const IDLE: Duration = Duration::from_secs(300);

/// Associations of a server. Each has a socket per family.
pub const ASSOCIATIONS_MAX: usize = 4096;

/// Associations of one client: a resolver that uses a port per query has tens, a busy household hundreds.
pub const ASSOCIATIONS_PER_CLIENT_MAX: usize = 512;

/// Limits of UDP at a server.
#[derive(Clone, Copy, Debug)]
pub struct UdpLimits {
    /// Simultaneous associations in total.
    pub associations: usize,
    /// Simultaneous associations of one client (one public key), over all its connections.
    pub associations_per_client: usize,
    /// Targets of one association. A further one replaces the one that was idle longest.
    pub targets: usize,
    /// Datagrams per second of one client, in each direction.
    pub datagrams_per_second: u32,
    /// Bytes per second of one client, in each direction.
    pub bytes_per_second: u32,
    /// An association without datagrams ends after this time.
    pub idle: Duration,
    /// Whether clients may ask for answers from addresses that they have not contacted.
    pub full_cone: bool,
}

impl Default for UdpLimits {
    fn default() -> Self {
        Self {
            associations: ASSOCIATIONS_MAX,
            associations_per_client: ASSOCIATIONS_PER_CLIENT_MAX,
            targets: 256,
            datagrams_per_second: 20_000,
            bytes_per_second: 50_000_000,
            idle: IDLE,
            full_cone: false,
        }
    }
}

impl UdpLimits {
    /// Returns the default limits, lowered to a sixteenth of this limit of open files. One client may use half of it.
    #[must_use]
    pub(crate) fn for_open_files(open_files: usize) -> Self {
        let associations = ASSOCIATIONS_MAX.min(open_files / 16);
        let associations_per_client = ASSOCIATIONS_PER_CLIENT_MAX.min(associations / 2);
        Self { associations, associations_per_client, ..Self::default() }
    }
}

/// How a forward proxy serves UDP.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpOptions {
    /// The address that programs are told to send to, instead of the one that they reached with TCP. For a proxy behind
    /// address translation.
    pub advertise: Option<IpAddr>,
    /// Ask the server for answers from addresses that were not contacted.
    pub full_cone: bool,
}

/// The deadline of messages, which follows the round-trip time.
#[derive(Debug, Default)]
struct Deadline(Mutex<Option<(Instant, Duration)>>);

impl Deadline {
    /// Two round trips, so that a loss can be reported and repaired, within [`DEADLINE`] and [`DEADLINE_MAX`].
    fn of(&self, connection: &impl CodedConnection) -> Duration {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            Some((at, deadline)) if at.elapsed() < DEADLINE_AGE => deadline,
            _ => {
                let deadline = (2 * connection.health().rtt).clamp(DEADLINE, DEADLINE_MAX);
                *state = Some((Instant::now(), deadline));
                deadline
            }
        }
    }
}

/// Binds a UDP socket for a fixed forward.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bind(address)?;
    if address.port() != 0 {
        return Ok(socket);
    }
    // Linux forgets a port of its own choice when a connected socket is disconnected, which refusals do.
    let chosen = socket.local_addr()?;
    drop(socket);
    bind(chosen)
}

/// Binds a UDP socket that serves one address family only.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub(crate) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, Some(socket2::Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(StdSocket::from(socket))
}

/// An address as programs and policies know it: without the scope of IPv6, and IPv4 inside IPv6 as IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Sends an answer to a program; `bytes` of it are the target's.
fn send_answer(socket: &UdpSocket, answer: &[u8], bytes: usize, program: SocketAddr, udp: &UdpCounters) {
    match SockRef::from(socket).send_to(answer, &program.into()) {
        Ok(_) => udp.on_downstream(bytes),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            udp.on_dropped(DropReason::Full, "the socket's buffer is full");
        }
        Err(error) if is_too_long(&error) => {
            udp.on_dropped(DropReason::TooLong, format_args!("an answer of {bytes} bytes"));
        }
        Err(error) => udp.on_dropped(DropReason::Unreachable, format_args!("{program}: {error}")),
    }
}

/// Returns true if no such datagram can be sent.
fn is_too_long(error: &io::Error) -> bool {
    #[cfg(unix)]
    const TOO_LONG: i32 = rustix::io::Errno::MSGSIZE.raw_os_error();
    #[cfg(not(unix))]
    const TOO_LONG: i32 = 10040; // WSAEMSGSIZE
    error.raw_os_error() == Some(TOO_LONG)
}

#[cfg(test)]
mod tests;
