//! Our library as a program uses it that sends messages with its own deadline: `ctcp-lab messages` at both ends.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::ctcp::{Keys, output};
use super::program::start;
use super::{Carrier, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;
use crate::probe::DEADLINE;

/// `Connection::send_message` with the deadline of the measurement, on a connection with profile `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtcpMessages;

impl Peer for CtcpMessages {
    fn name(&self) -> &str {
        "ctcp's library"
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        Ok(Description {
            version: output(&network.executable, &["--version"])?,
            settings: format!(
                "profile default, each datagram is given to Connection::send_message with a deadline of {} ms",
                DEADLINE.as_millis()
            ),
        })
    }

    /// It carries UDP only.
    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        self.start_datagrams(network, target)
    }

    fn start_datagrams(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        let keys = Keys::new(network)?;
        let listen = SocketAddrV4::new(network.server_address(), network.new_port());
        let entry = SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port());
        let deadline = DEADLINE.as_millis();
        let line = format!(
            "messages --deadline-ms {deadline} --key {} --other {} server --listen {listen} --target {target}",
            keys.file("server"),
            keys.client
        );
        let mut server = start(&network.server, &network.executable, &line)?;
        network.wait_until("ctcp-lab messages server", READY_WITHIN, || {
            server.check()?;
            network.server.is_listening_udp(listen.port())
        })?;
        let line = format!(
            "messages --deadline-ms {deadline} --key {} --other {} client --listen {entry} --server {listen}",
            keys.file("client"),
            keys.server
        );
        let mut client = start(&network.client, &network.executable, &line)?;
        network.wait_until("ctcp-lab messages client", READY_WITHIN, || {
            client.check()?;
            // It is bound once the connection is established.
            network.client.is_listening_udp(entry.port())
        })?;
        keys.remove();
        Ok(Carrier::tunnel(SocketAddr::V4(entry), vec![server, client]))
    }
}
