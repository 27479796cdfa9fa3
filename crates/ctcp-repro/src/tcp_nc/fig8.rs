//! Fig. 8: a flow over three hops whose losses change with time, the third hop being the worst on average. It runs
//! without coding, with coding at the source only, and with re-encoding at node 3, just before the worst hop.
//!
//! ```text
//!   source ==== node ==== node 3 ==== sink        R = 1.8 at the source, R_int = 1.5 at node 3
//!         0.08      0.08        0.34              mean losses, the same for acknowledgements
//! ```
//!
//! Losses before node 3 do not reduce its re-encoding, because it combines what it has received. Without re-encoding
//! the source's redundancy must compensate for all three hops. The paper calls its losses "specified" but does not
//! print them; ours vary by 80 % of their means.
//!
//! In addition to the paper's three, the same network with the library itself: end to end, and through its relays.
//!
//! Requirement: N4, N5

use core::time::Duration;

use ctcp_netem::{Charge, LossModel, PathConfig};
use ctcp_proto::{HopRepair, Profile, Ratio, TransportConfig};
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::series::increments;
use ctcp_sim::topology::{Chain, Relayed};
use ctcp_sim::{Scrutiny, Simulation};

use super::PAPER;
use super::tandem::{at_rest, chain, flow, hop_that_loses, tcp, tcp_nc, throughput};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "tcpnc-fig8",
    paper: PAPER,
    title: "a flow over three hops with changing losses, with and without re-encoding",
    plan,
    takes: &[],
};

/// Mean loss of each hop, and the period of its variation in seconds.
const HOPS: [(f64, u64); 3] = [(0.08, 160), (0.08, 214), (0.34, 107)];
/// The amplitude of a loss relative to its mean.
const SWING: f64 = 0.8;
const R: f64 = 1.8;
const R_INT: f64 = 1.5;
/// The router before the third hop. The paper counts the source as node 1.
const NODE_3: usize = 2;
const TIME: Duration = Duration::from_secs(642);
const BIN: Duration = Duration::from_secs(5);
/// Mbit per packet.
const MEGABITS: f64 = 8_000.0 / 1e6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    None,
    AtSource,
    AtNode3Too,
    /// The library, with relays at these routers.
    Ours(&'static [usize]),
}

/// The compared codings, and the throughput in the paper's table in Mbit/s.
const CODINGS: [(Coding, &str, Option<f64>); 6] = [
    (Coding::None, "TCP", Some(0.0042)),
    (Coding::AtSource, "end-to-end coding", Some(0.1420)),
    (Coding::AtNode3Too, "re-encoding at node 3", Some(0.2448)),
    (OURS, "ctcp, end to end", None),
    (OURS_AT_NODE_3, "ctcp, relay at node 3", None),
    (OURS_AT_BOTH, "ctcp, relays at both nodes", None),
];
const OURS: Coding = Coding::Ours(&[]);
const OURS_AT_NODE_3: Coding = Coding::Ours(&[NODE_3]);
const OURS_AT_BOTH: Coding = Coding::Ours(&[1, NODE_3]);

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(40, 20);
    let cells =
        CODINGS.iter().flat_map(|&(coding, ..)| (0..u64::from(seeds)).map(move |seed| (coding, seed)));
    Plan::new(cells.collect(), measure, move |found| outcome(seeds, found))
}

/// The result of a run.
type Run = (f64, Vec<f64>, u64);

/// Returns the throughput over the whole time and per bin in Mbit/s, and the number of events.
fn measure(&(coding, seed): &(Coding, u64)) -> Run {
    let hops = HOPS.map(|(mean, period)| hop(mean, Duration::from_secs(period)));
    if let Coding::Ours(relays) = coding {
        return measure_ours(seed, hops, relays);
    }
    let profile: Profile = if coding == Coding::None { tcp() } else { tcp_nc(R) };
    let mut chain = chain(seed, &hops, [flow(profile)]);
    if coding == Coding::AtNode3Too {
        chain.recode_at(NODE_3, 0, Ratio::new(R_INT).expect("R_int is at least 1"));
    }
    let mut network = at_rest(chain);
    network.keep_series(BIN);
    network.run_for(TIME);
    let series = network.simulation.series().expect("the series is kept");
    let decoded = increments(series.connection(network.flows()[0].receiver), |sample| sample.symbols_decoded);
    let bins = decoded.iter().map(|&count| count as f64 * MEGABITS / BIN.as_secs_f64()).collect();
    (throughput(&network, 0, TIME), bins, network.simulation.events())
}

/// The same with the library's own connections and relays. Links charge the real size of every packet, and what counts is
/// what the application reads.
fn measure_ours(seed: u64, hops: [PathConfig; 3], relays: &[usize]) -> Run {
    let hops = hops.map(|hop| PathConfig {
        forward: hop.forward.with_charge(Charge::True),
        backward: hop.backward.with_charge(Charge::True),
    });
    let flow = FlowConfig::new(Script::endless(), &TransportConfig::default());
    let mut network = if relays.is_empty() {
        let mut chain = Chain::new(seed, &hops);
        chain.flow(flow);
        chain.build()
    } else {
        let mut chain = Relayed::chain(seed, &hops, HopRepair::Combinations);
        chain.flow(0, hops.len(), &[relays], flow);
        chain.build()
    };
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    let megabits = |network: &Network| network.bytes_read(0) as f64 * 8e-6;
    let mut bins = Vec::new();
    while network.simulation.now() + BIN <= Simulation::START + TIME {
        let before = megabits(&network);
        network.run_for(BIN);
        bins.push((megabits(&network) - before) / BIN.as_secs_f64());
    }
    (megabits(&network) / TIME.as_secs_f64(), bins, network.simulation.events())
}

/// Returns a hop whose loss varies from the beginning on.
fn hop(mean: f64, period: Duration) -> PathConfig {
    let loss = LossModel::sinusoid(Simulation::START, mean, SWING * mean, period);
    hop_that_loses(loss.expect("a probability all the time"))
}

fn outcome(seeds: u32, found: &[((Coding, u64), Run)]) -> Outcome {
    let plot = Plot {
        title: "A flow over three hops with changing losses (TCP/NC, Fig. 8)",
        x: Axis { label: "time (s)", scale: Scale::Linear },
        y: Axis { label: "throughput, mean of all seeds (Mbit/s)", scale: Scale::Linear },
        hidden: &["all the time"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let runs = |coding| found.iter().filter(move |((this, _), _)| *this == coding).map(|(_, run)| run);
    let over_all = |coding| -> Summary {
        summary(&runs(coding).map(|(throughput, ..)| *throughput).collect::<Vec<f64>>())
    };
    for (coding, name, printed) in CODINGS {
        let bins = runs(coding).map(|(_, bins, _)| bins.len()).min().unwrap_or_default();
        for bin in 0..bins {
            let got: Vec<f64> = runs(coding).map(|(_, bins, _)| bins[bin]).collect();
            outcome.point(name, (bin + 1) as f64 * BIN.as_secs_f64(), &summary(&got));
        }
        let series = format!("{name}, all the time");
        outcome.point(&series, TIME.as_secs_f64(), &over_all(coding));
        if let Some(printed) = printed {
            outcome.published(&series, TIME.as_secs_f64(), printed);
        }
    }
    let [plain, at_source, at_node_3, ours, ours_at_node_3, ours_at_both] =
        CODINGS.map(|(coding, ..)| over_all(coding).mean);
    outcome.check("re-encoding / end-to-end coding", Want::AtLeast(1.5), at_node_3 / at_source);
    outcome.check("end-to-end coding / TCP", Want::AtLeast(20.0), at_source / plain);
    outcome.check("ctcp: relay at node 3 / end to end", Want::AtLeast(1.72), ours_at_node_3 / ours);
    outcome.check(
        "ctcp: relays at both nodes / at node 3",
        Want::AtLeast(1.0),
        ours_at_both / ours_at_node_3,
    );
    outcome.check(
        "ctcp's relay / the paper's, both at node 3",
        Want::AtLeast(1.0),
        ours_at_node_3 / at_node_3,
    );
    outcome.check("seeds", Want::AtLeast(20.0), f64::from(seeds));
    outcome.events = found.iter().map(|(_, (_, _, events))| events).sum();
    outcome.notes = vec![
        "the losses are ours: p_k(t) = a_k (1 + 0.8 sin(2 pi t / T_k)), a = 0.08, 0.08, 0.34, T = 160, 214, 107 s, both ways",
        "node 3 sends what comes and, behind it, combinations of all that came, 1.5 for each arrival together",
        "ctcp: real sizes of packets and what the application reads; its controller takes loss above 35 to 48 % for congestion, so it hardly sends while a hop, or the whole way, loses more",
        "one run says little: the third hop loses up to 61 %, and a flow that loses its acknowledgements then stalls",
    ];
    outcome
}
