//! The peers, and which tests each takes part in.

use core::time::Duration;
use std::collections::BTreeMap;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig};

use super::{Selection, Test};
use crate::bulk::BulkServer;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Description, Peer, named};
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::{Testbed, start_warm};

/// All peers by their names on the command line, ours first.
pub const PEER_NAMES: [&str; 20] = [
    "default",
    "path-1",
    "path-2",
    "low-latency-forward",
    "low-latency",
    "messages",
    "ctcp",
    "reno",
    "cubic",
    "bbr",
    "quinn-cubic",
    "quinn-bbr",
    "kcptun",
    "kcptun-10-10",
    "srt",
    "mptcp-cubic",
    "mptcp-bbr",
    "udp",
    "fec-10-3",
    "fec-10-10",
];

/// Omitted in a quick run, because Cubic gives similar results.
const LEFT_OUT_IF_QUICK: &str = "reno";

/// A peer of the comparison.
pub struct Contestant {
    /// The name on the command line and in results.
    pub name: &'static str,
    peer: Box<dyn Peer>,
}

impl Contestant {
    /// The transport.
    #[must_use]
    pub fn peer(&self) -> &dyn Peer {
        &*self.peer
    }

    /// Returns true if the peer takes part in a test. SRT carries no connections, and delivers later than the deadline
    /// of datagrams; Multipath TCP is for several paths. On several paths, single-path peers show by comparison what a second path gains.
    #[must_use]
    pub fn takes_part(&self, test: Test) -> bool {
        match self.name {
            "srt" | "kcptun-10-10" => matches!(test, Test::Stream | Test::Latency),
            "messages" | "udp" | "fec-10-3" | "fec-10-10" => test == Test::Datagrams,
            "low-latency" => {
                matches!(test, Test::Requests | Test::Stream | Test::Latency | Test::Mixed | Test::Datagrams)
            }
            "low-latency-forward" => matches!(test, Test::Latency | Test::Mixed),
            "path-1" | "path-2" | "mptcp-cubic" | "mptcp-bbr" => test == Test::Paths,
            "default" => true,
            "bbr" => test != Test::Datagrams,
            "quinn-bbr" => test != Test::Paths,
            "kcptun" => !matches!(test, Test::Paths | Test::Datagrams),
            _ => !matches!(test, Test::Paths | Test::Latency | Test::Mixed | Test::Datagrams),
        }
    }
}

/// The selected peers that can be started here; the reasons for the others are added to `missing`.
pub(super) fn present(
    testbed: &mut Testbed<'_>,
    selection: &Selection,
    missing: &mut BTreeMap<&'static str, String>,
) -> Result<Vec<Contestant>, TestbedError> {
    let path =
        PathConfig::new(Rate::from_megabits_per_second(25), Duration::from_millis(20), LossModel::None);
    let plan = NetworkPlan::new(0, [PathPlan::new(path)]);
    let mut found = Vec::new();
    for name in PEER_NAMES {
        let is_asked_for = selection.peers.contains(&name)
            || selection.peers.is_empty() && !(testbed.settings.quick && name == LEFT_OUT_IF_QUICK);
        if !is_asked_for {
            continue;
        }
        let contestant = Contestant { name, peer: named(name).expect("all of them are known") };
        let network = testbed.network(&plan)?;
        match is_present(&contestant, &network) {
            Ok(description) => {
                testbed.describe(contestant.peer(), description);
                found.push(contestant);
            }
            Err(TestbedError::Interrupted) => return Err(TestbedError::Interrupted),
            Err(error) => {
                missing.insert(name, error.to_string());
            }
        }
    }
    Ok(found)
}

/// Starts it once, so that problems show before the measurements.
fn is_present(contestant: &Contestant, network: &Network) -> Result<Description, TestbedError> {
    let peer = contestant.peer();
    let description = peer.description(network)?;
    let server = BulkServer::start(network, peer.socket())?;
    if contestant.takes_part(Test::Goodput) {
        start_warm(network, peer, &server)?;
    } else {
        peer.start(network, server.address())?.check()?;
    }
    Ok(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_peer_and_every_test_has_several() {
        let contestants: Vec<Contestant> = PEER_NAMES
            .iter()
            .map(|name| Contestant { name, peer: named(name).expect("a peer of that name") })
            .collect();
        for test in Test::ALL {
            let count = contestants.iter().filter(|contestant| contestant.takes_part(test)).count();
            assert!(count >= 4, "{}: {count}", test.name());
        }
    }
}
