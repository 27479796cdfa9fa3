//! The codes that are classical sources.

use ctcp_proto::scheme::{Code, CodeSpec, Scheme, Setup, WindowOf};

use super::{Classic, Reading, Source};

/// Codes as they run on networks: every packet counts against the window, and all are paced.
pub(in crate::scheme) const PARTS: &[Code] = &[WINDOW, CLASSIC, VEGAS_SOURCE, WINDOW_EOT];

/// The same as the papers simulate them: what a classical TCP sends is held by nothing but its window of symbols.
pub(crate) const UNPACED: &[Code] =
    &[WINDOW_UNPACED, CLASSIC_UNPACED, VEGAS_SOURCE_UNPACED, WINDOW_EOT_UNPACED];

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
const WINDOW_UNPACED: Code =
    Code::new(&symbols(1, "window", true, |setup| source(setup, Source::coded(Reading::TcpNc).unpaced())));

/// The same as EOT/PB reads it: the sink acknowledges only what is new, and a time-out sends one symbol again.
pub const WINDOW_EOT: Code =
    Code::new(&symbols(6, "window-eot", true, |setup| source(setup, Source::coded(Reading::EotPb))));
const WINDOW_EOT_UNPACED: Code = Code::new(&symbols(6, "window-eot", true, |setup| {
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
const CLASSIC_UNPACED: Code = Code::new(&symbols(4, "classic", false, |setup| {
    source(setup, Source::plain(Reading::NewReno).unpaced())
}));

/// No coding, and the recovery of TCP Vegas: what TCP/NC compares with.
pub const VEGAS_SOURCE: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc))));
const VEGAS_SOURCE_UNPACED: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc).unpaced())));
