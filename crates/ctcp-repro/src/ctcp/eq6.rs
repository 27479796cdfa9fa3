//! Eq. 6: how flows share a link under the model's assumptions. The queue is short or empty, and flows that share a
//! loss event back off together.
//!
//! ```text
//!   a0 ---\                         round trips    interference hits the packets of all flows at once, every second
//!   a1 ----+=== bottleneck === sinks   losses      each flow loses packets on its own access link
//!   b0 ---/                         back-offs      the bottleneck's queue overflows; a halves, b takes RTTmin/RTT
//! ```
//!
//! Each pair of classes, a and b, differs in one property. The throughput of a flow of class a, as a share of the sum
//! of one a and one b, is compared with the prediction of Eq. 6. Queue overflow is an exception to "together": the
//! model assumes that every flow loses a packet at each overflow.
//!
//! Requirement: C12

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::CTCP_CONSTANT_ALPHA;
use ctcp_netem::{LinkConfig, LossModel, PathConfig, QueueLimit};
use ctcp_proto::congestion::Algorithm;
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

use super::PAPER;
use super::shared_link::tcp;
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};
use crate::theory::shares::{Flow, backoff_at_overflow, shares, windows_under_loss};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-eq6",
    paper: PAPER,
    title: "how flows of two kinds share a link, against Eq. 6",
    plan,
    takes: &[Parameter::Time],
};

/// The shorter round trip.
const RTT: Duration = Duration::from_millis(40);
const WARM_UP: Duration = Duration::from_secs(30);
/// Bytes of a full packet on the wire, and its application bytes.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1426.0;
/// The rate in the scenarios where the queue overflows. In the others the rate is unlimited.
const MEGABITS: u64 = 25;
/// Loss of class a in the scenarios with different losses.
const LOSS: f64 = 0.004;

/// The difference between the classes: a ratio of the second to the first, or for back-offs the queue in
/// bandwidth-delay products.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Difference {
    RoundTrips(f64),
    Losses(f64),
    BackOffs(f64),
}

use Difference::{BackOffs, Losses, RoundTrips};

const DIFFERENCES: [Difference; 10] = [
    RoundTrips(1.0),
    RoundTrips(1.5),
    RoundTrips(2.0),
    RoundTrips(3.0),
    Losses(2.0),
    Losses(4.0),
    Losses(8.0),
    BackOffs(0.25),
    BackOffs(0.5),
    BackOffs(1.0),
];

impl Difference {
    fn series(self) -> (&'static str, f64) {
        match self {
            RoundTrips(ratio) => ("RTT ratio", ratio),
            Losses(ratio) => ("loss ratio", ratio),
            BackOffs(queue) => ("fixed against adaptive, queue in BDP", queue),
        }
    }

    /// Returns the number of flows per class. The loss model assumes many flows.
    fn flows(self) -> usize {
        if matches!(self, Losses(_)) { 4 } else { 1 }
    }

    fn bottleneck(self) -> LinkConfig {
        let one_way = LinkConfig::default().with_delay(RTT / 2);
        match self {
            RoundTrips(_) => {
                // As long as the shorter round trip, so that a flow backs off once, and with enough loss to hit every
                // flow.
                let loss = Probability::new(0.5).expect("a probability");
                let (period, on) = (Duration::from_secs(1), RTT);
                one_way.with_loss(LossModel::OnOff { period, on, loss })
            }
            Losses(_) => one_way,
            BackOffs(queue) => {
                let rate = Rate::from_megabits_per_second(MEGABITS);
                one_way.with_rate(rate).with_queue(QueueLimit::bandwidth_delay_products(queue, rate, RTT))
            }
        }
    }

    /// Returns the access link of the flows of class b or a.
    fn access(self, is_b: bool) -> PathConfig {
        let way = LinkConfig::default();
        match self {
            RoundTrips(ratio) if is_b => PathConfig::symmetric(way.with_delay(RTT.mul_f64(ratio - 1.0) / 2)),
            Losses(ratio) => {
                let loss = Probability::new(if is_b { LOSS * ratio } else { LOSS }).expect("a probability");
                PathConfig { forward: way.clone().with_loss(LossModel::Bernoulli(loss)), backward: way }
            }
            _ => PathConfig::symmetric(way),
        }
    }

    fn profile(self, is_b: bool) -> Profile {
        tcp(if is_b && matches!(self, BackOffs(_)) { CTCP_CONSTANT_ALPHA } else { Algorithm::RENO })
    }

    /// Returns the prediction of Eq. 6, given the packets in flight of all flows.
    fn predicted(self, under_way: f64) -> f64 {
        let flow = Flow { increase: 1.0, round_trip: RTT.as_secs_f64(), backoff: 0.5 };
        match self {
            RoundTrips(ratio) => shares(&[flow, Flow { round_trip: flow.round_trip * ratio, ..flow }])[0],
            Losses(ratio) => {
                let windows = windows_under_loss(&[LOSS, LOSS * ratio], under_way / self.flows() as f64);
                windows[0] / (windows[0] + windows[1])
            }
            BackOffs(queue) => {
                let rate = MEGABITS as f64 * 1e6 / 8.0 / PACKET;
                let backoff = backoff_at_overflow(flow.round_trip, queue * rate * flow.round_trip, rate);
                shares(&[flow, Flow { backoff, ..flow }])[0]
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Cell {
    difference: Difference,
    seconds: u64,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let quick = settings.quick;
    let (seeds, seconds) = (settings.seeds_or(8, 1), settings.seconds_or(600, 60));
    let of = |difference| (0..u64::from(seeds)).map(move |seed| Cell { difference, seconds, seed });
    Plan::new(DIFFERENCES.into_iter().flat_map(of).collect(), measure, move |found| {
        outcome(quick, seeds, found)
    })
}

/// Returns the share of class a, the packets in flight of all flows, and the number of events.
fn measure(cell: &Cell) -> (f64, f64, u64) {
    let &Cell { difference, seconds, seed } = cell;
    let path =
        PathConfig { forward: difference.bottleneck(), backward: LinkConfig::default().with_delay(RTT / 2) };
    let mut dumbbell = Chain::dumbbell(seed, &path);
    for number in 0..2 * difference.flows() {
        let is_b = number % 2 == 1;
        let transport = TransportConfig { profile: difference.profile(is_b), ..TransportConfig::default() };
        // No two flows begin at the same time.
        let start = Duration::from_millis(37 * number as u64 + 211 * seed);
        let flow = FlowConfig::new(Script::endless(), &transport).starting_after(start);
        dumbbell.flow(flow.over(difference.access(is_b)));
    }
    let mut network = dumbbell.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    let mut read = |time| {
        network.run_for(time);
        let of =
            |class| (class..2 * difference.flows()).step_by(2).map(|flow| network.bytes_read(flow)).sum();
        ([of(0), of(1)] as [u64; 2], network.simulation.events())
    };
    let (before, _) = read(WARM_UP);
    let (after, events) = read(Duration::from_secs(seconds));
    let [a, b] = [0, 1].map(|class| (after[class] - before[class]) as f64);
    let under_way = (a + b) / PAYLOAD / seconds as f64 * RTT.as_secs_f64();
    (a / (a + b), under_way, events)
}

fn outcome(quick: bool, seeds: u32, found: &[(Cell, (f64, f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "What a flow of class a gets of what it and one of b get (CTCP, Eq. 6)",
        x: Axis { label: "ratio, or queue in bandwidth-delay products", scale: Scale::Linear },
        y: Axis { label: "share of class a", scale: Scale::Percent },
        hidden: &[],
        dots: &["simulated"],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for difference in DIFFERENCES {
        let of = |pick: fn(&(f64, f64, u64)) -> f64| -> Summary {
            let cells = found.iter().filter(|(cell, _)| cell.difference == difference);
            summary(&cells.map(|(_, got)| pick(got)).collect::<Vec<f64>>())
        };
        let (share, under_way) = (of(|got| got.0), of(|got| got.1));
        let predicted = difference.predicted(under_way.mean);
        let (series, x) = difference.series();
        outcome.exact(&format!("{series}: Eq. 6"), x, predicted);
        outcome.point(&format!("{series}: simulated"), x, &share);
        let name = format!("{series} of {x}: simulated / Eq. 6");
        // The queue overflows only every few seconds, so a minute has too few overflows.
        if quick && matches!(difference, BackOffs(_)) {
            outcome.skip(name);
        } else {
            outcome.check(name, Want::Within { of: 1.0, margin: 0.1 }, share.mean / predicted);
        }
    }
    outcome.events = found.iter().map(|(_, (.., events))| events).sum();
    outcome.notes = vec![
        "class a: Reno; class b: Reno with a longer round trip or more loss, or the same with a back-off of RTTmin/RTT",
        "round trips: half of the packets of all flows are lost in 40 ms of every second, so that all back off together",
        "losses: gamma = (1-p)^window as in the paper, four flows of each class, the mean of all windows taken from the simulation",
        "back-offs: a queue that overflows on a link that loses nothing else; Eq. 6 with beta = T / (T + queue / rate)",
        "the paper prints no numbers of this model",
    ];
    outcome
}
