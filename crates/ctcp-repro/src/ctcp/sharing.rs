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

/// One of the figures.
pub struct Figure {
    /// How it is drawn.
    pub plot: Plot,
    /// Where it is measured.
    pub links: Vec<Bottleneck>,
    /// Who stands beside the TCP flow: ours, and, as the yardstick, another TCP.
    pub companions: &'static [Contender],
    /// What of a link is drawn against.
    pub x: fn(&Bottleneck) -> f64,
    /// The same in words.
    pub x_in_words: fn(&Bottleneck) -> String,
    /// What a reader must know.
    pub notes: Vec<&'static str>,
}

/// CTCP, ourselves, and another TCP.
pub const COMPANIONS: &[Contender] = &[Contender::Ctcp, Contender::Default, Contender::Reno];

/// All companions on all links, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 30));
    let (cells, is_quick) = (figure.cells(seconds, seeds), settings.quick);
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, &figure, found))
}

impl Figure {
    /// All companions on all links.
    #[must_use]
    pub fn cells(&self, seconds: u64, seeds: u32) -> Vec<Sharing> {
        let mut cells = Vec::new();
        for &link in &self.links {
            for &companion in self.companions {
                cells.extend((0..u64::from(seeds)).map(|seed| Sharing { link, companion, seconds, seed }));
            }
        }
        cells
    }
}

/// A TCP flow and its companion on a link.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// On what.
    pub link: Bottleneck,
    /// Beside whom.
    pub companion: Contender,
    /// For how long.
    pub seconds: u64,
    /// Who begins first and by how much follows from it.
    pub seed: u64,
}

/// What the two flows get over the whole time in Mbit/s, the TCP flow first.
pub type Goodputs = [f64; 2];

impl Sharing {
    /// When each of both flows begins: each is first with half of the seeds, and the other comes a little later by the seed. Without losses
    /// nothing else of a run is left to chance, and who fills the queue first has an advantage for a while.
    #[must_use]
    pub fn starts(&self) -> [Duration; 2] {
        let late = Duration::from_millis(300 + 170 * self.seed);
        if self.seed.is_multiple_of(2) { [Duration::ZERO, late] } else { [late, Duration::ZERO] }
    }
}

/// Both flows, and the work it was.
fn measure(sharing: &Sharing) -> (Goodputs, u64) {
    let starts = sharing.starts();
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

/// What the goodputs say, each pair with the work it was.
#[must_use]
pub fn outcome(seeds: u32, is_quick: bool, figure: &Figure, found: &[(Sharing, (Goodputs, u64))]) -> Outcome {
    let mut outcome = Outcome::new(figure.plot, seeds);
    for &link in &figure.links {
        for &companion in figure.companions {
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
