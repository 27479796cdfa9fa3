//! Which combination the next packet carries: the sender half of a coding scheme, and what both halves share.
//!
//! A [`Scheme`] needs no counterpart at the receiver, which decodes any mix of ranges and reports degrees of freedom. So it is only a small
//! policy: it holds no payload and does no arithmetic on it. A new one is a type of its own and a [`Code`] that says how to make it.

mod block;
mod blocks;
mod plain;
mod plug;
mod receiver;
mod segments;
mod sender;

use core::fmt;

use ctcp_base::Instant;

use crate::congestion::{Acked, Controller, Lost, Sent as SentSymbol, TimedOut};
use crate::id::SymbolIndex;
use crate::redundancy::Redundancy;
use crate::wire::MissingInterval;
pub use blocks::{Block, Blocks};
pub use plug::{Coding, SymbolDecoder, SymbolEncoder};
pub(crate) use receiver::{CodedReceiver, DecoderReport};
pub(crate) use segments::Part;
pub(crate) use sender::CodedSender;

/// What the next packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A symbol that has not been sent yet: the caller fills it from the streams and sends it uncoded.
    NewSymbol,
    /// A symbol sent before, uncoded again.
    Again(SymbolIndex),
    /// A combination of `[first, first + length)` with the coefficients of `key`.
    Combination {
        /// First symbol.
        first: SymbolIndex,
        /// Number of symbols.
        length: u16,
        /// Key of the coefficient generator.
        key: u16,
    },
}

/// What a sent packet carried, remembered until its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// First symbol of the combination.
    pub first: SymbolIndex,
    /// Number of symbols, 1 for an uncoded one.
    pub length: u16,
}

/// The combination, or the piece of one, that a packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) sent: Sent,
    pub(crate) part: Part,
}

/// What the sender knows when it may send a packet.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The time.
    pub now: Instant,
    /// The loss average `p` of the path.
    pub loss: f64,
    /// By how much losses scatter more than single ones (see `recovery/bursts.rs`).
    pub dispersion: f64,
    /// The streams have bytes that may be sent.
    pub has_data: bool,
    /// The coding window takes another symbol.
    pub has_room: bool,
    /// The congestion window in packets, about one bandwidth-delay product: the size of new blocks.
    pub window: f64,
}

impl Situation {
    /// A long transfer over a path without losses: for tests of schemes.
    #[doc(hidden)]
    pub const BULK: Self =
        Self { now: Instant::ZERO, loss: 0.0, dispersion: 1.0, has_data: true, has_room: true, window: 32.0 };
}

/// What an acknowledgement said about the receiver's decoder.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// Oldest symbol the receiver cannot decode.
    pub oldest_undecoded: SymbolIndex,
    /// Oldest symbol it has not seen (TCP/NC definition 1).
    pub oldest_unseen: SymbolIndex,
    /// Groups of unknown symbols, ascending.
    pub intervals: &'a [MissingInterval],
    /// One past the last symbol the receiver heard of.
    pub known_end: SymbolIndex,
    /// The intervals are complete below this.
    pub reported_end: SymbolIndex,
}

/// Limits of the scheme, from the handshake.
#[derive(Clone, Copy, Debug)]
pub struct CodeLimits {
    /// `blksize`: most symbols in a block.
    pub block_size: u16,
    /// `numblks`: most blocks in flight.
    pub blocks: u16,
}

/// What a scheme is made from.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How much is sent ahead.
    pub redundancy: Redundancy,
    /// Limits of both sides.
    pub limits: CodeLimits,
    /// Most packets, or symbols, in flight, whatever congestion control allows.
    pub window_max: u32,
}

/// What a congestion window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOf {
    /// Packets. What becomes of each is what congestion control hears of.
    Packets,
    /// Symbols that were not acknowledged as seen, by a window and a timer of the scheme's own: classical TCP, TCP/NC. Congestion control
    /// hears of [`Signal`]s only.
    Symbols,
}

/// How a scheme is made, and what the rest of the transport must know of it.
pub struct CodeSpec {
    /// On the wire (PROTOCOL.md section 3.1).
    pub number: u8,
    /// On the command line.
    pub name: &'static str,
    /// Makes the sender half for a new connection.
    pub make: fn(&Setup) -> Box<dyn Scheme>,
    /// Names of the rules of redundancy that it can follow, besides those that name it themselves.
    pub redundancies: &'static [&'static str],
    /// What the congestion window counts.
    pub window: WindowOf,
    /// Combinations may span all that is in flight, so that a receiver has to keep as many as it keeps symbols, and memory for their
    /// coefficients grows with the square.
    pub spans_window: bool,
    /// It wants to be told of packets older than 1.5 RTT before their fate is known.
    pub expires: bool,
}

/// Which range of source symbols the next combination spans.
#[derive(Clone, Copy)]
pub struct Code(&'static CodeSpec);

impl Code {
    /// Systematic block code (CTCP).
    pub const BLOCK: Self = Self(&block::SPEC);

    /// No coding: lost symbols are sent again as they were.
    pub const PLAIN: Self = Self(&plain::SPEC);

    /// A code of a laboratory.
    #[must_use]
    pub const fn new(spec: &'static CodeSpec) -> Self {
        Self(spec)
    }

    /// The name as a person writes it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.0.name
    }

    /// What the congestion window counts.
    #[must_use]
    pub const fn window(&self) -> WindowOf {
        self.0.window
    }

    /// Whether combinations may span all that is in flight.
    #[must_use]
    pub const fn spans_window(&self) -> bool {
        self.0.spans_window
    }

    pub(crate) fn number(self) -> u8 {
        self.0.number
    }

    pub(crate) fn make(self, setup: &Setup) -> Box<dyn Scheme> {
        (self.0.make)(setup)
    }

    pub(crate) fn expires(self) -> bool {
        self.0.expires
    }

    pub(crate) fn redundancies(self) -> &'static [&'static str] {
        self.0.redundancies
    }

    /// Whether it works with this redundancy.
    #[must_use]
    pub fn takes(self, redundancy: &Redundancy) -> bool {
        let rule = redundancy.rule();
        self.redundancies().contains(&rule.name) || rule.codes.contains(&self.as_str())
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Code({self})")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What becomes of a symbol, for the congestion control of a scheme whose window is of symbols.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// It was sent.
    Sent(SentSymbol),
    /// It was acknowledged as seen.
    Acked(Acked),
    /// It was lost.
    Lost(Lost),
    /// The scheme's timer went off.
    TimedOut(TimedOut),
}

impl Signal {
    /// Tells the controller.
    pub fn tell(&self, controller: &mut dyn Controller) {
        match self {
            Self::Sent(sent) => controller.on_sent(sent),
            Self::Acked(acked) => controller.on_ack(acked),
            Self::Lost(lost) => controller.on_loss(lost),
            Self::TimedOut(timed_out) => controller.on_timeout(timed_out),
        }
    }
}

/// The sender half of a coding scheme: it decides what the next packet carries.
///
/// - [`Self::choose`] may be asked many times before a packet leaves, and must then answer alike.
/// - `next_timeout`, `handle_timeout`, `poll_signal` and `is_unpaced` are for schemes whose window is of symbols ([`WindowOf::Symbols`]). While
///   there is a timeout the path is not probed, and after `handle_timeout` it must lie in the future.
/// - Where `sends_symbols` is false, `choose` is asked again right after a new symbol, and must choose a combination or nothing.
/// - `is_unpaced` never changes.
/// - A packet may leave in pieces: `on_expired` comes for the last one when it is acknowledged, since all of it may not have arrived.
pub trait Scheme: fmt::Debug + Send {
    /// What to send now, `None` when nothing would be useful. [`Self::on_sent`] follows if it is sent.
    fn choose(&mut self, situation: &Situation) -> Option<Choice>;

    /// What to send when the path has been silent for a probe time-out: the most useful packet, even though
    /// enough should be in flight.
    fn choose_probe(&mut self) -> Option<Choice>;

    /// The packet of `choice` was sent, or the first of several; a new symbol got `index`.
    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent;

    /// A packet arrived that had not expired.
    fn on_acked(&mut self, sent: &Sent);

    /// A packet was lost; `was_expired` if [`Self::on_expired`] came before.
    fn on_lost(&mut self, sent: &Sent, was_expired: bool);

    /// A packet is so old (1.5 RTT) that it is no longer counted in flight, though its fate is unknown.
    /// [`Self::on_acked`] does not follow for it.
    fn on_expired(&mut self, sent: &Sent);

    /// The receiver told what it misses.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>);

    /// The symbol just sent was the last one, for now: the application has written no more.
    fn on_end(&mut self) {}

    /// Whether a new symbol travels uncoded first.
    fn sends_symbols(&self) -> bool {
        true
    }

    /// When its own timer goes off; `None` while nothing is in flight.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Its timer went off.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// What congestion control has to be told next.
    fn poll_signal(&mut self) -> Option<Signal> {
        None
    }

    /// Packets leave whenever it chooses one, neither paced nor held by the congestion window: the sources of papers, in a simulation. It
    /// floods a network that others use.
    fn is_unpaced(&self) -> bool {
        false
    }
}
