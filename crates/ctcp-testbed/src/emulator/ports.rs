//! The devices with the ways that begin at them.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_netem::{Change, Hops, LinkStats, Packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::SyncDevice;

use crate::clock::Clock;

/// The most that a device is read before packets that are due get their turn.
const BATCH: usize = 64;

/// Longer than any packet that a device with an MTU of 1500 gives.
const PACKET_MAX: usize = 2_048;

/// A device and what happens to the packets that are read from it.
pub(crate) struct Port {
    pub(crate) device: SyncDevice,
    pub(crate) way: Hops<Vec<u8>>,
}

/// A packet on links that all paths share, which remembers where it was read.
#[derive(Clone, Debug)]
pub(crate) struct Passenger {
    port: usize,
    bytes: Vec<u8>,
}

impl AsRef<[u8]> for Passenger {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Passenger {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Packet for Passenger {}

/// The links that all paths share behind their own: forward and backward.
pub(crate) type Shared = [Hops<Passenger>; 2];

/// Ports in pairs: what is read from one of a pair is written to the other.
///
/// ```text
///   port 0 -> its way -+                    +-> port 1
///                      +-> [ shared way ] --+              (each way's packets go to their ports at once without one)
///   port 2 -> its way -+                    +-> port 3
/// ```
pub(super) struct Ports {
    ports: Vec<Port>,
    shared: Option<Shared>,
    clock: Clock,
    buffer: Vec<u8>,
}

impl Ports {
    pub(super) fn new(ports: Vec<Port>, shared: Option<Shared>, clock: Clock) -> Self {
        assert!(ports.len().is_multiple_of(2), "every way has two ends");
        Self { ports, shared, clock, buffer: vec![0; PACKET_MAX] }
    }

    /// Until a device has a packet or one is due, or for `most`.
    pub(super) fn wait(&self, most: Duration) {
        let own = self.ports.iter().filter_map(|port| port.way.poll_timeout());
        let shared = self.shared.iter().flatten().filter_map(Hops::poll_timeout);
        let next = own.chain(shared).min();
        let rest = next.map_or(most, |next| next.saturating_since(self.clock.now()).min(most));
        let timeout = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) };
        let mut fds: Vec<PollFd<'_>> =
            self.ports.iter().map(|port| PollFd::new(&port.device, PollFlags::IN)).collect();
        // An interrupted wait is only a short one.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Reads what there is.
    pub(super) fn read(&mut self) {
        for port in &mut self.ports {
            for _ in 0..BATCH {
                // Nothing there, or a device that is going down.
                let Ok(length) = port.device.recv(&mut self.buffer) else { break };
                port.way.handle_packet(self.clock.now(), self.buffer[..length].to_vec());
            }
        }
    }

    /// Writes what is due and says of each how late it is; returns how many a device did not take.
    pub(super) fn deliver(&mut self, mut on_delivery: impl FnMut(Duration)) -> u64 {
        let mut refused = 0;
        if let Some(shared) = &mut self.shared {
            for (way, link) in shared.iter_mut().enumerate() {
                // The same instant for both, so that no packet boards earlier than one that has left.
                let now = self.clock.now();
                board(&mut self.ports, way, link, now);
                while let Some((due, Passenger { port, bytes })) = link.poll_delivery(now) {
                    on_delivery(self.clock.now().saturating_since(due));
                    refused += u64::from(self.ports[port ^ 1].device.send(&bytes).is_err());
                }
            }
            return refused;
        }
        for index in 0..self.ports.len() {
            let now = self.clock.now();
            while let Some((due, packet)) = self.ports[index].way.poll_delivery(now) {
                on_delivery(self.clock.now().saturating_since(due));
                // The two of a pair differ in their last bit.
                refused += u64::from(self.ports[index ^ 1].device.send(&packet).is_err());
            }
        }
        refused
    }

    /// Changes the links of one path, or of all.
    pub(super) fn apply(&mut self, path: Option<usize>, change: &Change) {
        let now = self.clock.now();
        let ports = match path {
            Some(path) => &mut self.ports[2 * path..2 * path + 2],
            None => {
                self.shared.iter_mut().flatten().for_each(|link| link.apply(now, change));
                &mut self.ports
            }
        };
        for port in ports {
            port.way.apply(now, change);
        }
    }

    pub(super) fn write_stats(&self, ways: &mut Vec<Vec<LinkStats>>) {
        ways.resize(self.ports.len(), Vec::new());
        for (port, stats) in self.ports.iter().zip(ways) {
            stats.clear();
            stats.extend(port.way.stats());
        }
    }
}

/// Moves the packets that have left their own ways by `now` to the link that these share, in the order in which they left.
fn board(ports: &mut [Port], way: usize, link: &mut Hops<Passenger>, now: Instant) {
    let mut boarding = Vec::new();
    for (port, from) in ports.iter_mut().enumerate().skip(way).step_by(2) {
        while let Some((due, bytes)) = from.way.poll_delivery(now) {
            boarding.push((due, Passenger { port, bytes }));
        }
    }
    boarding.sort_by_key(|(due, _)| *due);
    for (due, passenger) in boarding {
        link.handle_packet(due, passenger);
    }
}
