//! A transfer of the file over one of two interfaces, or both.

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_baselines::SPARSE_PROFILE;
use ctcp_netem::PathConfig;
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::application::Application;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;
use ctcp_sim::{Scrutiny, Simulation, Stop};
use serde::{Deserialize, Serialize};

use crate::thesis::single::{FILE, Link};

/// The thesis's transport.
pub(super) const CTCP: &str = "CTCP (sparse)";
/// Ours.
pub(super) const DEFAULT: &str = "profile default";

/// A time limit longer than any transfer.
const LIMIT: Duration = Duration::from_secs(3_600);

/// The two cards: rates at which the printed throughput without added loss reaches the application, 0.95 of each packet,
/// and the printed losses. The round trip is that of [`crate::thesis::single::LINK`].
const CARDS: [Link; 2] = [card(14_200_000, 0.0018), card(17_100_000, 0.0048)];

/// A network of another kind in place of the second card.
const FAR: Link =
    Link { rate: Rate::from_bits_per_second(5_000_000), rtt: Duration::from_millis(120), loss: 0.0048 };

const fn card(bits_per_second: u64, loss: f64) -> Link {
    Link { rate: Rate::from_bits_per_second(bits_per_second), rtt: Duration::from_millis(5), loss }
}

/// Two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// The two cards.
    Equal,
    /// A card, and a slow network far away.
    Unequal,
}

impl Pairing {
    pub(super) const ALL: [Self; 2] = [Self::Equal, Self::Unequal];

    /// Returns the beginning of names of series.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equal => "",
            Self::Unequal => "unequal, ",
        }
    }

    fn links(self) -> [Link; 2] {
        match self {
            Self::Equal => CARDS,
            Self::Unequal => [CARDS[1], FAR],
        }
    }
}

/// The interfaces that a transfer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Used {
    First,
    Second,
    Both,
}

impl Used {
    pub(super) const ALL: [Self; 3] = [Self::First, Self::Second, Self::Both];

    /// Returns the end of names of series.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::First => "1 alone",
            Self::Second => "2 alone",
            Self::Both => "both",
        }
    }

    fn of(self, [first, second]: [Link; 2]) -> Vec<Link> {
        match self {
            Self::First => vec![first],
            Self::Second => vec![second],
            Self::Both => vec![first, second],
        }
    }
}

/// A transfer.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The name of the profile in legends.
    pub(super) profile: String,
    /// The interfaces of the client.
    pub(super) pairing: Pairing,
    /// Which of them are used.
    pub(super) used: Used,
    /// The added loss.
    pub(super) added: f64,
    /// The seed of the run.
    pub(super) seed: u64,
}

impl Cell {
    /// The combinations of profile and interfaces that are run.
    pub(super) const SERIES: [(&'static str, Pairing); 4] = [
        (DEFAULT, Pairing::Equal),
        (CTCP, Pairing::Equal),
        (DEFAULT, Pairing::Unequal),
        (CTCP, Pairing::Unequal),
    ];
}

/// The results of a transfer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Transfer {
    /// Throughput in Mbit/s from the first byte to the last.
    pub(super) megabits: f64,
    /// The throughput of each interface, by the bytes that it delivered.
    pub(super) carried: [f64; 2],
    /// The share of arrived packets with coded data that carried no new degree of freedom.
    pub(super) wasted: f64,
    /// Number of simulation events.
    pub(super) events: u64,
}

pub(super) fn measure(cell: &Cell) -> Transfer {
    let profile = if cell.profile == CTCP { SPARSE_PROFILE } else { Profile::DEFAULT };
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    // The client is at the first end of each link, and receives the file.
    let paths: Vec<PathConfig> = cell
        .used
        .of(cell.pairing.links())
        .iter()
        .map(|link| {
            let path = link.path(cell.added);
            PathConfig { forward: path.backward, backward: path.forward }
        })
        .collect();
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, FILE)]);
    let mut pair = Pair::several(cell.seed, &paths, [&transport, &transport], &script);
    pair.simulation.set_scrutiny(Scrutiny::LIGHT);
    pair.connect().expect("a first connection is always possible");
    let first = time_of_byte(&mut pair, 1);
    let megabits = FILE as f64 * 8e-6 / (time_of_byte(&mut pair, FILE) - first);
    let delivered = |index: usize| {
        let link = pair.links.get(index).map(|&link| pair.simulation.link(link));
        link.map_or(0, |link| link.way(Direction::Backward).stats().delivered) as f64
    };
    let delivered = [delivered(0), delivered(1)];
    let stats = pair.simulation.host(pair.client).stats();
    let wasted = stats.redundant_received as f64;
    Transfer {
        megabits,
        carried: delivered.map(|packets| megabits * packets / delivered.iter().sum::<f64>()),
        wasted: wasted / (wasted + stats.symbols_decoded as f64),
        events: pair.simulation.events(),
    }
}

/// Runs until the client has read `bytes`. Returns the time in seconds.
fn time_of_byte(pair: &mut Pair, bytes: u64) -> f64 {
    let client = pair.client;
    let has_read = |simulation: &Simulation| {
        let peer = simulation.host(client).newest();
        peer.map(|peer| &peer.application).map_or(0, Application::bytes_read) >= bytes
    };
    let stop = pair.simulation.run_for(LIMIT, has_read);
    assert_eq!(stop, Stop::Done, "{bytes} bytes");
    (pair.simulation.now() - Simulation::START).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: U7, U8
    #[test]
    fn two_interfaces_together_are_faster_than_each_alone_and_both_carry_the_file() {
        for pairing in Pairing::ALL {
            let transfer =
                |used| measure(&Cell { profile: DEFAULT.to_owned(), pairing, used, added: 0.05, seed: 1 });
            let [first, second, both] = Used::ALL.map(transfer);
            assert!(both.megabits > 1.1 * first.megabits.max(second.megabits), "{pairing:?}: {both:?}");
            assert!(both.carried.iter().all(|&megabits| megabits > 2.5), "{pairing:?}: {both:?}");
            assert_eq!(first.carried[1], 0.0);
        }
    }

    // Requirement: U7
    #[test]
    fn the_second_interface_is_used_soon_though_its_first_packets_are_lost() {
        for seed in 0..4 {
            let transfer = |used| {
                let profile = DEFAULT.to_owned();
                measure(&Cell { profile, pairing: Pairing::Equal, used, added: 0.15, seed }).megabits
            };
            let [first, second, both] = Used::ALL.map(transfer);
            assert!(both > 0.93 * (first + second), "{seed}: {first} + {second}, together {both}");
        }
    }
}
