//! Our programs with relays between them.
//!
//! Both namespaces are used in turn, so that each hop is a path. The last path of the network loses nothing and joins the `ctcp` server, which
//! may be in the client's namespace, with the target.
//!
//! ```text
//!   paths   client's namespace        server's namespace
//!   1       client ------ path 1 ------ relay, server       to see whether it runs
//!   3       client ------ path 1 ------ relay               two hops
//!           server ------ path 2 ------ relay
//!   4       client ------ path 1 ------ relay               three hops
//!           relay ------- path 2 ------ relay
//!           relay ------- path 3 ------ server
//!   5       as for 3, and             a second relay        two relays side by side
//!           between paths 3 and 4
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use super::ctcp::{Keys, RELAYS, output};
use super::program::start;
use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::namespace::Namespace;
use crate::network::Network;
use crate::process::Process;

/// A chain of relays, or two of them side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed {
    name: &'static str,
    mode: &'static str,
}

impl Relayed {
    /// Relays that repair the losses of their own hops with combinations.
    pub const RECODE: Self = Self { name: "relays that recode", mode: "recode" };
    /// Relays that send again what was lost on their own hops.
    pub const REPEAT: Self = Self { name: "relays that repeat", mode: "repeat" };
    /// Relays that repair nothing: what is coded is coded from end to end.
    pub const FORWARD: Self = Self { name: "relays that forward", mode: "forward" };
}

/// The tables of the routes that keep hops apart.
const TO_TARGET: u32 = 101;
const SECOND_RELAY: u32 = 102;

/// How many relays follow each other, and how many chains there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    OneHop,
    TwoHops,
    ThreeHops,
    SideBySide,
}

impl Layout {
    fn of(network: &Network) -> Result<Self, TestbedError> {
        match network.paths().count() {
            1 => Ok(Self::OneHop),
            3 => Ok(Self::TwoHops),
            4 => Ok(Self::ThreeHops),
            5 => Ok(Self::SideBySide),
            count => Err(TestbedError::failed(format!("no chain of relays has {count} paths"))),
        }
    }
}

/// The place of a program: a namespace, and its address on the path towards the client.
struct Place<'a> {
    namespace: &'a Namespace,
    address: SocketAddrV4,
}

impl Peer for Relayed {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        let version = output(&network.executable, &["--version"])?;
        let settings = format!("ctcp client --via, ctcp relay --mode {}, ctcp server --relay", self.mode);
        Ok(Description { version, settings })
    }

    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        let layout = Layout::of(network)?;
        let keys = Keys::with_relays(network)?;
        let at = |path: usize, is_server_side: bool| {
            let addresses = network.paths().nth(path - 1).expect("the layout has this path");
            let address = if is_server_side { addresses.server } else { addresses.client };
            let namespace = if is_server_side { &network.server } else { &network.client };
            Place { namespace, address: SocketAddrV4::new(address, network.new_port()) }
        };
        let (relays, server) = match layout {
            Layout::OneHop => (vec![at(1, true)], at(1, true)),
            Layout::TwoHops => (vec![at(1, true)], at(2, false)),
            Layout::ThreeHops => (vec![at(1, true), at(2, false)], at(3, true)),
            Layout::SideBySide => (vec![at(1, true), at(3, true)], at(2, false)),
        };
        keep_apart(network, layout, target, &server)?;
        let mut processes = vec![self.server(network, &keys, &server)?];
        for (index, relay) in relays.iter().enumerate() {
            let next = if layout == Layout::ThreeHops { relays.get(index + 1) } else { None };
            let to = match next {
                Some(next) => (next.address, keys.relays[index + 1].as_str()),
                None => (server.address, keys.server.as_str()),
            };
            // The second of two relays side by side has an address of its own, by which its routes differ.
            let is_other = layout == Layout::SideBySide && index == 1;
            processes.push(self.relay(network, (&keys, index), relay, to, is_other)?);
        }
        let vias: Vec<String> =
            relays.iter().zip(&keys.relays).map(|(relay, key)| format!("{}={key}", relay.address)).collect();
        let via = vias.join(if layout == Layout::SideBySide { "," } else { " --via " });
        let entry = SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port());
        let line = format!(
            "peer client -q --config /dev/null --server {} --server-key {} --key {} --via {via} --forward {entry}={target}",
            server.address,
            keys.server,
            keys.file("client")
        );
        let mut client = start(&network.client, &network.executable, &line)?;
        network.wait_until("ctcp client", READY_WITHIN, || {
            client.check()?;
            network.client.is_listening_tcp(entry.port())
        })?;
        processes.push(client);
        let carrier = Carrier::tunnel(SocketAddr::V4(entry), processes);
        keys.remove();
        Ok(carrier)
    }
}

impl Relayed {
    fn server(&self, network: &Network, keys: &Keys, place: &Place<'_>) -> Result<Process, TestbedError> {
        let line = format!(
            "peer server -q --config /dev/null --listen {} --key {} --client {} --relay {} --relay {} --allow-target {}/32",
            place.address,
            keys.file("server"),
            keys.client,
            keys.relays[0],
            keys.relays[1],
            network.server_address()
        );
        launch(network, "ctcp server", place, &line)
    }

    fn relay(
        &self,
        network: &Network,
        (keys, number): (&Keys, usize),
        place: &Place<'_>,
        (next, key): (SocketAddrV4, &str),
        has_own_address: bool,
    ) -> Result<Process, TestbedError> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, place.address.port());
        let listen = if has_own_address { place.address } else { any };
        let line = format!(
            "peer relay -q --config /dev/null --listen {listen} --key {} --client {} --client {} --to {next}={key} --mode {}",
            keys.file(RELAYS[number]),
            keys.client,
            keys.relays[0],
            self.mode
        );
        launch(network, "ctcp relay", place, &line)
    }
}

/// Starts a program and waits until it listens.
fn launch(network: &Network, what: &str, place: &Place<'_>, line: &str) -> Result<Process, TestbedError> {
    let mut process = start(place.namespace, &network.executable, line)?;
    network.wait_until(what, READY_WITHIN, || {
        process.check()?;
        place.namespace.is_listening_udp(place.address.port())
    })?;
    Ok(process)
}

/// Leads the packets of each hop over its own path.
fn keep_apart(
    network: &Network,
    layout: Layout,
    target: SocketAddr,
    server: &Place<'_>,
) -> Result<(), TestbedError> {
    if matches!(layout, Layout::OneHop | Layout::ThreeHops) {
        return Ok(());
    }
    let clean = network.paths().count();
    let target = target.ip();
    lead(&network.client, &format!("to {target}/32 ipproto tcp"), target, clean, TO_TARGET)?;
    if layout == Layout::SideBySide {
        let relay = IpAddr::V4(network.paths().nth(2).expect("the layout has this path").server);
        let server = IpAddr::V4(*server.address.ip());
        let between = |from, to| format!("from {from}/32 to {to}/32");
        lead(&network.server, &between(relay, server), server, 4, SECOND_RELAY)?;
        lead(&network.client, &between(server, relay), relay, 4, SECOND_RELAY)?;
    }
    Ok(())
}

/// Leads the packets that a rule selects to `destination` over a path. It may have been done before on this network.
fn lead(
    namespace: &Namespace,
    selector: &str,
    destination: IpAddr,
    path: usize,
    table: u32,
) -> Result<(), TestbedError> {
    namespace.configure(&format!("route replace {destination}/32 dev path{path} table {table}\n"))?;
    let added = namespace.configure(&format!("rule add {selector} lookup {table}\n"));
    added.or_else(|error| if error.to_string().contains("File exists") { Ok(()) } else { Err(error) })
}
