//! The local addresses of a host with several links, one for each. Interface 0 is the host's first address, with which
//! connections begin.
//!
//! ```text
//!   present --remove--> absent: nothing leaves or arrives --restore--> present, at the same or another address
//! ```

use core::net::{IpAddr, SocketAddr};

/// The interfaces of a host. A host with one link has no further ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Interfaces {
    further: Vec<SocketAddr>,
    /// The numbers of the interfaces that have no address now.
    absent: Vec<usize>,
    /// IP addresses that further interfaces had before. Nothing leaves from them.
    former: Vec<IpAddr>,
}

impl Interfaces {
    pub(super) fn add(&mut self, address: SocketAddr) {
        self.further.push(address);
    }

    pub(super) fn are_several(&self) -> bool {
        !self.further.is_empty()
    }

    /// Returns the addresses of the further interfaces, present or not.
    pub(super) fn further(&self) -> &[SocketAddr] {
        &self.further
    }

    /// Sets the address of the further interface `number`, counted from 1. Returns the one before.
    pub(super) fn set_address(&mut self, number: usize, address: SocketAddr) -> Option<SocketAddr> {
        let place = self.further.get_mut(number.checked_sub(1)?)?;
        let before = core::mem::replace(place, address);
        if before.ip() != address.ip() {
            self.former.push(before.ip());
        }
        Some(before)
    }

    /// Sets whether the interface `number` has its address.
    pub(super) fn set_present(&mut self, number: usize, is_present: bool) {
        self.absent.retain(|&absent| absent != number);
        if !is_present {
            self.absent.push(number);
        }
    }

    /// Returns the addresses that the host has now. `first` is that of interface 0.
    pub(super) fn present(&self, first: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        let all = core::iter::once(first).chain(self.further.iter().copied()).enumerate();
        all.filter(|(number, _)| !self.absent.contains(number)).map(|(_, address)| address)
    }

    /// Returns the address from which a datagram leaves, if it can. `wanted` is the local address of its path, `first`
    /// that of interface 0, which also sends what has no address of its own.
    pub(super) fn source(&self, wanted: Option<IpAddr>, first: SocketAddr) -> Option<SocketAddr> {
        let Some(wanted) = wanted.filter(|_| self.are_several()) else {
            return (!self.absent.contains(&0)).then_some(first);
        };
        if self.former.contains(&wanted) {
            return None;
        }
        let number = self.further.iter().position(|address| address.ip() == wanted);
        let (number, address) = number.map_or((0, first), |index| (index + 1, self.further[index]));
        (!self.absent.contains(&number)).then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 1_000))
    }

    #[test]
    fn a_datagram_leaves_from_the_address_of_its_path_while_the_host_has_it() {
        let mut interfaces = Interfaces::default();
        let first = address(1);
        assert_eq!(interfaces.source(None, first), Some(first));
        interfaces.add(address(2));
        assert_eq!(interfaces.source(Some(address(2).ip()), first), Some(address(2)));
        // The host moved: what belongs to its earlier address leaves from the present one.
        assert_eq!(interfaces.source(Some(address(9).ip()), first), Some(first));
        interfaces.set_present(1, false);
        assert_eq!(interfaces.source(Some(address(2).ip()), first), None);
        assert_eq!(interfaces.present(first).collect::<Vec<_>>(), [first]);
        interfaces.set_present(1, true);
        assert_eq!(interfaces.set_address(1, address(3)), Some(address(2)));
        assert_eq!(interfaces.source(Some(address(2).ip()), first), None);
        assert_eq!(interfaces.source(Some(address(3).ip()), first), Some(address(3)));
        interfaces.set_present(0, false);
        assert_eq!(interfaces.source(None, first), None);
        assert_eq!(interfaces.present(first).collect::<Vec<_>>(), [address(3)]);
    }
}
