//! The peers, and which tests each takes part in.

use core::time::Duration;
use std::collections::BTreeMap;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig};

use super::{Cell, Condition, Selection, Test};
use crate::bulk::BulkServer;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Description, Peer, named};
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::{Testbed, start_warm};

/// All peers by their names on the command line, ours first.
pub const PEER_NAMES: [&str; 26] = [
    "default",
    "path-1",
    "path-2",
    "path-1-2",
    "independent",
    "redundant",
    "low-latency-forward",
    "low-latency",
    "relay-recode",
    "relay-repeat",
    "relay-forward",
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

    /// Returns true if the peer takes part in a cell. SRT carries no connections, and delivers later than the deadline
    /// of datagrams; Multipath TCP is for several paths. On several paths, single-path peers show by comparison what a
    /// second path gains.
    #[must_use]
    pub fn takes_part(&self, cell: &Cell) -> bool {
        if cell.has_several_paths() {
            return self.takes_part_on_paths(cell);
        }
        let test = cell.test;
        match self.name {
            "srt" | "kcptun-10-10" => matches!(test, Test::Stream | Test::Latency),
            "messages" | "udp" | "fec-10-3" | "fec-10-10" => test == Test::Datagrams,
            "low-latency" => {
                matches!(test, Test::Requests | Test::Stream | Test::Latency | Test::Mixed | Test::Datagrams)
            }
            "low-latency-forward" => matches!(test, Test::Latency | Test::Mixed),
            "path-1" | "path-2" | "path-1-2" | "independent" | "redundant" | "mptcp-cubic" | "mptcp-bbr"
            | "relay-recode" | "relay-repeat" | "relay-forward" => false,
            "default" | "quinn-bbr" => true,
            "bbr" => test != Test::Datagrams,
            "kcptun" => test != Test::Datagrams,
            _ => !matches!(test, Test::Latency | Test::Mixed | Test::Datagrams),
        }
    }

    fn takes_part_on_paths(&self, cell: &Cell) -> bool {
        match (cell.test, cell.condition) {
            // Forwarding relays are no paths of one connection.
            (Test::Relays, Condition::SideBySide) => matches!(self.name, "relay-recode" | "relay-repeat"),
            (Test::Relays, _) => matches!(self.name, "relay-recode" | "relay-repeat" | "relay-forward"),
            (Test::Paths, Condition::ThirdPath) => matches!(self.name, "default" | "path-1-2"),
            (Test::Paths, _) => {
                matches!(self.name, "default" | "path-1" | "path-2" | "bbr" | "mptcp-cubic" | "mptcp-bbr")
            }
            (Test::PathStream, _) => {
                matches!(
                    self.name,
                    "default" | "redundant" | "low-latency" | "low-latency-forward" | "mptcp-bbr"
                )
            }
            (Test::Shared, _) => matches!(self.name, "default" | "independent" | "path-1" | "cubic"),
            _ => matches!(self.name, "default" | "path-1" | "path-2" | "mptcp-bbr"),
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
    let usual = Cell { test: Test::Goodput, condition: Condition::Independent, loss: 0.0 };
    if contestant.takes_part(&usual) {
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
    fn every_name_is_that_of_a_peer_and_every_cell_has_several() {
        let contestants: Vec<Contestant> = PEER_NAMES
            .iter()
            .map(|name| Contestant { name, peer: named(name).expect("a peer of that name") })
            .collect();
        let everything = Selection::default();
        for cell in Cell::all(false, &everything) {
            let count = contestants.iter().filter(|contestant| contestant.takes_part(&cell)).count();
            assert!(count >= 2, "{}: {count}", cell.label());
        }
        for contestant in &contestants {
            let cells = Cell::all(false, &everything);
            assert!(
                cells.iter().any(|cell| contestant.takes_part(cell)),
                "{} is never asked",
                contestant.name
            );
        }
    }
}
