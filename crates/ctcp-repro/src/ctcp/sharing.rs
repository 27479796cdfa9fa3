//! Two flows on one link: a standard TCP and whoever stands beside it. Figs. 4 and 5 say on which links, and how they differ.
//!
//! ```text
//!   TCP Reno      ---+--- loss --- [ queue ] === rate ===+--> receiver
//!   its companion ---+                                   +--> receiver
//! ```

use core::time::Duration;

use super::contender::Contender;
use super::shared_link::Bottleneck;
use crate::experiment::Settings;
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::Plot;
use crate::statistics::{Summary, summary};

/// Who stands beside the TCP flow: CTCP, ourselves, and, as the yardstick, another TCP.
const COMPANIONS: [Contender; 3] = [Contender::Ctcp, Contender::Default, Contender::Reno];

/// One of the figures.
pub(super) struct Figure {
    pub(super) plot: Plot,
    pub(super) links: Vec<Bottleneck>,
    /// What of a link is drawn against.
    pub(super) x: fn(&Bottleneck) -> f64,
    /// The same in words.
    pub(super) x_in_words: fn(&Bottleneck) -> String,
    pub(super) notes: Vec<&'static str>,
}

/// All companions on all links, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), if settings.quick { 30 } else { 300 });
    let mut cells = Vec::new();
    for &link in &figure.links {
        for companion in COMPANIONS {
            cells.extend((0..u64::from(seeds)).map(|seed| Sharing { link, companion, seconds, seed }));
        }
    }
    let is_quick = settings.quick;
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, &figure, found))
}

/// A TCP flow and its companion on a link.
#[derive(Clone, Debug)]
struct Sharing {
    link: Bottleneck,
    companion: Contender,
    seconds: u64,
    seed: u64,
}

/// What the two flows get over the whole time in Mbit/s, the TCP flow first.
type Goodputs = [f64; 2];

/// Both flows, each begun first with half of the seeds, and the other a little later by the seed: without losses nothing else of a run is
/// left to chance, and who fills the queue first has an advantage for a while.
fn measure(sharing: &Sharing) -> (Goodputs, u64) {
    let late = Duration::from_millis(300 + 170 * sharing.seed);
    let starts = if sharing.seed.is_multiple_of(2) { [Duration::ZERO, late] } else { [late, Duration::ZERO] };
    let flows = [(Contender::Reno.profile(), starts[0]), (sharing.companion.profile(), starts[1])];
    let mut network = sharing.link.with_flows(sharing.seed, &flows);
    let time = Duration::from_secs(sharing.seconds);
    network.run_for(time);
    let goodput = |flow| sharing.link.share(&network, flow, time) * sharing.link.megabits as f64;
    ([goodput(0), goodput(1)], network.simulation.events())
}

/// What the TCP flow and its companion got on a link, over the seeds.
fn goodputs(found: &[(Sharing, (Goodputs, u64))], link: Bottleneck, companion: Contender) -> [Summary; 2] {
    [0, 1].map(|flow: usize| {
        let here = found.iter().filter(|(cell, _)| cell.link == link && cell.companion == companion);
        summary(&here.map(|(_, (goodputs, _))| goodputs[flow]).collect::<Vec<f64>>())
    })
}

/// What the TCP flow gets beside `companion`, as a part of what each of two TCP flows gets.
fn friendliness(found: &[(Sharing, (Goodputs, u64))], link: Bottleneck, companion: Contender) -> f64 {
    let [first, second] = goodputs(found, link, Contender::Reno);
    goodputs(found, link, companion)[0].mean / (0.5 * (first.mean + second.mean))
}

fn outcome(seeds: u32, is_quick: bool, figure: &Figure, found: &[(Sharing, (Goodputs, u64))]) -> Outcome {
    let mut outcome = Outcome::new(figure.plot, seeds);
    for &link in &figure.links {
        for companion in COMPANIONS {
            let beside = if companion == Contender::Reno { "a second TCP" } else { companion.name() };
            let ([tcp, other], x) = (goodputs(found, link, companion), (figure.x)(&link));
            outcome.point(&format!("{} Mbit/s: TCP beside {beside}", link.megabits), x, &tcp);
            if companion != Contender::Reno {
                outcome.point(&format!("{} Mbit/s: {beside}", link.megabits), x, &other);
            }
        }
    }
    for companion in Contender::OURS {
        for &link in &figure.links {
            let name = format!(
                "{} Mbit/s, {}: TCP beside {}, of what it gets beside TCP",
                link.megabits,
                (figure.x_in_words)(&link),
                companion.name()
            );
            // Half a minute of TCP is a handful of saw teeth, and two flows of a long round trip take minutes to settle.
            if is_quick {
                outcome.skip(name);
            } else {
                outcome.check(name, Want::AtLeast(0.9), friendliness(found, link, companion));
            }
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = figure.notes.clone();
    outcome
}
