//! The kind of TCP socket that a peer needs, and its creation.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::net::sockopt::set_tcp_congestion;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::TestbedError;

/// `IPPROTO_MPTCP` of Linux.
const MPTCP: i32 = 262;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A kind of TCP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketPlan {
    /// The kernel's name of a congestion control; `None` means the machine's default.
    pub congestion: Option<&'static str>,
    /// Multipath TCP.
    pub is_multipath: bool,
}

impl SocketPlan {
    /// Kernel TCP with this congestion control.
    #[must_use]
    pub const fn congestion(name: &'static str) -> Self {
        Self { congestion: Some(name), is_multipath: false }
    }

    /// Listens in the current thread's namespace. With several paths it listens on all addresses, since each path leads
    /// to another one.
    pub(crate) fn listen(self, mut address: SocketAddr) -> Result<Socket, TestbedError> {
        if self.is_multipath {
            address.set_ip(Ipv4Addr::UNSPECIFIED.into());
        }
        let socket = self.socket()?;
        let listening = socket.bind(&address.into()).and_then(|()| socket.listen(BACKLOG));
        listening.map_err(TestbedError::of(format_args!("cannot listen on {address}")))?;
        Ok(socket)
    }

    /// A socket of this kind, neither bound nor connected.
    pub(crate) fn socket(self) -> Result<Socket, TestbedError> {
        let protocol = if self.is_multipath { Protocol::from(MPTCP) } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
        let socket = socket.map_err(TestbedError::of("cannot make a TCP socket"))?;
        if let Some(congestion) = self.congestion {
            set_tcp_congestion(&socket, congestion).map_err(|error| {
                TestbedError::Missing(format!(
                    "this kernel has no congestion control `{congestion}` ({error})"
                ))
            })?;
        }
        Ok(socket)
    }
}

/// Returns true if an error only means a time-out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
