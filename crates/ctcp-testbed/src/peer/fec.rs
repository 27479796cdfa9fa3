//! A model of tunnels with Reed-Solomon parity for fixed groups of datagrams: the program in `benchmarks/fec-peer`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use super::program::{beside, start, version};
use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;

const BUILT: &str = "benchmarks/fec-peer/target/release/fec-peer";
const INSTALL: &str =
    "in the project's folder, cargo build --release --manifest-path benchmarks/fec-peer/Cargo.toml";

/// Datagrams of a group, as kcptun has by default.
const DATA: u8 = 10;

/// A group ends after this time, as by default in UDPspeeder.
const FLUSH_MS: u32 = 8;

/// The tunnel with a number of parity packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fec {
    name: &'static str,
    /// Parity packets of each group.
    parity: u8,
}

impl Fec {
    /// The redundancy that kcptun has by default.
    pub const USUAL: Self = Self { name: "model of FEC 10:3", parity: 3 };
    /// As much parity as data.
    pub const DOUBLE: Self = Self { name: "model of FEC 10:10", parity: 10 };

    fn program(network: &Network) -> PathBuf {
        beside(&network.executable, BUILT)
    }
}

impl Peer for Fec {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        Ok(Description {
            version: version(&Self::program(network), &["--version"], INSTALL)?,
            settings: format!(
                "a model, not a program that people use: Reed-Solomon groups of at most {DATA} datagrams with {} parity packets, \
                 as UDPspeeder with -f {DATA}:{} --mode 1 --timeout {FLUSH_MS}, not encrypted",
                self.parity, self.parity
            ),
        })
    }

    /// It carries UDP only.
    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        self.start_datagrams(network, target)
    }

    fn start_datagrams(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        let program = Self::program(network);
        let settings = format!("--data {DATA} --parity {} --flush-ms {FLUSH_MS}", self.parity);
        let listen = SocketAddrV4::new(network.server_address(), network.new_port());
        let entry = SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port());
        let line = format!("server --listen {listen} --target {target} {settings}");
        let mut server = start(&network.server, &program, &line)?;
        network.wait_until("fec-peer server", READY_WITHIN, || {
            server.check()?;
            network.server.is_listening_udp(listen.port())
        })?;
        let line = format!("client --listen {entry} --server {listen} {settings}");
        let mut client = start(&network.client, &program, &line)?;
        network.wait_until("fec-peer client", READY_WITHIN, || {
            client.check()?;
            network.client.is_listening_udp(entry.port())
        })?;
        Ok(Carrier::tunnel(SocketAddr::V4(entry), vec![server, client]))
    }
}
