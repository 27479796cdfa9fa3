//! Our own programs as users start them: `ctcp server` and `ctcp client`, each a process with a key file.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;

/// The proxies with a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctcp {
    name: &'static str,
    profile: &'static str,
    has_metrics: bool,
}

impl Ctcp {
    /// The algorithm of the paper of 2013.
    pub const PAPER: Self = Self::profile("CTCP", "ctcp");
    /// Our best profile.
    pub const DEFAULT: Self = Self::profile("profile default", "default");

    /// The profile for interactive traffic.
    pub const LOW_LATENCY: Self = Self::profile("profile low-latency", "low-latency");

    /// Any other profile, under a name for the figures.
    #[must_use]
    pub const fn profile(name: &'static str, profile: &'static str) -> Self {
        Self { name, profile, has_metrics: false }
    }

    /// The same, with a client that serves its metrics.
    #[must_use]
    pub const fn with_metrics(self) -> Self {
        Self { has_metrics: true, ..self }
    }
}

impl Peer for Ctcp {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        let profile = self.profile;
        Ok(Description {
            version: output(&network.executable, &["--version"])?,
            settings: format!(
                "ctcp server --profile {profile}, ctcp client --profile {profile} --forward; \
                 each download a stream of one connection that is up"
            ),
        })
    }

    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        let keys = TempDir::with_prefix("ctcp-testbed-")
            .map_err(TestbedError::of("cannot make a folder for keys"))?;
        let key = |name: &str| keys.path().join(name).display().to_string();
        let server_key = output(&network.executable, &["peer", "keygen", "--out", &key("server.key")])?;
        let client_key = output(&network.executable, &["peer", "keygen", "--out", &key("client.key")])?;
        let [listen, entry, socks] = [
            SocketAddrV4::new(network.server_address(), network.new_port()),
            SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port()),
            SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port()),
        ];
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
        // The testbed's addresses are private, which a server connects to only with an explicit rule.
        let server_line = format!(
            "peer server -q --config /dev/null --listen {listen} --key {} --client {client_key} --allow-target {}/32 --profile {}",
            key("server.key"),
            network.server_address(),
            self.profile
        );
        let metrics = self.has_metrics.then(|| SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port()));
        let mut client_line = format!(
            "peer client -q --config /dev/null --server {listen} --server-key {server_key} --key {} --forward {entry}={target} \
             --socks {socks} --profile {}",
            key("client.key"),
            self.profile
        );
        if let Some(metrics) = metrics {
            client_line += &format!(" --metrics {metrics}");
        }
        let mut server = network.server.start(&network.executable, &words(&server_line))?;
        network.wait_until("ctcp server", READY_WITHIN, || {
            server.check()?;
            network.server.is_listening_udp(listen.port())
        })?;
        let before = network.client.udp_sockets()?;
        let mut client = network.client.start(&network.executable, &words(&client_line))?;
        network.wait_until("ctcp client", READY_WITHIN, || {
            client.check()?;
            // Its last listener is bound, and it has read its key, because it does so before it opens its UDP socket.
            Ok(network.client.is_listening_tcp(entry.port())? && network.client.udp_sockets()? > before)
        })?;
        let mut carrier = Carrier::tunnel(SocketAddr::V4(entry), vec![server, client]);
        carrier.socks = Some(SocketAddr::V4(socks));
        carrier.metrics = metrics.map(SocketAddr::V4);
        // Both have read their keys. If this fails, the folder is left behind, as after a kill.
        let _ = keys.close();
        Ok(carrier)
    }
}

/// The standard output of a program, without the trailing newline.
fn output(program: &Path, words: &[&str]) -> Result<String, TestbedError> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(TestbedError::of(format_args!("cannot run {}", program.display())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let what = format!("{} {}: {}", program.display(), words.join(" "), said.trim());
        return Err(TestbedError::failed(what));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
