//! Two flows on one link: a standard TCP and a companion. Figs. 4 and 5 define the links and differ only in them.
//!
//! ```text
//!   TCP Reno      ---+--- loss --- [ queue ] === rate ===+--> receiver
//!   companion     ---+                                   +--> receiver
//! ```

use core::time::Duration;

use super::contender::Contender;
use super::shared_link::Bottleneck;
use crate::experiment::Settings;
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::Plot;
use crate::statistics::{Summary, summary};

/// The definition of one of the figures.
pub struct Figure {
    /// The plot.
    pub plot: Plot,
    /// The links of the figure.
    pub links: Vec<Bottleneck>,
    /// The transports next to the TCP flow: coded ones and, as the reference, another TCP.
    pub companions: &'static [Contender],
    /// Returns the position of a link on the x axis.
    pub x: fn(&Bottleneck) -> f64,
    /// Returns the same in words.
    pub x_in_words: fn(&Bottleneck) -> String,
    /// Notes for readers.
    pub notes: Vec<&'static str>,
}

/// CTCP, profile `default`, and another TCP.
pub const COMPANIONS: &[Contender] = &[Contender::Ctcp, Contender::Default, Contender::Reno];

/// Plans the runs of all companions on all links, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 30));
    let (cells, is_quick) = (figure.cells(seconds, seeds), settings.quick);
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, &figure, found))
}

impl Figure {
    /// Returns the runs of all companions on all links.
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
    /// The link.
    pub link: Bottleneck,
    /// The companion.
    pub companion: Contender,
    /// Duration in virtual seconds.
    pub seconds: u64,
    /// Determines which flow begins first and by how much.
    pub seed: u64,
}

/// The goodputs of the two flows over the whole time in Mbit/s, the TCP flow first.
pub type Goodputs = [f64; 2];

impl Sharing {
    /// Returns when each flow begins. Each is first for half of the seeds, and the other one begins slightly later,
    /// depending on the seed. Without losses a run has no other randomness, and the flow that fills the queue first has
    /// an advantage for a while.
    #[must_use]
    pub fn starts(&self) -> [Duration; 2] {
        let late = Duration::from_millis(300 + 170 * self.seed);
        if self.seed.is_multiple_of(2) { [Duration::ZERO, late] } else { [late, Duration::ZERO] }
    }
}

/// Returns both goodputs and the number of events.
fn measure(sharing: &Sharing) -> (Goodputs, u64) {
    let starts = sharing.starts();
    let flows = [(Contender::Reno.profile(), starts[0]), (sharing.companion.profile(), starts[1])];
    let mut network = sharing.link.with_flows(sharing.seed, &flows);
    let time = Duration::from_secs(sharing.seconds);
    network.run_for(time);
    let goodput = |flow| sharing.link.share(&network, flow, time) * sharing.link.megabits as f64;
    ([goodput(0), goodput(1)], network.simulation.events())
}

/// Returns the goodputs of the TCP flow and its companion on a link, over the seeds.
fn goodputs(found: &[(Sharing, (Goodputs, u64))], link: Bottleneck, companion: Contender) -> [Summary; 2] {
    [0, 1].map(|flow: usize| {
        let here = found.iter().filter(|(cell, _)| cell.link == link && cell.companion == companion);
        summary(&here.map(|(_, (goodputs, _))| goodputs[flow]).collect::<Vec<f64>>())
    })
}

/// Returns what the TCP flow gets next to `companion`, relative to what each of two TCP flows gets.
fn friendliness(found: &[(Sharing, (Goodputs, u64))], link: Bottleneck, companion: Contender) -> f64 {
    let [first, second] = goodputs(found, link, Contender::Reno);
    goodputs(found, link, companion)[0].mean / (0.5 * (first.mean + second.mean))
}

/// Evaluates the goodputs, each pair with its number of events.
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
            // Half a minute of TCP has only a handful of sawtooth cycles, and two flows with a long round trip take
            // minutes to converge.
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
