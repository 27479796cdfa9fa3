//! Our own programs as users start them: `ctcp server` and `ctcp client`, each a process with a key file.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::program::start;
use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;

/// The proxies with a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctcp {
    name: &'static str,
    profile: &'static str,
    has_metrics: bool,
    has_low_latency_forward: bool,
    /// The only paths that it uses, from 1; otherwise all.
    paths: &'static [usize],
    /// How it uses several paths, if not in the usual way.
    mode: Option<&'static str>,
}

impl Ctcp {
    /// The algorithm of the paper of 2013.
    pub const PAPER: Self = Self::profile("CTCP", "ctcp");
    /// Our best profile.
    pub const DEFAULT: Self = Self::profile("profile default", "default");

    /// The profile for interactive traffic.
    pub const LOW_LATENCY: Self = Self::profile("profile low-latency", "low-latency");

    /// Our best profile, on the first of several paths or on the second.
    pub const FIRST_PATH: Self =
        Self { paths: &[1], ..Self::profile("profile default, first path", "default") };
    /// The same on the second path.
    pub const SECOND_PATH: Self =
        Self { paths: &[2], ..Self::profile("profile default, second path", "default") };

    /// The same on the first two of three paths.
    pub const FIRST_TWO_PATHS: Self =
        Self { paths: &[1, 2], ..Self::profile("profile default, first two paths", "default") };

    /// Our best profile, each path of which competes as a connection of its own.
    pub const INDEPENDENT: Self = Self {
        mode: Some("independent"),
        ..Self::profile("profile default, --paths independent", "default")
    };
    /// The profile for interactive traffic, which sends everything on each path.
    pub const REDUNDANT: Self = Self {
        mode: Some("redundant"),
        ..Self::profile("profile low-latency, --paths redundant", "low-latency")
    };

    /// Our best profile, with connections that need low latency through a forward that says so.
    pub const LOW_LATENCY_FORWARD: Self =
        Self { has_low_latency_forward: true, ..Self::profile("--forward low-latency:", "default") };

    /// Any other profile, under a name for the figures.
    #[must_use]
    pub const fn profile(name: &'static str, profile: &'static str) -> Self {
        Self { name, profile, has_metrics: false, has_low_latency_forward: false, paths: &[], mode: None }
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
        let kind = if self.has_low_latency_forward { " low-latency: for streams of messages" } else { "" };
        let mode = self.mode.map(|mode| format!(" --paths {mode}")).unwrap_or_default();
        Ok(Description {
            version: output(&network.executable, &["--version"])?,
            settings: format!(
                "ctcp server --profile {profile}, ctcp client --profile {profile} --forward{kind}{mode}; \
                 each download a stream of one connection that is up"
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

impl Ctcp {
    /// Leads all paths to the server's first address. Returns the client's options for its paths.
    fn use_paths(&self, network: &Network) -> Result<String, TestbedError> {
        let count = network.paths().count();
        if count == 1 {
            return Ok(String::new());
        }
        let server = network.server_address();
        for index in 2..=count {
            network
                .client
                .configure(&format!("route replace {server}/32 dev path{index} metric {index}\n"))?;
        }
        let used = (1..=count).filter(|index| self.paths.is_empty() || self.paths.contains(index));
        Ok(used.map(|index| format!(" --path path{index}")).collect())
    }

    /// Starts both programs, with a forward of TCP to the target and with one of UDP from the same port if requested.
    fn launch(&self, network: &Network, target: SocketAddr, has_udp: bool) -> Result<Carrier, TestbedError> {
        let keys = Keys::new(network)?;
        let new_address = || SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port());
        let listen = SocketAddrV4::new(network.server_address(), network.new_port());
        let [entry, socks] = [new_address(), new_address()];
        // The testbed's addresses are private, which a server connects to only with an explicit rule.
        let server_line = format!(
            "peer server -q --config /dev/null --listen {listen} --key {} --client {} --allow-target {}/32 --profile {}",
            keys.file("server"),
            keys.client,
            network.server_address(),
            self.profile
        );
        let mut client_line = format!(
            "peer client -q --config /dev/null --server {listen} --server-key {} --key {} --forward {entry}={target} \
             --socks {socks} --profile {}",
            keys.server,
            keys.file("client"),
            self.profile
        );
        // They tell what several paths wasted.
        let metrics = (self.has_metrics || network.paths().count() > 1).then(new_address);
        if let Some(metrics) = metrics {
            client_line += &format!(" --metrics {metrics}");
        }
        let interactive = self.has_low_latency_forward.then(new_address);
        client_line += &self.use_paths(network)?;
        if let Some(mode) = self.mode {
            client_line += &format!(" --paths {mode}");
        }
        if let Some(interactive) = interactive {
            client_line += &format!(" --forward low-latency:{interactive}={target}");
        }
        if has_udp {
            client_line += &format!(" --forward udp:{entry}={target}");
        }
        let mut server = start(&network.server, &network.executable, &server_line)?;
        network.wait_until("ctcp server", READY_WITHIN, || {
            server.check()?;
            network.server.is_listening_udp(listen.port())
        })?;
        let before = network.client.udp_sockets()? + usize::from(has_udp);
        let last = interactive.unwrap_or(entry);
        let mut client = start(&network.client, &network.executable, &client_line)?;
        network.wait_until("ctcp client", READY_WITHIN, || {
            client.check()?;
            // Its last listener is bound, and it has read its key, because it does so before it opens its UDP socket.
            Ok(network.client.is_listening_tcp(last.port())? && network.client.udp_sockets()? > before)
        })?;
        let mut carrier = Carrier::tunnel(SocketAddr::V4(entry), vec![server, client]);
        carrier.socks = Some(SocketAddr::V4(socks));
        carrier.metrics = metrics.map(SocketAddr::V4);
        carrier.interactive = interactive.map(SocketAddr::V4);
        keys.remove();
        Ok(carrier)
    }
}

/// The names of the keys of relays.
pub(super) const RELAYS: [&str; 2] = ["relay", "second-relay"];

/// The keys of a server and its client: public ones as text, private ones in files.
pub(super) struct Keys {
    folder: TempDir,
    pub(super) server: String,
    pub(super) client: String,
    /// Those of two relays, if there are any.
    pub(super) relays: [String; 2],
}

impl Keys {
    pub(super) fn new(network: &Network) -> Result<Self, TestbedError> {
        let folder = TempDir::with_prefix("ctcp-testbed-")
            .map_err(TestbedError::of("cannot make a folder for keys"))?;
        let generate =
            |name| output(&network.executable, &["peer", "keygen", "--out", &key_file(&folder, name)]);
        let (server, client) = (generate("server")?, generate("client")?);
        Ok(Self { folder, server, client, relays: Default::default() })
    }

    /// The same with keys of relays.
    pub(super) fn with_relays(network: &Network) -> Result<Self, TestbedError> {
        let mut keys = Self::new(network)?;
        for (number, name) in RELAYS.into_iter().enumerate() {
            keys.relays[number] =
                output(&network.executable, &["peer", "keygen", "--out", &keys.file(name)])?;
        }
        Ok(keys)
    }

    /// The file with the private key of `server`, `client` or one of [`RELAYS`].
    pub(super) fn file(&self, name: &str) -> String {
        key_file(&self.folder, name)
    }

    /// Removes the files, once both programs have read them. If this fails, the folder is left behind, as after a kill.
    pub(super) fn remove(self) {
        let _ = self.folder.close();
    }
}

fn key_file(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).with_extension("key").display().to_string()
}

/// The standard output of a program, without the trailing newline.
pub(super) fn output(program: &Path, words: &[&str]) -> Result<String, TestbedError> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(TestbedError::of(format_args!("cannot run {}", program.display())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let what = format!("{} {}: {}", program.display(), words.join(" "), said.trim());
        return Err(TestbedError::failed(what));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
