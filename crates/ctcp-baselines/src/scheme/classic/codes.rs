//! The codes of classical sources.

use ctcp_proto::scheme::{Code, CodeSpec, Scheme, Setup, WindowOf};

use super::{Classic, Reading, Source};

/// The codes for real networks: every packet counts towards the window, and all are paced.
pub(in crate::scheme) const PARTS: &[Code] = &[WINDOW, CLASSIC, VEGAS_SOURCE, WINDOW_EOT];

/// The same codes as the papers simulate them: only the window of symbols limits a classical TCP.
pub(crate) const UNPACED: &[Code] =
    &[WINDOW_UNPACED, CLASSIC_UNPACED, VEGAS_SOURCE_UNPACED, WINDOW_EOT_UNPACED];

/// The repair rules that the window code supports.
const OF_WINDOW: &[&str] = &["fixed", "from-loss", "feedback", "end-of-transmission", "pseudo-block"];

/// Returns the specification of a classical source.
const fn symbols(
    number: u8,
    name: &'static str,
    spans_window: bool,
    make: fn(&Setup) -> Box<dyn Scheme>,
) -> CodeSpec {
    let redundancies: &[&str] = if spans_window { OF_WINDOW } else { &["feedback"] };
    CodeSpec { number, name, make, redundancies, window: WindowOf::Symbols, spans_window, expires: false }
}

/// Creates a classical source.
fn source(setup: &Setup, source: Source) -> Box<dyn Scheme> {
    Box::new(Classic::new(setup, source))
}

/// Combinations of all symbols that the receiver has not seen (TCP/NC).
pub const WINDOW: Code =
    Code::new(&symbols(1, "window", true, |setup| source(setup, Source::coded(Reading::TcpNc))));
const WINDOW_UNPACED: Code =
    Code::new(&symbols(1, "window", true, |setup| source(setup, Source::coded(Reading::TcpNc).unpaced())));

/// [`WINDOW`] as read by EOT/PB: the sink acknowledges only what is new, and a time-out retransmits one symbol.
pub const WINDOW_EOT: Code =
    Code::new(&symbols(6, "window-eot", true, |setup| source(setup, Source::coded(Reading::EotPb))));
const WINDOW_EOT_UNPACED: Code = Code::new(&symbols(6, "window-eot", true, |setup| {
    source(setup, Source::coded(Reading::EotPb).unpaced())
}));

/// [`WINDOW_EOT`], unpaced, with N_lp estimated by the source (EOT/PB section V) instead of read from the
/// acknowledgements. The estimate grows by one a round trip after each new symbol and shrinks by one with each
/// acknowledged symbol.
pub const WINDOW_EOT_ESTIMATED: Code = Code::new(&symbols(6, "window-eot", true, |setup| {
    source(setup, Source::coded(Reading::EotPb).unpaced().estimating())
}));

/// No coding, and TCP's own recovery: cumulative acknowledgements, fast retransmit and one timer (RFC 5681, 6582,
/// 6298). At high loss it is slower than a kernel's TCP, whereas [`Code::PLAIN`] is faster.
pub const CLASSIC: Code =
    Code::new(&symbols(4, "classic", false, |setup| source(setup, Source::plain(Reading::NewReno))));
const CLASSIC_UNPACED: Code = Code::new(&symbols(4, "classic", false, |setup| {
    source(setup, Source::plain(Reading::NewReno).unpaced())
}));

/// No coding, with the recovery of TCP Vegas: the baseline of TCP/NC.
pub const VEGAS_SOURCE: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc))));
const VEGAS_SOURCE_UNPACED: Code =
    Code::new(&symbols(5, "vegas", false, |setup| source(setup, Source::plain(Reading::TcpNc).unpaced())));
