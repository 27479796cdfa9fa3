//! QUIC by the quinn crate, as the tunnel in `benchmarks/quinn-peer`: one persistent connection with a stream for each
//! TCP connection, or a datagram for each datagram of UDP.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::program::{beside, start, version};
use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;

const BUILT: &str = "benchmarks/quinn-peer/target/release/quinn-peer";
const INSTALL: &str =
    "in the project's folder, cargo build --release --manifest-path benchmarks/quinn-peer/Cargo.toml";

/// The tunnel with a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quinn {
    name: &'static str,
    congestion: &'static str,
}

impl Quinn {
    /// The crate's default.
    pub const CUBIC: Self = Self { name: "QUIC Cubic", congestion: "cubic" };
    /// The crate's BBR, which is marked as experimental.
    pub const BBR: Self = Self { name: "QUIC BBR", congestion: "bbr" };
}

impl Peer for Quinn {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        Ok(Description {
            version: version(&program(&network.executable), &["--version"], INSTALL)?,
            settings: format!(
                "benchmarks/quinn-peer, congestion {}, windows of flow control 8 MiB, otherwise its defaults; \
                 each download a stream of one connection that is up, each datagram of UDP a datagram of QUIC",
                self.congestion
            ),
        })
    }

    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        self.launch(network, target, false)
    }

    fn start_datagrams(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        self.launch(network, target, true)
    }
}

impl Quinn {
    fn launch(&self, network: &Network, target: SocketAddr, is_udp: bool) -> Result<Carrier, TestbedError> {
        let program = program(&network.executable);
        let folder = TempDir::with_prefix("ctcp-testbed-")
            .map_err(TestbedError::of("cannot make a folder for a certificate"))?;
        let certificate = folder.path().join("certificate.der");
        let listen = SocketAddrV4::new(network.server_address(), network.new_port());
        let entry = SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port());
        let kind = if is_udp { " --udp" } else { "" };
        let common =
            format!("--congestion {} --certificate {}{kind}", self.congestion, certificate.display());
        let line = format!("server --listen {listen} --target {target} {common}");
        let mut server = start(&network.server, &program, &line)?;
        network.wait_until("quinn-peer server", READY_WITHIN, || {
            server.check()?;
            // The certificate is written once the server listens.
            Ok(certificate.metadata().is_ok_and(|file| file.len() > 0))
        })?;
        let line = format!("client --listen {entry} --server {listen} {common}");
        let mut client = start(&network.client, &program, &line)?;
        network.wait_until("quinn-peer client", READY_WITHIN, || {
            client.check()?;
            if is_udp {
                return network.client.is_listening_udp(entry.port());
            }
            network.client.is_listening_tcp(entry.port())
        })?;
        // Both have read it. If this fails, the folder is left behind, as after a kill.
        let _ = folder.close();
        Ok(Carrier::tunnel(SocketAddr::V4(entry), vec![server, client]))
    }
}

fn program(executable: &Path) -> PathBuf {
    beside(executable, BUILT)
}
