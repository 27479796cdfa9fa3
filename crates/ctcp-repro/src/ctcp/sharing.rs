//! Two flows on one link: a standard TCP and whoever stands beside it (Figs. 4 and 5).
//!
//! ```text
//!   TCP Reno      ---+--- loss --- [ queue ] === rate ===+--> receiver
//!   its companion ---+                                   +--> receiver
//! ```

use core::time::Duration;

use super::contender::Contender;
use super::shared_link::Bottleneck;
use crate::statistics::{Summary, summary};

/// Who stands beside the TCP flow: CTCP, ourselves, and, as the yardstick, another TCP.
pub(super) const COMPANIONS: [Contender; 3] = [Contender::Ctcp, Contender::Default, Contender::Reno];

/// A TCP flow and its companion on a link.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    pub(super) link: Bottleneck,
    pub(super) companion: Contender,
    pub(super) seconds: u64,
    pub(super) seed: u64,
}

/// What the two flows get over the whole time in Mbit/s, the TCP flow first.
pub(super) type Goodputs = [f64; 2];

/// Both flows, each begun first with half of the seeds, and the other a little later by the seed: without losses nothing else of a run is
/// left to chance, and who fills the queue first has an advantage for a while.
pub(super) fn measure(sharing: &Sharing) -> (Goodputs, u64) {
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
pub(super) fn goodputs(
    found: &[(Sharing, (Goodputs, u64))],
    link: Bottleneck,
    companion: Contender,
) -> [Summary; 2] {
    [0, 1].map(|flow: usize| {
        let here = found.iter().filter(|(cell, _)| cell.link == link && cell.companion == companion);
        summary(&here.map(|(_, (goodputs, _))| goodputs[flow]).collect::<Vec<f64>>())
    })
}

/// What the TCP flow gets beside `companion`, as a part of what each of two TCP flows gets.
pub(super) fn friendliness(
    found: &[(Sharing, (Goodputs, u64))],
    link: Bottleneck,
    companion: Contender,
) -> f64 {
    let [first, second] = goodputs(found, link, Contender::Reno);
    goodputs(found, link, companion)[0].mean / (0.5 * (first.mean + second.mean))
}
