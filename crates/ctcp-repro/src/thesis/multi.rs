//! Several interfaces (section 4.2): the same file over two wireless cards at once, with losses added at the server.
//!
//! ```text
//!   server --- losses --- [ queue ] === interface 1 ===> client
//!          --- losses --- [ queue ] === interface 2 ===>           acknowledgements return without loss
//! ```
//!
//! The thesis had two cards in one network and prints the throughput of each. Its packets over the slower of two unequal
//! paths arrived for nothing; what arrives for nothing is counted here.
//!
//! Requirement: U7, U8

mod cell;

use crate::experiment::{Experiment, Settings, Waiting};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

use super::PAPER;
use cell::{Cell, Pairing, Transfer, Used, measure};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-multi",
    paper: PAPER,
    title: "a file over two lossy interfaces at once",
    plan,
    takes: &[],
};

/// The figure on sockets, which cannot be measured yet.
pub const WAITING: Waiting = Waiting {
    id: EXPERIMENT.id,
    paper: PAPER,
    title: EXPERIMENT.title,
    waits_for: "a figure over several paths on sockets: `ctcp-lab testbed compare` has them, `ctcp-lab repro` this figure",
};

/// The added losses of which the thesis prints the throughput, with that of each interface in Mbit/s.
const PUBLISHED: [(f64, [f64; 2]); 4] =
    [(0.0, [13.5, 16.28]), (0.05, [8.99, 9.3]), (0.1, [13.79, 13.13]), (0.15, [9.89, 10.25])];

/// "approximately 30 Mbits/sec" over both, without added loss.
const PUBLISHED_SUM: f64 = 30.0;

/// The part of the printed sum that each profile must reach. The margin of the thesis's own is that of `thesis-single`.
const OF_PRINTED: [(&str, f64); 2] = [(cell::DEFAULT, 0.95), (cell::CTCP, 0.8)];

/// The part of the sum of two interfaces that both together must reach. A connection begins on one and opens the other
/// when the file is already on its way.
const SHARE_OF_SUM: f64 = 0.93;

/// The part of the packets that may arrive for nothing: with losses, some repair is sent ahead of feedback.
const WASTE: (f64, f64) = (0.03, 0.05);

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 2);
    let mut cells = Vec::new();
    for (profile, pairing) in Cell::SERIES {
        for used in Used::ALL {
            for (added, _) in PUBLISHED {
                let cell = |seed| Cell { profile: profile.to_owned(), pairing, used, added, seed };
                cells.extend((0..u64::from(seeds)).map(cell));
            }
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// The transfers of all cells.
struct Found<'a>(&'a [(Cell, Transfer)]);

impl Found<'_> {
    fn of(
        &self,
        (profile, pairing, used, added): (&str, Pairing, Used, f64),
        value: impl Fn(&Transfer) -> f64,
    ) -> Summary {
        let is_it = |cell: &Cell| {
            cell.profile == profile && cell.pairing == pairing && cell.used == used && cell.added == added
        };
        let values = self.0.iter().filter(|(cell, _)| is_it(cell)).map(|(_, transfer)| value(transfer));
        summary(&values.collect::<Vec<f64>>())
    }

    /// The sum of what each interface reaches alone, in Mbit/s.
    fn sum(&self, (profile, pairing, added): (&str, Pairing, f64)) -> f64 {
        let alone = [Used::First, Used::Second]
            .map(|used| self.of((profile, pairing, used, added), |transfer| transfer.megabits).mean);
        alone.iter().sum()
    }
}

fn outcome(seeds: u32, found: &[(Cell, Transfer)]) -> Outcome {
    let plot = Plot {
        title: "11 MB over two wireless interfaces (thesis, section 4.2)",
        x: Axis { label: "added packet loss", scale: Scale::Percent },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["over 1", "over 2", "for nothing"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let all = Found(found);
    for (profile, pairing) in Cell::SERIES {
        for (added, _) in PUBLISHED {
            points(&mut outcome, &all, (profile, pairing, added));
        }
    }
    for (added, interfaces) in PUBLISHED {
        for (interface, megabits) in interfaces.into_iter().enumerate() {
            let series = format!("{}, both, over {}", cell::CTCP, interface + 1);
            outcome.published(&series, added, megabits);
        }
    }
    outcome.published(&format!("{}, both", cell::CTCP), 0.0, PUBLISHED_SUM);
    for (added, interfaces) in PUBLISHED {
        for (profile, part) in OF_PRINTED {
            let both =
                all.of((profile, Pairing::Equal, Used::Both, added), |transfer| transfer.megabits).mean;
            let name = format!("{profile}, both at {} %: {part} of the printed sum (Mbit/s)", 100.0 * added);
            outcome.check(name, Want::AtLeast(part * interfaces.iter().sum::<f64>()), both);
        }
    }
    for pairing in Pairing::ALL {
        for (added, _) in PUBLISHED {
            checks_of_pair(&mut outcome, &all, (pairing, added));
        }
    }
    outcome.events = found.iter().map(|(_, transfer)| transfer.events).sum();
    outcome.notes = vec![
        "the cards: 14.2 and 17.1 Mbit/s, so that 13.5 and 16.28 reach the application, 0.18 and 0.48 % loss as printed, 5 ms, a queue of one bandwidth-delay product",
        "unequal: the second interface has 5 Mbit/s and 120 ms",
        "losses strike before the queue, so they take nothing from the link's rate; the thesis's cards were in one air, and slower at 5 and 15 % than at 10 %",
        "from the first byte to the last; the connection begins on interface 1 and opens interface 2 while the file is on its way",
        "the thesis's profile over unequal interfaces is no faster than over the better one alone, as the thesis says; that was left open there",
        "for nothing: packets with coded data that arrived and were no new degree of freedom, of all that arrived",
    ];
    outcome
}

/// The points of a series of transfers at an added loss.
fn points(outcome: &mut Outcome, all: &Found<'_>, (profile, pairing, added): (&str, Pairing, f64)) {
    let series = |used: Used| format!("{profile}, {}{}", pairing.name(), used.name());
    for used in Used::ALL {
        let at = (profile, pairing, used, added);
        outcome.point(&series(used), added, &all.of(at, |transfer| transfer.megabits));
        outcome.point(
            &format!("{}, for nothing", series(used)),
            added,
            &all.of(at, |transfer| transfer.wasted),
        );
    }
    for interface in 0..2 {
        let at = (profile, pairing, Used::Both, added);
        let carried = all.of(at, |transfer| transfer.carried[interface]);
        outcome.point(&format!("{}, over {}", series(Used::Both), interface + 1), added, &carried);
    }
}

/// The checks of profile `default` on a pair of interfaces.
fn checks_of_pair(outcome: &mut Outcome, all: &Found<'_>, (pairing, added): (Pairing, f64)) {
    let (profile, percent) = (cell::DEFAULT, 100.0 * added);
    let at = (profile, pairing, Used::Both, added);
    let share = all.of(at, |transfer| transfer.megabits).mean / all.sum((profile, pairing, added));
    let name = format!("{profile}, {}both at {percent} % / the sum of each alone", pairing.name());
    outcome.check(name, Want::AtLeast(SHARE_OF_SUM), share);
    let wasted = all.of(at, |transfer| transfer.wasted).mean;
    let most = if added == 0.0 { WASTE.0 } else { WASTE.1 };
    let name = format!("{profile}, {}both at {percent} %, packets for nothing", pairing.name());
    outcome.check(name, Want::AtMost(most), wasted);
}
