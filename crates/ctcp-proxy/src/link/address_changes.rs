//! Notices when the addresses, interfaces or routes of this machine change.

#[cfg(target_os = "linux")]
pub(super) use linux::AddressChanges;
#[cfg(not(target_os = "linux"))]
pub(super) use other::AddressChanges;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
    use tokio::io::unix::AsyncFd;
    use tracing::debug;

    /// The groups RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR and _IPV6_ROUTE of rtnetlink(7).
    const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

    /// The kernel's notifications (rtnetlink). Their contents do not matter: the addresses are read anew.
    #[derive(Debug)]
    pub(crate) struct AddressChanges(Option<AsyncFd<OwnedFd>>);

    impl AddressChanges {
        /// Without a socket there are no notifications.
        pub(crate) fn new() -> Self {
            let fd = open().inspect_err(|error| debug!(%error, "no notifications of address changes"));
            Self(fd.ok())
        }

        /// Waits for a change.
        pub(crate) async fn changed(&self) {
            let Some(fd) = &self.0 else { return core::future::pending().await };
            let Ok(mut ready) = fd.readable().await else { return core::future::pending().await };
            let mut buffer = [0; 8192];
            // An error that notifications were lost is a notification as well.
            while recv(fd, &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {}
            ready.clear_ready();
        }
    }

    #[expect(
        deprecated,
        reason = "an OwnedFd stays open as long as it is registered; the new function is unsafe code"
    )]
    fn open() -> io::Result<AsyncFd<OwnedFd>> {
        // Protocol 0 is NETLINK_ROUTE.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&fd, &SocketAddrNetlink::new(0, GROUPS))?;
        AsyncFd::new(fd)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// No notifications.
    #[derive(Debug)]
    pub(crate) struct AddressChanges;

    impl AddressChanges {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) async fn changed(&self) {
            core::future::pending().await
        }
    }
}
