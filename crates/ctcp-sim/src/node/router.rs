//! A router forwards each datagram by its destination. It has only routes and the recoders of flows to re-encode.

use core::net::{IpAddr, SocketAddr};

use ctcp_baselines::symbolic::SymbolicRecoder;

use super::{Datagram, Port};

/// A router in a simulation. It has no delay and no queue; those belong to the links.
#[derive(Debug)]
pub struct Router {
    name: String,
    /// Sorted by address.
    routes: Vec<(u128, Port)>,
    /// By the destination of the flow to re-encode.
    recoders: Vec<(SocketAddr, SymbolicRecoder)>,
    counts: RouterCounts,
}

/// Counters of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounts {
    /// Datagrams forwarded.
    pub forwarded: u64,
    /// Datagrams dropped because there is no route to their address.
    pub unroutable: u64,
    /// Datagrams created by re-encoding.
    pub recoded: u64,
}

impl Router {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            routes: Vec::new(),
            recoders: Vec::new(),
            counts: RouterCounts::default(),
        }
    }

    /// Returns the name in the trace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the counters of the router.
    #[must_use]
    pub fn counts(&self) -> RouterCounts {
        self.counts
    }

    /// Routes datagrams for `address` to `port` from now on.
    pub(crate) fn set_route(&mut self, address: IpAddr, port: Port) {
        let address = number(address);
        match self.routes.binary_search_by_key(&address, |(known, _)| *known) {
            Ok(place) => self.routes[place].1 = port,
            Err(place) => self.routes.insert(place, (address, port)),
        }
    }

    /// Re-encodes datagrams for `destination` from now on.
    pub(crate) fn recode(&mut self, destination: SocketAddr, recoder: SymbolicRecoder) {
        self.recoders.push((destination, recoder));
    }

    /// Returns the datagrams to send after a forwarded one: combinations of what this node has received before.
    pub(crate) fn combinations(&mut self, datagram: &Datagram) -> Vec<Datagram> {
        let is_its = |(destination, _): &&mut (SocketAddr, _)| *destination == datagram.destination;
        let Some((_, recoder)) = self.recoders.iter_mut().find(is_its) else { return Vec::new() };
        let made = recoder.on_datagram(&datagram.bytes);
        self.counts.recoded += made.len() as u64;
        let (source, destination) = (datagram.source, datagram.destination);
        made.into_iter().map(|bytes| Datagram { source, destination, ecn: None, bytes }).collect()
    }

    /// Returns the port for `address`.
    pub(crate) fn route(&self, address: IpAddr) -> Option<Port> {
        let place = self.routes.binary_search_by_key(&number(address), |(known, _)| *known).ok()?;
        Some(self.routes[place].1)
    }

    /// Returns the port for a datagram to `address`, and counts the datagram.
    pub(crate) fn forward(&mut self, address: IpAddr) -> Option<Port> {
        let port = self.route(address);
        match port {
            Some(_) => self.counts.forwarded += 1,
            None => self.counts.unroutable += 1,
        }
        port
    }
}

/// Maps both address families to one space, in which a comparison is a single operation.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}
