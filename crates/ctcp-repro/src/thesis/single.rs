//! One interface: a file of 11 MB over a wireless link, with losses added at the server, by the thesis's CTCP and by
//! TCP.
//!
//! ```text
//!   server --- added and background loss --- [ queue ] === link ==> client          acknowledgements return without loss
//! ```
//!
//! The thesis measured on a campus network and does not give its rate, round trip and queue. The link here is based on
//! the printed numbers (see [`LINK`]), so that TCP comes out as printed. The comparison is then about CTCP, profile
//! `sparse`. Throughput is that of the application, from its first byte to its last.
//!
//! Requirement: U2, U6

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::SPARSE_PROFILE;
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::congestion::Algorithm;
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;
use ctcp_sim::{Scrutiny, Stop};
use serde::{Deserialize, Serialize};

use super::PAPER;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-single",
    paper: PAPER,
    title: "a file over one lossy interface, sparse code against TCP",
    plan,
    takes: &[],
};

/// A wireless link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Rate of IP packets.
    pub rate: Rate,
    /// Round-trip time without queueing.
    pub rtt: Duration,
    /// Background loss, without the added loss.
    pub loss: f64,
}

/// 16.28 Mbit/s is the highest throughput that the thesis prints for an interface, and 0.95 of a packet is payload. 5
/// ms is its shortest mean round trip. 0.18 and 0.48 % are the losses without added loss (section 4.2). The thesis does
/// not mention the queue; it is one bandwidth-delay product.
pub const LINK: Link =
    Link { rate: Rate::from_bits_per_second(17_100_000), rtt: Duration::from_millis(5), loss: 0.0033 };

/// Bytes of the file.
pub const FILE: u64 = 11_000_000;

/// The added losses. The thesis measured TCP up to 5 % and CTCP up to 15 %.
pub const ADDED: [f64; 7] = [0.0, 0.01, 0.02, 0.05, 0.07, 0.1, 0.15];

/// A time limit longer than any transfer.
const LIMIT: Duration = Duration::from_secs(3_600);

const FLOWS: [(&str, Profile); 6] = [
    (CTCP, SPARSE_PROFILE),
    ("sparse code, Reno's window", sparse(Algorithm::RENO)),
    ("sparse code, window of 2013", sparse(Algorithm::CTCP)),
    (TCP, Profile::TCP),
    ("TCP Cubic", Profile { congestion: Algorithm::CUBIC, ..Profile::TCP }),
    ("profile default", Profile::DEFAULT),
];
/// The thesis's transport.
pub const CTCP: &str = "CTCP (sparse)";
/// The thesis's baseline: Reno.
pub const TCP: &str = "TCP";

/// The sparse code without the thesis's congestion control: with one that halves at a loss, or with the later paper's.
const fn sparse(congestion: Algorithm) -> Profile {
    Profile { congestion, ..SPARSE_PROFILE }
}

/// A transfer.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of the flow in legends.
    pub flow: String,
    /// The added loss.
    pub added: f64,
    /// The seed of the run.
    pub seed: u64,
}

/// The results of a transfer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Throughput in Mbit/s from the first byte to the last.
    pub megabits: f64,
    /// The mean round trip.
    pub rtt_millis: f64,
    /// Share of the sender's packets that were lost, including losses in the queue.
    pub lost: f64,
    /// Number of simulation events.
    pub events: u64,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 2);
    let mut cells = Vec::new();
    for (name, _) in FLOWS {
        for added in ADDED {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { flow: name.to_owned(), added, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, &FLOWS.map(|(name, _)| name), found))
}

impl Link {
    /// Returns both directions for the link model. Acknowledgements are not lost.
    ///
    /// # Panics
    /// Panics if `added` is not a probability.
    #[must_use]
    pub fn path(self, added: f64) -> PathConfig {
        let loss = 1.0 - (1.0 - self.loss) * (1.0 - added);
        let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
        let path = PathConfig::new(self.rate, self.rtt, loss).with_lossless_return();
        let queue = QueueLimit::bandwidth_delay_products(1.0, self.rate, self.rtt);
        PathConfig { forward: path.forward.with_queue(queue), ..path }
    }
}

fn measure(cell: &Cell) -> Transfer {
    let flow = FLOWS.into_iter().find(|(name, _)| *name == cell.flow);
    let profile = flow.expect("cells are made of the flows").1;
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let mut link = Chain::dumbbell(cell.seed, &LINK.path(cell.added));
    link.flow(FlowConfig::new(Script::bulk(FILE), &transport));
    let mut network = link.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    network.run_for(Duration::ZERO);
    let first = time_of_byte(&mut network, 1);
    network.keep_series(Duration::from_millis(10));
    let time = time_of_byte(&mut network, FILE) - first;
    let stats = network.sender_stats(0);
    Transfer {
        megabits: FILE as f64 * 8e-6 / time,
        rtt_millis: mean_rtt(&network) * 1e3,
        lost: stats.packets_lost as f64 / stats.datagrams_sent as f64,
        events: network.simulation.events(),
    }
}

/// Runs until the client has read `bytes`. Returns the time in seconds.
fn time_of_byte(network: &mut Network, bytes: u64) -> f64 {
    let stop = network.simulation.run_for(LIMIT, |simulation| simulation.ledger().total_read() >= bytes);
    assert_eq!(stop, Stop::Done, "{bytes} bytes");
    (network.simulation.now() - ctcp_sim::Simulation::START).as_secs_f64()
}

/// Returns the mean round trip over the transfer in seconds.
fn mean_rtt(network: &Network) -> f64 {
    let series = network.simulation.series().expect("the series is kept");
    let samples = series.connection(network.flows()[0].sender);
    samples.iter().map(|sample| sample.rtt.as_secs_f64()).sum::<f64>() / samples.len().max(1) as f64
}

/// Evaluates the transfers of these flows.
#[must_use]
pub fn outcome(seeds: u32, flows: &[&str], found: &[(Cell, Transfer)]) -> Outcome {
    let plot = Plot {
        title: "11 MB over one wireless interface (thesis, section 4.1)",
        x: Axis { label: "added packet loss", scale: Scale::Percent },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["RTT (ms)", "lost"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let of = |name: &str, added: f64, value: fn(&Transfer) -> f64| -> Summary {
        let cells = found.iter().filter(|(cell, _)| cell.flow == name && cell.added == added);
        summary(&cells.map(|(_, transfer)| value(transfer)).collect::<Vec<f64>>())
    };
    for &name in flows {
        for added in ADDED {
            outcome.point(name, added, &of(name, added, |transfer| transfer.megabits));
            outcome.point(
                &format!("{name}, RTT (ms)"),
                added,
                &of(name, added, |transfer| transfer.rtt_millis),
            );
            outcome.point(&format!("{name}, lost"), added, &of(name, added, |transfer| transfer.lost));
        }
    }
    for (name, megabits, rtt) in [(TCP, 9.92, 6.0), (CTCP, 13.89, 11.0)] {
        outcome.published(name, 0.05, megabits);
        outcome.published(&format!("{name}, RTT (ms)"), 0.05, rtt);
        let found = of(name, 0.05, |transfer| transfer.megabits).mean;
        let margin = 0.2 * megabits;
        outcome.check(format!("{name} at 5 % (Mbit/s)"), Want::Within { of: megabits, margin }, found);
        let found = of(name, 0.05, |transfer| transfer.rtt_millis).mean;
        let margin = 0.2 * rtt;
        outcome.check(
            format!("{name} at 5 %, mean round trip (ms)"),
            Want::Within { of: rtt, margin },
            found,
        );
    }
    for added in [0.01, 0.02, 0.05] {
        let ratio = of(CTCP, added, |transfer| transfer.megabits).mean
            / of(TCP, added, |transfer| transfer.megabits).mean;
        let (name, want) = if added == 0.05 { ("\"in the range of 30 %\"", 1.3) } else { ("more", 1.0) };
        let name = format!("CTCP / TCP at {} %: {name}", 100.0 * added);
        outcome.check(name, Want::AtLeast(want), ratio);
    }
    outcome.events = found.iter().map(|(_, transfer)| transfer.events).sum();
    outcome.notes = vec![
        "the link is not given: 17.1 Mbit/s, 5 ms, 0.33 % loss beside what is added, all from printed numbers, and a queue of one bandwidth-delay product",
        "losses strike before the queue, as iptables at the server makes them; TCP is Reno; lost: share of the sender's packets, in the queue as well",
        "CTCP's window sees no standing queue and grows until two blocks hold it: most of what it sends is lost in the queue",
        "the other graphs of Appendix A print no numbers",
    ];
    outcome
}
