//! What may be made another in the middle of a run: addresses, links, the peace of a host.

use core::net::SocketAddr;

use ctcp_base::Probability;
use ctcp_netem::{LinkConfig, Schedule};
use ctcp_proto::EndpointConfig;

use super::{Actor, Simulation};
use crate::link::{Direction, LinkId};
use crate::mischief::Mischief;
use crate::node::{Host, Node, NodeId};

impl Simulation {
    /// Closes all connections of a host.
    pub fn close(&mut self, host: NodeId, code: u64, reason: &str) {
        self.recorder.note(self.now, || "close".to_owned());
        self.with_host(host, |host, world| host.close(code, reason, world));
    }

    /// The host has another address from now on, as after a change of its NAT's binding: what is on its way to the
    /// old one is lost. No address may be used twice.
    pub fn set_address(&mut self, host: NodeId, address: SocketAddr) {
        self.recorder.note(self.now, || format!("address {address}"));
        let host_now = self.host_mut(host);
        let before = host_now.address();
        host_now.set_address(address);
        let key = host_now.key();
        self.ledger.on_address(key, address);
        self.route_as(before, address);
    }

    /// The host's next connections come from this address; those that it has stay where they are. With another port it is what
    /// a program does that opens another socket. No address may be used twice.
    pub fn add_address(&mut self, host: NodeId, address: SocketAddr) {
        let host_now = self.host_mut(host);
        let before = host_now.address();
        host_now.add_address(address);
        self.route_as(before, address);
    }

    /// The host forgets all connections and begins anew, as a restarted process does.
    pub fn restart(&mut self, host: NodeId, config: EndpointConfig) {
        self.recorder.note(self.now, || "restart".to_owned());
        let mut seed = [0; 32];
        self.prng.fill(&mut seed);
        self.host_mut(host).restart(config, seed);
        self.reschedule(Actor::Node(host));
    }

    /// Makes the host call its endpoint and connections more often than it must.
    pub fn add_noise(&mut self, host: NodeId) {
        let prng = self.prng.fork(self.host(host).name());
        let now = self.now;
        self.host_mut(host).set_noise(now, prng);
        self.reschedule(Actor::Node(host));
    }

    /// Lets a stranger add to what passes over the link, see [`Mischief`].
    pub fn add_mischief(&mut self, link: LinkId, rate: Probability) {
        let prng = self.prng.fork("mischief");
        self.links[link.0].mischief = Some(Mischief::new(rate, prng));
    }

    /// Datagrams with more bytes than this are lost on the link from now on, both ways.
    pub fn set_mtu(&mut self, link: LinkId, mtu: Option<usize>) {
        self.recorder.note(self.now, || format!("mtu {mtu:?}"));
        for direction in [Direction::Forward, Direction::Backward] {
            self.links[link.0].way_mut(direction).set_mtu(mtu);
        }
    }

    /// Gives one way of a link a script of changes.
    pub fn set_schedule(&mut self, link: LinkId, direction: Direction, schedule: Schedule) {
        self.links[link.0].way_mut(direction).set_schedule(schedule);
        self.reschedule(Actor::Way(link, direction));
    }

    /// Makes one way of a link another one now.
    pub fn set_link(&mut self, link: LinkId, direction: Direction, config: LinkConfig) {
        self.links[link.0].way_mut(direction).set_config(self.now, config);
        self.reschedule(Actor::Way(link, direction));
    }

    /// From now on the link loses, holds back, doubles and damages nothing, and no stranger adds anything.
    pub fn heal(&mut self, link: LinkId) {
        self.recorder.note(self.now, || "heal".to_owned());
        self.links[link.0].mischief = None;
        for direction in [Direction::Forward, Direction::Backward] {
            self.links[link.0].way_mut(direction).heal(self.now);
            self.reschedule(Actor::Way(link, direction));
        }
    }

    fn host_mut(&mut self, id: NodeId) -> &mut Host {
        match &mut self.nodes[id.0] {
            Node::Host(host) => host,
            Node::Router(router) => panic!("{} is not a host", router.name()),
        }
    }

    /// Routers send what is for the address `after` where they send what is for `before`.
    fn route_as(&mut self, before: SocketAddr, after: SocketAddr) {
        for node in &mut self.nodes {
            if let Node::Router(router) = node
                && let Some(port) = router.route(before.ip())
            {
                router.set_route(after.ip(), port);
            }
        }
    }
}
