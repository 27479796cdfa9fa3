//! Two namespaces and the paths between them, made from a plan.

use core::fmt::Write;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use ctcp_base::Prng;
use ctcp_netem::{Change, Hops, LinkStats};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::clock::Clock;
use crate::emulator::{Emulator, Port, Report};
use crate::error::TestbedError;
use crate::namespace::Namespace;
use crate::peer::{Description, Peer};
use crate::plan::NetworkPlan;
use crate::stop::Stop;

/// The MTU of Ethernet.
const MTU: u16 = 1_500;

/// Packets that a device queues for the emulator: more than any sender has in flight, so that only links drop packets.
const DEVICE_QUEUE: u32 = 10_000;

/// The first port for peers.
const FIRST_PORT: u16 = 20_000;

/// The settings of kernel TCP in both namespaces, independent of the machine's own: windows for 100 Mbit/s and a round trip of one second,
/// no memory of earlier connections, and no IPv6 on the paths.
const SETTINGS: [(&str, &str); 5] = [
    ("net.ipv4.tcp_rmem", "4096 131072 33554432"),
    ("net.ipv4.tcp_wmem", "4096 65536 33554432"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// The addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// The server's end.
    pub server: Ipv4Addr,
    /// The client's end.
    pub client: Ipv4Addr,
}

impl PathAddresses {
    /// The addresses of the path with this index, from 0.
    fn of(index: usize) -> Self {
        let path = u8::try_from(index + 1).expect("few paths");
        Self { server: Ipv4Addr::new(10, 71, path, 1), client: Ipv4Addr::new(10, 71, path, 2) }
    }
}

/// A running network. Dropping it ends everything that was started in it.
#[derive(Debug)]
pub struct Network {
    // Dropped in this order: the emulator holds the devices.
    emulator: Emulator,
    /// The namespace of the servers.
    pub server: Namespace,
    /// The namespace of the clients.
    pub client: Namespace,
    /// The plan.
    pub plan: NetworkPlan,
    /// The clock of the network and its links.
    pub clock: Clock,
    /// The stop flag, checked by everything that waits.
    pub stop: Stop,
    /// The program that is started as a `ctcp` peer.
    pub executable: PathBuf,
    next_port: AtomicU16,
    peers: Mutex<BTreeMap<String, Description>>,
}

impl Network {
    /// Brings a network up.
    ///
    /// # Errors
    /// Returns an error that names what this user or machine lacks.
    pub fn start(plan: &NetworkPlan, executable: PathBuf, stop: Stop) -> Result<Self, TestbedError> {
        let (server, client) = (Namespace::new("server")?, Namespace::new("client")?);
        Self::between(server, client, plan, executable, stop)
    }

    /// Brings a network up between two namespaces that have no `path` device yet.
    ///
    /// # Errors
    /// Returns an error that names what this user or machine lacks.
    pub fn between(
        server: Namespace,
        client: Namespace,
        plan: &NetworkPlan,
        executable: PathBuf,
        stop: Stop,
    ) -> Result<Self, TestbedError> {
        for namespace in [&server, &client] {
            for (key, value) in SETTINGS {
                // A kernel without IPv6 has nothing to switch off.
                namespace
                    .set(key, value)
                    .or_else(|error| if key.contains("ipv6") { Ok(()) } else { Err(error) })?;
            }
        }
        let (clock, prng) = (Clock::start(), Prng::new(plan.seed));
        let mut ports = Vec::new();
        for (index, path) in plan.paths.iter().enumerate() {
            let PathAddresses { server: at_server, client: at_client } = PathAddresses::of(index);
            for (namespace, address, way, name) in [
                (&server, at_server, &path.forward, "forward"),
                (&client, at_client, &path.backward, "backward"),
            ] {
                let device = device(namespace, index, address)?;
                ports.push(Port {
                    device,
                    way: Hops::new(way.build(), &prng.fork(&format!("path {index} {name}"))),
                });
            }
        }
        let shared = plan.shared.as_ref().map(|path| {
            [(&path.forward, "forward"), (&path.backward, "backward")]
                .map(|(way, name)| Hops::new(way.build(), &prng.fork(&format!("shared {name}"))))
        });
        let emulator = Emulator::start(ports, shared, clock)?;
        let (next_port, peers) = (AtomicU16::new(FIRST_PORT), Mutex::default());
        Ok(Self { emulator, server, client, plan: plan.clone(), clock, stop, executable, next_port, peers })
    }

    /// Changes the links of one path, by its index, or of all, in both directions, in addition to the plan.
    ///
    /// # Errors
    /// Returns an error if the emulator has ended.
    pub fn apply(&self, path: Option<usize>, change: Change) -> Result<(), TestbedError> {
        self.emulator.apply(path, change)
    }

    /// The addresses of each path, in the order of the plan.
    pub fn paths(&self) -> impl Iterator<Item = PathAddresses> + use<> {
        (0..self.plan.paths.len()).map(PathAddresses::of)
    }

    /// The server's address on the first path.
    #[must_use]
    pub fn server_address(&self) -> Ipv4Addr {
        PathAddresses::of(0).server
    }

    /// An unused port in both namespaces.
    pub fn new_port(&self) -> u16 {
        self.next_port.fetch_add(1, Ordering::Relaxed)
    }

    /// Records a peer's version and settings for the result.
    ///
    /// # Errors
    /// Returns an error if the peer is not installed.
    pub fn note(&self, peer: &dyn Peer) -> Result<(), TestbedError> {
        let description = peer.description(self)?;
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.insert(peer.name().to_owned(), description);
        Ok(())
    }

    /// The recorded peers, by name.
    #[must_use]
    pub fn noted(&self) -> BTreeMap<String, Description> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The counters of the links and of the emulator.
    #[must_use]
    pub fn report(&self) -> Report {
        self.emulator.report()
    }

    /// Bytes of IP packets sent on all paths so far, forward and backward, lost packets included.
    #[must_use]
    pub fn bytes_sent(&self) -> [u64; 2] {
        let ways = self.report().ways;
        let first = |way: &[LinkStats]| way.first().map_or(0, |link| link.bytes_offered);
        [0, 1].map(|way| ways.iter().map(|path| first(&path[way])).sum())
    }

    /// Packets sent on all paths so far, as in [`bytes_sent`](Self::bytes_sent).
    #[must_use]
    pub fn packets_sent(&self) -> [u64; 2] {
        let ways = self.report().ways;
        let first = |way: &[LinkStats]| way.first().map_or(0, |link| link.offered);
        [0, 1].map(|way| ways.iter().map(|path| first(&path[way])).sum())
    }

    /// Packets that never reached a link because the queue of a device was full.
    ///
    /// # Errors
    /// Returns an error if the counters cannot be read.
    pub fn device_drops(&self) -> Result<u64, TestbedError> {
        let mut sum = 0;
        for namespace in [&self.server, &self.client] {
            let drops = namespace.drops()?;
            sum += drops
                .iter()
                .filter(|(device, _)| device.starts_with("path"))
                .map(|(_, drops)| drops)
                .sum::<u64>();
        }
        Ok(sum)
    }

    /// Waits until `is_ready` returns true, for at most `time`.
    ///
    /// # Errors
    /// Returns an error after `time`, or if the stop flag is set.
    pub fn wait_until(
        &self,
        what: &str,
        time: Duration,
        mut is_ready: impl FnMut() -> Result<bool, TestbedError>,
    ) -> Result<(), TestbedError> {
        let end = self.clock.now() + time;
        while !is_ready()? {
            if self.clock.now() > end {
                return Err(TestbedError::failed(format!("{what}: not within {} s", time.as_secs_f64())));
            }
            self.stop.sleep(Duration::from_millis(10))?;
        }
        Ok(())
    }
}

/// Creates a device in a namespace, with an address in a network of its own.
fn device(namespace: &Namespace, index: usize, address: Ipv4Addr) -> Result<SyncDevice, TestbedError> {
    let name = format!("path{}", index + 1);
    let device = {
        let name = name.clone();
        namespace.run(move || -> std::io::Result<SyncDevice> {
            let device = DeviceBuilder::new().name(name).mtu(MTU).packet_information(false).build_sync()?;
            device.set_nonblocking(true)?;
            Ok(device)
        })
    };
    let device = device.map_err(|error| {
        TestbedError::Missing(format!(
            "cannot make a TUN device ({error}): the testbed needs /dev/net/tun and root"
        ))
    })?;
    let mut lines = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(lines, "address add {address}/24 dev {name}");
    let _ = writeln!(lines, "link set dev {name} mtu {MTU} txqueuelen {DEVICE_QUEUE} up");
    namespace.configure(&lines)?;
    Ok(device)
}
