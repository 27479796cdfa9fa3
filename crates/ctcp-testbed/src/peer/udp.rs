//! UDP without any transport, to show what the link loses.

use std::fs;
use std::net::SocketAddr;

use super::{Carrier, Description, Peer};
use crate::error::TestbedError;
use crate::network::Network;

/// The kernel's own UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp;

impl Peer for Udp {
    fn name(&self) -> &str {
        "UDP"
    }

    fn description(&self, _: &Network) -> Result<Description, TestbedError> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(TestbedError::of("cannot read the kernel's version"))?;
        Ok(Description {
            version: format!("Linux {}", release.trim()),
            settings: "a message is a datagram, not encrypted".to_owned(),
        })
    }

    fn start(&self, _: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        Ok(Carrier::direct(target))
    }

    fn start_datagrams(&self, _: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        Ok(Carrier::direct(target))
    }
}
