//! Changes during a run: addresses, links, and spurious calls or attacks.

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

    /// Changes the host's address, as after a change of its NAT's binding. Datagrams in transit to the old address are
    /// lost. No address may be used twice.
    pub fn set_address(&mut self, host: NodeId, address: SocketAddr) {
        self.recorder.note(self.now, || format!("address {address}"));
        let host_now = self.host_mut(host);
        let before = host_now.address();
        host_now.set_address(address);
        let key = host_now.key();
        self.ledger.on_address(key, address);
        self.route_as(before, address);
    }

    /// Sets the address of the host's next connections; its present connections keep theirs. With another port, this
    /// corresponds to a program that opens another socket. No address may be used twice.
    pub fn add_address(&mut self, host: NodeId, address: SocketAddr) {
        let host_now = self.host_mut(host);
        let before = host_now.address();
        host_now.add_address(address);
        self.route_as(before, address);
    }

    /// Changes the address of one of the host's interfaces, as [`Self::set_address`] does with interface 0. With another
    /// port, this corresponds to a NAT that forgot its binding; with another host, to another network.
    pub fn set_interface(&mut self, host: NodeId, number: usize, address: SocketAddr) {
        if number == 0 {
            self.set_address(host, address);
            return;
        }
        self.recorder.note(self.now, || format!("interface {number} {address}"));
        let host_now = self.host_mut(host);
        let Some(before) = host_now.set_interface(number, address) else { return };
        let key = host_now.key();
        self.ledger.on_address(key, address);
        self.uplinks[host.0].set_address(number, address.ip());
        self.route_as(before, address);
    }

    /// Sets whether the host has the address of one of its interfaces: as if a cable were pulled, or a network left.
    pub fn set_present(&mut self, host: NodeId, number: usize, is_present: bool) {
        self.recorder.note(self.now, || format!("interface {number} present: {is_present}"));
        self.host_mut(host).set_present(number, is_present);
    }

    /// Closes the path of a host's newest connection that begins at this interface. The application opens another one
    /// later. Nothing happens if there is no such path, or no other one.
    pub fn abandon_path(&mut self, host: NodeId, number: usize) {
        self.recorder.note(self.now, || format!("abandon the path of interface {number}"));
        self.with_host(host, |host, world| host.abandon_path(number, world));
    }

    /// Connects the hops of all ways through relays that begin at this host, and of their further stops after them.
    pub(crate) fn begin_ways(&mut self, host: NodeId) {
        self.recorder.note(self.now, || "begin ways".to_owned());
        self.with_host(host, |host, world| host.begin_ways(world));
    }

    /// The host's system says that addresses or routes changed, after [`Self::set_address`]. A NAT says nothing.
    pub fn on_network_change(&mut self, host: NodeId) {
        self.recorder.note(self.now, || "network change".to_owned());
        self.with_host(host, |host, world| host.on_network_change(world));
    }

    /// Makes the host drop all connections and restart, like a restarted process.
    pub fn restart(&mut self, host: NodeId, config: EndpointConfig) {
        self.recorder.note(self.now, || "restart".to_owned());
        let mut seed = [0; 32];
        self.prng.fill(&mut seed);
        self.host_mut(host).restart(config, seed);
        self.reschedule(Actor::Node(host));
    }

    /// Makes the host call its endpoint and connections more often than necessary.
    pub fn add_noise(&mut self, host: NodeId) {
        let prng = self.prng.fork(self.host(host).name());
        let now = self.now;
        self.host_mut(host).set_noise(now, prng);
        self.reschedule(Actor::Node(host));
    }

    /// Adds an attacker that sends datagrams over the link, see [`Mischief`].
    pub fn add_mischief(&mut self, link: LinkId, rate: Probability) {
        let prng = self.prng.fork("mischief");
        self.links[link.0].mischief = Some(Mischief::new(rate, prng));
    }

    /// Drops datagrams with more bytes than this on the link from now on, in both directions.
    pub fn set_mtu(&mut self, link: LinkId, mtu: Option<usize>) {
        self.recorder.note(self.now, || format!("mtu {mtu:?}"));
        for direction in [Direction::Forward, Direction::Backward] {
            self.links[link.0].way_mut(direction).set_mtu(mtu);
        }
    }

    /// Sets the schedule of changes of one direction of a link.
    pub fn set_schedule(&mut self, link: LinkId, direction: Direction, schedule: Schedule) {
        self.links[link.0].way_mut(direction).set_schedule(schedule);
        self.reschedule(Actor::Way(link, direction));
    }

    /// Changes the configuration of one direction of a link now.
    pub fn set_link(&mut self, link: LinkId, direction: Direction, config: LinkConfig) {
        self.links[link.0].way_mut(direction).set_config(self.now, config);
        self.reschedule(Actor::Way(link, direction));
    }

    /// Removes all faults of a link: from now on nothing is lost, held back, duplicated or corrupted, and no attacker
    /// is active.
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

    /// Makes routers forward datagrams for `after` to where they forward those for `before`.
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
