//! A router: sends each datagram on by its destination. It knows nothing but its routes, and re-encodes the flows that it was told to.

use core::net::{IpAddr, SocketAddr};

use ctcp_baselines::symbolic::SymbolicRecoder;

use super::{Datagram, Port};

/// A router in a simulation. It takes no time and has no queue: those are the links'.
#[derive(Debug)]
pub struct Router {
    name: String,
    /// Sorted by address.
    routes: Vec<(u128, Port)>,
    /// By the destination of what they re-encode.
    recoders: Vec<(SocketAddr, SymbolicRecoder)>,
    counts: RouterCounts,
}

/// What happened at a router, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounts {
    /// Datagrams sent on.
    pub forwarded: u64,
    /// Datagrams for an address to which no route leads; they are dropped.
    pub unroutable: u64,
    /// Datagrams that this node made, re-encoding.
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

    /// Its name in the trace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Figures of the router.
    #[must_use]
    pub fn counts(&self) -> RouterCounts {
        self.counts
    }

    /// What is for `address` leaves by `port` from now on.
    pub(crate) fn set_route(&mut self, address: IpAddr, port: Port) {
        let address = number(address);
        match self.routes.binary_search_by_key(&address, |(known, _)| *known) {
            Ok(place) => self.routes[place].1 = port,
            Err(place) => self.routes.insert(place, (address, port)),
        }
    }

    /// What is for `destination` is re-encoded from now on.
    pub(crate) fn recode(&mut self, destination: SocketAddr, recoder: SymbolicRecoder) {
        self.recoders.push((destination, recoder));
    }

    /// What leaves behind a datagram that is sent on: combinations of what came to this node before.
    pub(crate) fn combinations(&mut self, datagram: &Datagram) -> Vec<Datagram> {
        let is_its = |(destination, _): &&mut (SocketAddr, _)| *destination == datagram.destination;
        let Some((_, recoder)) = self.recoders.iter_mut().find(is_its) else { return Vec::new() };
        let made = recoder.on_datagram(&datagram.bytes);
        self.counts.recoded += made.len() as u64;
        let (source, destination) = (datagram.source, datagram.destination);
        made.into_iter().map(|bytes| Datagram { source, destination, ecn: None, bytes }).collect()
    }

    /// The port for `address`.
    pub(crate) fn route(&self, address: IpAddr) -> Option<Port> {
        let place = self.routes.binary_search_by_key(&number(address), |(known, _)| *known).ok()?;
        Some(self.routes[place].1)
    }

    /// Where a datagram for `address` goes; it is counted.
    pub(crate) fn forward(&mut self, address: IpAddr) -> Option<Port> {
        let port = self.route(address);
        match port {
            Some(_) => self.counts.forwarded += 1,
            None => self.counts.unroutable += 1,
        }
        port
    }
}

/// Both families in one space, where a comparison is a single one.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}
