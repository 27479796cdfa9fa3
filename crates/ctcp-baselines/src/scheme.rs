//! Coding schemes of the papers, and the TCP that they compare with.

mod classic;
mod sparse;

use ctcp_proto::scheme::{Code, CodeSpec, RepairRule, Scheme, Setup, TakesRatio, WindowOf};
use ctcp_proto::{Ratio, Redundancy};

use classic::{Classic, Reading, Source};
use sparse::SparseBlockCode;

/// Systematic block code whose combinations span a few neighbours (thesis).
pub const SPARSE: Code = Code::new(&CodeSpec {
    number: 2,
    name: "sparse",
    make: |setup| Box::new(SparseBlockCode::new(setup)),
    redundancies: &["fixed", "from-loss", "feedback"],
    window: WindowOf::Packets,
    spans_window: false,
    expires: false,
});

/// What the window code can follow.
const OF_WINDOW: &[&str] = &["fixed", "from-loss", "feedback", "end-of-transmission", "pseudo-block"];

/// A code of a classical source.
const fn symbols(
    number: u8,
    name: &'static str,
    spans_window: bool,
    make: fn(&Setup) -> Box<dyn Scheme>,
) -> CodeSpec {
    let redundancies: &[&str] = if spans_window { OF_WINDOW } else { &["feedback"] };
    CodeSpec { number, name, make, redundancies, window: WindowOf::Symbols, spans_window, expires: false }
}

/// Makes a classical source.
fn source(setup: &Setup, source: Source) -> Box<dyn Scheme> {
    Box::new(Classic::new(setup, source))
}

/// Combinations of all symbols that the receiver has not seen (TCP/NC).
pub const WINDOW: Code =
    Code::new(&symbols(1, "window", true, |setup| source(setup, Source::coded(Reading::TcpNc))));
pub(crate) const WINDOW_UNPACED: Code =
    Code::new(&symbols(1, "window", true, |setup| source(setup, Source::coded(Reading::TcpNc).unpaced())));

/// The same as EOT/PB reads it: the sink acknowledges only what is new, and a time-out sends one symbol again.
pub const WINDOW_EOT: Code =
    Code::new(&symbols(6, "window-eot", true, |setup| source(setup, Source::coded(Reading::EotPb))));
pub(crate) const WINDOW_EOT_UNPACED: Code = Code::new(&symbols(6, "window-eot", true, |setup| {
    source(setup, Source::coded(Reading::EotPb).unpaced())
}));

/// The same, unpaced, where the source estimates N_lp itself: one more a round trip after each new symbol and one less for each acknowledged
/// (EOT/PB section V), instead of reading it from the acknowledgements.
pub const WINDOW_EOT_ESTIMATED: Code = Code::new(&symbols(6, "window-eot", true, |setup| {
    source(setup, Source::coded(Reading::EotPb).unpaced().estimating())
}));

/// No coding, and TCP's own recovery: cumulative acknowledgements, fast retransmit, one timer (RFC 5681, 6582, 6298). At high loss it is
/// slower than a kernel's TCP, and [`Code::PLAIN`] faster.
pub const CLASSIC: Code =
    Code::new(&symbols(4, "classic", false, |setup| source(setup, Source::plain(Reading::NewReno))));
pub(crate) const CLASSIC_UNPACED: Code = Code::new(&symbols(4, "classic", false, |setup| {
    source(setup, Source::plain(Reading::NewReno).unpaced())
}));

/// No coding, and the recovery of TCP Vegas: what TCP/NC compares with.
pub const VEGAS_SOURCE: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc))));
pub(crate) const VEGAS_SOURCE_UNPACED: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc).unpaced())));

/// R combinations for each new symbol, and after the last symbol as many as the receiver is known to lack (EOT).
pub static END_OF_TRANSMISSION: RepairRule = RepairRule {
    number: 4,
    name: "end-of-transmission",
    takes_ratio: TakesRatio::Optional,
    is_short: |_| false,
    windows_in_block: 1.0,
};

/// The same, also every hundred symbols (PB).
pub static PSEUDO_BLOCK: RepairRule = RepairRule {
    number: 5,
    name: "pseudo-block",
    takes_ratio: TakesRatio::Optional,
    is_short: |_| false,
    windows_in_block: 1.0,
};

/// [`END_OF_TRANSMISSION`] with R.
#[must_use]
pub const fn end_of_transmission(ratio: Ratio) -> Redundancy {
    Redundancy::with_ratio(&END_OF_TRANSMISSION, ratio)
}

/// [`PSEUDO_BLOCK`] with R.
#[must_use]
pub const fn pseudo_block(ratio: Ratio) -> Redundancy {
    Redundancy::with_ratio(&PSEUDO_BLOCK, ratio)
}
