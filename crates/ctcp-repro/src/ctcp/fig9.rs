//! Fig. 9: throughput against the PHY rate on an 802.11 link next to a microwave oven, which transmits for 9 ms of
//! every 20 ms.
//!
//! The text prints the ratio of CTCP's throughput to TCP's: 2 at 5.5 Mbit/s, 3 at 8, 11 and 18, 10 above. It prints no
//! throughput, so there is no TCP curve to fit. The path, defined in [`super::wireless`], models only airtime and
//! pulses. It has no retransmissions by the card, and none of the losses by distance that end the paper's curves above
//! 36 Mbit/s.
//!
//! Requirement: C11

use super::PAPER;
use super::interference::{self, Figure, Place};
use super::wireless::{OVEN, Phy};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::plan::Plan;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig9",
    paper: PAPER,
    title: "an 802.11 link beside a microwave oven",
    plan,
    takes: &[Parameter::Time],
};

fn plan(settings: &Settings) -> Plan {
    interference::plan(settings, figure())
}

/// Returns the figure with all its points.
#[must_use]
pub fn figure() -> Figure {
    Figure {
        title: "802.11 beside a microwave oven (CTCP, Fig. 9)",
        label: "PHY rate (Mbit/s)",
        places: OVEN.map(place).to_vec(),
        notes: vec![
            "a packet is lost when any of its airtime is in a pulse: half of the time or more; cards retransmit, this one does not",
            "8 Mbit/s in the text are taken for 802.11's 9; the factor 10 is printed for all rates above 18 Mbit/s",
            "the paper's TCP falls to zero above 36 Mbit/s by losses of the radio path, which are not modelled",
        ],
    }
}

fn place(phy: Phy) -> Place {
    let megabits = phy.kilobits as f64 / 1e3;
    let in_text = if megabits == 9.0 { 8.0 } else { megabits };
    Place { megabits, in_text, path: phy.beside_oven(), printed: printed(phy) }
}

/// Returns the printed ratio of CTCP's throughput to TCP's.
fn printed(phy: Phy) -> f64 {
    if phy.kilobits <= 5_500 {
        2.0
    } else if phy.kilobits <= 18_000 {
        3.0
    } else {
        10.0
    }
}
