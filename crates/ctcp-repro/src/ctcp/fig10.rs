//! Fig. 10: throughput on an 802.11 link of 11 Mbit/s against the mean rate of a hidden terminal, which sends at exponential intervals.
//!
//! The text prints that CTCP consistently gets about twice what TCP Cubic gets, and no throughput; the path is that of
//! [`super::wireless`]: packets that overlap a frame of the hidden terminal are lost, and the card does not send them again.
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

/// Mean rates of the hidden terminal: 9 to 43 % of the packets collide. Below, a kernel's Cubic gets more than half of the link by itself
/// (0.25 Mbit/s: 2.9 Mbit/s, 0.1: 5.1), so that nobody could get twice of it.
const KILOBITS: [u64; 7] = [400, 600, 800, 1_000, 1_500, 2_000, 2_500];

fn plan(settings: &Settings) -> Plan {
    interference::plan(settings, figure())
}

/// The figure at all its places.
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

/// Beside a hidden terminal of this rate; the text says "about twice" of all.
fn place(kilobits: u64) -> Place {
    let megabits = kilobits as f64 / 1e3;
    Place { megabits, in_text: megabits, path: HIDDEN_TERMINAL.beside_terminal(kilobits), printed: 2.0 }
}
