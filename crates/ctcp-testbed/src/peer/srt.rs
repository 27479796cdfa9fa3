//! SRT by `srt-live-transmit`: datagrams, delivered in order at a fixed delay or not at all.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

use super::program::{start, version};
use super::{Carrier, DatagramEnds, Description, Peer, READY_WITHIN};
use crate::error::TestbedError;
use crate::network::Network;

const PROGRAM: &str = "srt-live-transmit";
const INSTALL: &str = "apt-get install srt-tools";

/// Its default latency. A datagram that is this late, counted from when the first copy would have arrived, is dropped.
const LATENCY_MS: u32 = 120;

/// SRT in live mode. It carries no connections, so it can only transport a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Srt;

impl Peer for Srt {
    fn name(&self) -> &str {
        "SRT"
    }

    fn description(&self, _: &Network) -> Result<Description, TestbedError> {
        let said = version(Path::new(PROGRAM), &["-version"], INSTALL)?;
        Ok(Description {
            version: format!("{PROGRAM}, {said}"),
            settings: format!("live mode, latency {LATENCY_MS} ms at both ends, otherwise its defaults"),
        })
    }

    fn start(&self, network: &Network, _: SocketAddr) -> Result<Carrier, TestbedError> {
        let program = Path::new(PROGRAM);
        let listen = SocketAddrV4::new(network.server_address(), network.new_port());
        let [entry, exit] = [(); 2].map(|()| SocketAddrV4::new(Ipv4Addr::LOCALHOST, network.new_port()));
        let line = format!("-q udp://{entry} srt://{listen}?mode=listener&latency={LATENCY_MS}");
        let mut server = start(&network.server, program, &line)?;
        network.wait_until(PROGRAM, READY_WITHIN, || {
            server.check()?;
            network.server.is_listening_udp(listen.port())
        })?;
        let line = format!("-q srt://{listen}?mode=caller&latency={LATENCY_MS} udp://{exit}");
        let client = start(&network.client, program, &line)?;
        let ends = DatagramEnds { entry: entry.into(), exit: exit.into() };
        let mut carrier = Carrier::tunnel(entry.into(), vec![server, client]);
        carrier.datagrams = Some(ends);
        Ok(carrier)
    }
}
