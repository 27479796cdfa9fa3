//! Receiving on Linux, like quinn-udp's `recv` but with room for all control messages of a datagram.
//!
//! quinn-udp 0.6.3 reserves 88 bytes for them. The ECN codepoint comes last and does not fit if the system joined
//! datagrams or if the socket serves both families:
//!
//! ```text
//!              timestamp  joined  addresses  codepoint   sum
//!   IPv4           32       24       32         24       112 (88 when not joined)
//!   both           32       24       40         24       120 (96 when not joined)
//! ```

use core::time::Duration;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg};
use nix::sys::time::TimeSpec;
use quinn_udp::{EcnCodepoint, RecvMeta};

/// Receives the datagrams that wait: one datagram or one train per buffer. Returns the number of filled buffers.
///
/// # Errors
/// Returns [`io::ErrorKind::WouldBlock`] if nothing waits, and the system's errors.
pub(super) fn receive(
    socket: &impl AsRawFd,
    buffers: &mut [Vec<u8>],
    metas: &mut [RecvMeta],
) -> io::Result<usize> {
    // Created anew for each call: the kernel overwrites the lengths in the headers, and nix does not restore them. The
    // room is for the timestamp, the size of joined datagrams, and addresses and codepoint in both forms.
    let control = nix::cmsg_space!(TimeSpec, i32, in_pktinfo, in6_pktinfo, i32, i32);
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(metas.len(), Some(control));
    let mut slices: Vec<[IoSliceMut<'_>; 1]> =
        buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
    let flags = MsgFlags::MSG_DONTWAIT;
    let messages = match recvmmsg(socket.as_raw_fd(), &mut headers, &mut slices, flags, None) {
        // Nothing was received; the caller tries again as after a spurious wake-up.
        Err(Errno::EINTR) => return Ok(0),
        other => other?,
    };
    let mut filled = 0;
    for (message, meta) in messages.zip(metas) {
        *meta = decode(&message);
        filled += 1;
    }
    Ok(filled)
}

fn decode(message: &RecvMsg<'_, '_, SockaddrStorage>) -> RecvMeta {
    let mut meta = RecvMeta::default();
    (meta.len, meta.stride) = (message.bytes, message.bytes);
    if let Some(address) = message.address.and_then(socket_address) {
        meta.addr = address;
    }
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::ScmTimestampns(time) => {
                let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
                meta.timestamp = Some(Duration::new(seconds, u32::try_from(time.tv_nsec()).unwrap_or(0)));
            }
            ControlMessageOwned::UdpGroSegments(size) => {
                meta.stride = usize::try_from(size).unwrap_or(message.bytes);
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes());
                meta.dst_ip = Some(IpAddr::V4(address));
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                meta.dst_ip = Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)));
            }
            ControlMessageOwned::Ipv4Tos(bits) => meta.ecn = EcnCodepoint::from_bits(bits),
            ControlMessageOwned::Ipv6TClass(bits) => {
                meta.ecn = EcnCodepoint::from_bits(bits.to_le_bytes()[0]);
            }
            _ => {}
        }
    }
    meta
}

fn socket_address(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}
