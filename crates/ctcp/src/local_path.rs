//! Where a path of a client begins: a local address or a network interface.

use core::fmt;
use core::str::FromStr;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// Where a path of a client begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalPath {
    /// A local address. The system must route packets from this address over the right interface.
    Address(IpAddr),
    /// A network interface by name, with whatever address it has. Only on Linux.
    Interface(String),
}

/// The longest name of an interface on Linux.
const NAME_MAX: usize = 15;

impl FromStr for LocalPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return if address.to_canonical().is_unspecified() {
                Err(format!("{address} is no address of this machine"))
            } else {
                Ok(Self::Address(address.to_canonical()))
            };
        }
        let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(is_name) {
            return Err(format!("`{text}` is neither an address nor the name of an interface"));
        }
        Ok(Self::Interface(text.to_owned()))
    }
}

impl fmt::Display for LocalPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Interface(name) => formatter.write_str(name),
        }
    }
}

impl LocalPath {
    /// The names of the machine's network interfaces; none on systems other than Linux.
    #[must_use]
    pub fn interfaces() -> Vec<String> {
        names()
    }

    /// The address with which packets to `remote` leave this way now.
    ///
    /// # Errors
    /// Returns an error if there is no such address or interface, or if no route leads from it to `remote`.
    pub fn address(&self, remote: SocketAddr) -> io::Result<IpAddr> {
        let socket = match self {
            Self::Address(_) => self.bind(remote)?.into(),
            // A connected socket tells the address that the system would use.
            Self::Interface(_) => self.open(remote)?,
        };
        socket.connect(&remote.into())?;
        let local = socket.local_addr()?.as_socket();
        let address = local.map(|address| address.ip().to_canonical()).ok_or(io::ErrorKind::Unsupported)?;
        match self {
            // Without an address of its own, the system would send with that of another interface.
            Self::Interface(name) if !has_address(name, address)? => {
                let message = format!("{name} has no address for packets to {}", remote.ip());
                Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message))
            }
            _ => Ok(address),
        }
    }

    /// Binds a socket for packets to `remote` that leave this way.
    ///
    /// # Errors
    /// As [`Self::address`].
    pub fn bind(&self, remote: SocketAddr) -> io::Result<UdpSocket> {
        let address = match self {
            Self::Address(address) => *address,
            Self::Interface(_) => self.address(remote)?,
        };
        if address.is_ipv4() != remote.is_ipv4() {
            let message = format!("{self} has no address of the family of {remote}");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let socket = self.open(remote)?;
        socket.bind(&SocketAddr::new(address, 0).into())?;
        Ok(socket.into())
    }

    /// The index of the interface, if there is one of that name. One that is removed and created again has another index.
    #[must_use]
    pub fn interface_index(&self) -> Option<u32> {
        match self {
            Self::Address(_) => None,
            Self::Interface(name) => index_of(name),
        }
    }

    fn open(&self, remote: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(remote), Type::DGRAM, Some(Protocol::UDP))?;
        if let Self::Interface(name) = self {
            bind_device(&socket, name)?;
        }
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &Socket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_: &Socket, name: &str) -> io::Result<()> {
    let message = format!("paths by interface ({name}) need Linux: name the interface's address instead");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

#[cfg(target_os = "linux")]
fn index_of(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

#[cfg(not(target_os = "linux"))]
fn index_of(_: &str) -> Option<u32> {
    None
}

#[cfg(target_os = "linux")]
fn names() -> Vec<String> {
    let all = nix::net::if_::if_nameindex().ok();
    let name = |interface: &nix::net::if_::Interface| interface.name().to_str().ok().map(str::to_owned);
    all.iter().flat_map(|all| all.iter().filter_map(name)).collect()
}

#[cfg(not(target_os = "linux"))]
fn names() -> Vec<String> {
    Vec::new()
}

/// Whether an interface has an address itself.
#[cfg(target_os = "linux")]
fn has_address(name: &str, address: IpAddr) -> io::Result<bool> {
    Ok(nix::ifaddrs::getifaddrs()?.filter(|interface| interface.interface_name == name).any(|interface| {
        let of_interface = interface.address.as_ref();
        let v4 = of_interface.and_then(|own| own.as_sockaddr_in()).map(|own| IpAddr::from(own.ip()));
        let v6 = of_interface.and_then(|own| own.as_sockaddr_in6()).map(|own| IpAddr::from(own.ip()));
        v4.or(v6) == Some(address)
    }))
}

#[cfg(not(target_os = "linux"))]
fn has_address(_: &str, _: IpAddr) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_address_or_an_interface() {
        assert_eq!("192.0.2.1".parse(), Ok(LocalPath::Address("192.0.2.1".parse().unwrap())));
        assert_eq!("::ffff:192.0.2.1".parse(), Ok(LocalPath::Address("192.0.2.1".parse().unwrap())));
        assert_eq!("wlan0".parse(), Ok(LocalPath::Interface("wlan0".to_owned())));
        for wrong in
            ["", "0.0.0.0", "::", "::ffff:0.0.0.0", "a/b", "eth 0", "an-interface-name-that-is-too-long"]
        {
            assert!(wrong.parse::<LocalPath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sockets_are_bound_to_the_address_that_leads_to_the_server() {
        let remote = "127.0.0.1:4433".parse().unwrap();
        let local = |path: LocalPath| path.bind(remote).map(|socket| socket.local_addr().unwrap().ip());
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(local(LocalPath::Address(loopback)).unwrap(), loopback);
        if cfg!(target_os = "linux") {
            assert_eq!(local(LocalPath::Interface("lo".to_owned())).unwrap(), loopback);
            assert!(LocalPath::Interface("lo".to_owned()).interface_index().is_some());
        }
        assert!(local(LocalPath::Address("::1".parse().unwrap())).is_err());
        assert!(local(LocalPath::Address("192.0.2.1".parse().unwrap())).is_err());
        assert!(local(LocalPath::Interface("no-such-one".to_owned())).is_err());
    }

    // The system would bind a socket of `lo` with the address of another interface.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_interface_does_not_borrow_the_address_of_another() {
        let elsewhere = "192.0.2.1:4433".parse().unwrap();
        let borrowed = LocalPath::Interface("lo".to_owned()).address(elsewhere);
        assert!(borrowed.is_err(), "{borrowed:?}");
    }
}
