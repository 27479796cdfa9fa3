//! Transports datagrams from node to node.
//!
//! ```text
//!   host --send--> port ----> link ..time.. deliver --> arrive: a host handles it
//!                   ^   \                                 |
//!                   |    +--> wire --> arrive             +--> a router: forward, to the next port
//!                   +------------------------------------------+
//! ```
//!
//! Only links take time. A host always finishes before the next datagram arrives by wire.

use super::{Actor, Simulation, way_number};
use crate::link::{Direction, LinkId};
use crate::node::host::World;
use crate::node::{Datagram, Host, Node, NodeId, Port};
use crate::recorder::Tap;

impl Simulation {
    /// Delivers the datagrams that are due on a link.
    pub(super) fn deliver(&mut self, id: LinkId, direction: Direction) {
        while let Some(datagram) = self.links[id.0].way_mut(direction).poll_delivery(self.now) {
            let link = &self.links[id.0];
            let (receiver, name) = (link.receiver(direction), link.way(direction).name());
            let tap = (Tap::Delivered, way_number(id, direction));
            self.recorder.on_datagram(self.now, tap, name, &datagram.bytes);
            self.arrive(receiver, datagram);
            self.let_arrive();
            if self.links[id.0].way(direction).poll_timeout().is_none_or(|next| next > self.now) {
                return;
            }
        }
    }

    /// Runs a host, and transports what it sends.
    pub(super) fn with_host<T>(&mut self, id: NodeId, act: impl FnOnce(&mut Host, &mut World<'_>) -> T) -> T {
        let result = self.act(id, act);
        self.let_arrive();
        result
    }

    fn act<T>(&mut self, id: NodeId, act: impl FnOnce(&mut Host, &mut World<'_>) -> T) -> T {
        let Node::Host(host) = &mut self.nodes[id.0] else { panic!("node {} is not a host", id.0) };
        let mut world = World {
            now: self.now,
            ledger: &mut self.ledger,
            checker: &mut self.checker,
            outbox: &mut self.outbox,
            spare: &mut self.spare,
            scratch: &mut self.scratch,
        };
        let result = act(host, &mut world);
        let mut outbox = core::mem::take(&mut self.outbox);
        for datagram in outbox.drain(..) {
            if let Some(port) = self.uplinks[id.0].port(datagram.source.ip()) {
                self.send(port, datagram);
            }
        }
        self.outbox = outbox;
        self.reschedule(Actor::Node(id));
        result
    }

    /// Handles a datagram that has arrived at a node.
    fn arrive(&mut self, id: NodeId, datagram: Datagram) {
        match &mut self.nodes[id.0] {
            Node::Host(_) => self.act(id, |host, world| host.handle_datagram(datagram, world)),
            Node::Router(router) => {
                let Some(port) = router.forward(datagram.destination.ip()) else { return };
                let behind = router.combinations(&datagram);
                self.send(port, datagram);
                for combination in behind {
                    self.send(port, combination);
                }
            }
        }
    }

    /// Delivers the datagrams that were sent by wire meanwhile, and those that follow from them.
    fn let_arrive(&mut self) {
        while let Some((id, datagram)) = self.arrivals.pop_front() {
            self.arrive(id, datagram);
        }
    }

    fn send(&mut self, port: Port, datagram: Datagram) {
        let (link, direction) = match port {
            Port::Link(link, direction) => (link, direction),
            Port::Wire(node) => {
                self.arrivals.push_back((node, datagram));
                return;
            }
        };
        let duplex = &mut self.links[link.0];
        let added = duplex.mischief.as_mut().and_then(|mischief| mischief.on_datagram(&datagram));
        let way = duplex.way_mut(direction);
        let tap = (Tap::Sent, way_number(link, direction));
        self.recorder.on_datagram(self.now, tap, way.name(), &datagram.bytes);
        way.handle_packet(self.now, datagram);
        if let Some(added) = added {
            self.recorder.on_datagram(self.now, tap, way.name(), &added.bytes);
            way.handle_packet(self.now, added);
        }
        self.reschedule(Actor::Way(link, direction));
    }
}
