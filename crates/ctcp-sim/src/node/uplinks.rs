//! The ports by which a node sends its own datagrams: a host with several links has an address on each.

use core::net::IpAddr;

use super::Port;

/// The ports of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uplinks {
    /// The port of datagrams whose source has none of its own.
    first: Option<Port>,
    /// The ports of further addresses, in the order of the host's interfaces.
    further: Vec<(IpAddr, Port)>,
}

impl Uplinks {
    /// Sets the first port, unless it is known.
    pub(crate) fn set_first(&mut self, port: Port) {
        self.first.get_or_insert(port);
    }

    /// Adds the port of a further address.
    pub(crate) fn add(&mut self, address: IpAddr, port: Port) {
        self.further.push((address, port));
    }

    /// Changes the address of the further interface `number`, counted from 1.
    pub(crate) fn set_address(&mut self, number: usize, address: IpAddr) {
        if let Some((known, _)) = number.checked_sub(1).and_then(|index| self.further.get_mut(index)) {
            *known = address;
        }
    }

    /// Returns the port of datagrams from `source`.
    pub(crate) fn port(&self, source: IpAddr) -> Option<Port> {
        let own = self.further.iter().find(|(address, _)| *address == source).map(|(_, port)| *port);
        own.or(self.first)
    }
}
