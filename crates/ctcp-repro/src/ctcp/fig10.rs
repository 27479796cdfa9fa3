//! Fig. 10: throughput on an 802.11 link of 11 Mbit/s against the mean rate of a hidden terminal, which sends at
//! exponential intervals.
//!
//! The text states that CTCP consistently gets about twice the throughput of TCP Cubic, but no throughput. The path is
//! described in [`super::wireless`]: packets that overlap a frame of the hidden terminal are lost and not retransmitted
//! by the card.
//!
//! Requirement: C11

use super::PAPER;
use super::interference::{self, Figure, Place};
use super::wireless::HIDDEN_TERMINAL;
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::plan::Plan;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig10",
    paper: PAPER,
    title: "an 802.11 link with a hidden terminal",
    plan,
    takes: &[Parameter::Time],
};

/// Mean rates of the hidden terminal, at which 9 to 43 % of the packets collide. At lower rates a kernel's Cubic
/// already gets more than half of the link (0.25 Mbit/s: 2.9 Mbit/s, 0.1: 5.1), so no transport could get twice as
/// much.
const KILOBITS: [u64; 7] = [400, 600, 800, 1_000, 1_500, 2_000, 2_500];

fn plan(settings: &Settings) -> Plan {
    interference::plan(settings, figure())
}

/// Returns the figure with all its points.
#[must_use]
pub fn figure() -> Figure {
    Figure {
        title: "802.11 at 11 Mbit/s with a hidden terminal (CTCP, Fig. 10)",
        label: "mean rate of the hidden terminal (Mbit/s)",
        places: KILOBITS.map(place).to_vec(),
        notes: vec![
            "printed is a factor of about 2 at any rate of the hidden terminal; which rates the figure has, the text does not say",
            "a packet that overlaps a frame of the hidden terminal is lost; cards retransmit, this one does not",
        ],
    }
}

/// Returns the point for a hidden terminal of this rate. The text says "about twice" for all of them.
fn place(kilobits: u64) -> Place {
    let megabits = kilobits as f64 / 1e3;
    Place { megabits, in_text: megabits, path: HIDDEN_TERMINAL.beside_terminal(kilobits), printed: 2.0 }
}
