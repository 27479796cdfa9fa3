//! The sender half of a coding scheme, which decides what combination the next packet carries, and types shared by both halves.
//!
//! A [`Scheme`] needs no counterpart at the receiver, which decodes any mix of ranges and reports degrees of freedom. A scheme is a small
//! policy: it holds no payload and does no field arithmetic. To add one, define a type for it and a [`Code`] that creates it.

mod basis;
mod block;
mod blocks;
mod ends;
#[cfg(test)]
pub(crate) mod mischief;
mod plain;
mod plug;
mod prospects;
mod receiver;
mod recoding;
pub(crate) mod redundancy;
mod segments;
mod sender;
mod sliding;

use core::fmt;
use core::time::Duration;

use ctcp_base::Instant;

use crate::congestion::{Acked, Controller, Lost, Sent as SentSymbol, TimedOut, WindowOf};
use crate::id::{ContextId, PathId, SymbolIndex};
use crate::wire::MissingInterval;
pub(crate) use basis::RELAYED_SPAN_MAX;
pub use basis::RelayBuffer;
pub use blocks::{Block, Blocks};
pub(crate) use ends::{Arrived, SymbolSink, SymbolSource};
pub use plug::{Coding, SymbolDecoder, SymbolEncoder};
pub use prospects::{Prospect, Prospects};
pub(crate) use receiver::{CodedReceiver, ReceiverCounts};
use redundancy::Redundancy;
pub(crate) use segments::Part;
pub(crate) use sender::{CodedSender, SenderCounts};

/// The contents of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A symbol that has not been sent yet. The caller fills it from the streams and sends it uncoded.
    NewSymbol,
    /// A symbol that was sent before, uncoded again.
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

/// What a sent packet carried, kept until the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// First symbol of the combination.
    pub first: SymbolIndex,
    /// Number of symbols; 1 for an uncoded symbol.
    pub length: u16,
    /// The path that carried it.
    pub path: PathId,
    /// When it was sent. Within a context these times never decrease, so schemes use [`Situation::sent`].
    pub time: Instant,
}

impl Sent {
    /// At the start, on the first path of a connection.
    #[must_use]
    pub const fn new(first: SymbolIndex, length: u16) -> Self {
        Self { first, length, path: PathId(0), time: Instant::ZERO }
    }
}

/// The combination, or the segment of one, that a packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) context: ContextId,
    pub(crate) sent: Sent,
    pub(crate) part: Part,
}

/// The state of the sender when it may send a packet.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The current time.
    pub now: Instant,
    /// The path that would carry it.
    pub path: PathId,
    /// The loss average `p` of what is sent, over all paths.
    pub loss: f64,
    /// What packets in flight are worth, by path. Empty if there is one path.
    pub prospects: Prospects,
    /// The variance of the number of losses relative to independent losses, for which it is 1.
    pub dispersion: f64,
    /// The context has data that may be sent.
    pub has_data: bool,
    /// The coding window has room for another symbol.
    pub has_room: bool,
    /// The congestion window in packets, about one bandwidth-delay product. It determines the size of new blocks.
    pub window: f64,
    /// The smoothed round-trip time of the path.
    pub rtt: Duration,
    /// Repairs that may be sent in a second even if there are few symbols, for which a ratio means nothing.
    pub thin_repairs: f64,
    /// A better path sends repairs, so this one should send new symbols while there are any.
    pub prefers_new: bool,
}

impl Situation {
    /// A long transfer over a path without losses, for tests of schemes.
    #[doc(hidden)]
    pub const BULK: Self = Self {
        now: Instant::ZERO,
        path: PathId(0),
        loss: 0.0,
        prospects: Prospects::NONE,
        dispersion: 1.0,
        has_data: true,
        has_room: true,
        window: 32.0,
        rtt: Duration::from_millis(50),
        thin_repairs: 10.0,
        prefers_new: false,
    };

    /// What a packet carries that is sent now.
    #[must_use]
    pub const fn sent(&self, first: SymbolIndex, length: u16) -> Sent {
        Sent { first, length, path: self.path, time: self.now }
    }
}

/// An acknowledgement's report on the receiver's decoder.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// Oldest symbol the receiver cannot decode.
    pub oldest_undecoded: SymbolIndex,
    /// Oldest symbol it has not seen (TCP/NC definition 1).
    pub oldest_unseen: SymbolIndex,
    /// Groups of unknown symbols, ascending.
    pub intervals: &'a [MissingInterval],
    /// One past the last symbol that any packet mentioned to the receiver.
    pub known_end: SymbolIndex,
    /// The intervals are complete below this.
    pub reported_end: SymbolIndex,
}

/// Limits of the scheme, from the handshake.
#[derive(Clone, Copy, Debug)]
pub struct CodeLimits {
    /// `blksize`: maximum number of symbols in a block.
    pub block_size: u16,
    /// `numblks`: maximum number of blocks in flight.
    pub blocks: u16,
}

/// The sliding window for data of which the rate counts as much as the delay.
pub(crate) fn thrifty_sliding(setup: &Setup) -> Box<dyn Scheme> {
    Box::new(sliding::SlidingCode::thrifty(setup))
}

/// The arguments for creating a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The rule for repair sent ahead of feedback.
    pub redundancy: Redundancy,
    /// Limits agreed in the handshake.
    pub limits: CodeLimits,
    /// Maximum number of packets, or symbols, in flight, whatever congestion control allows.
    pub window_max: u32,
}

/// A constructor for a scheme and its properties that matter to the rest of the transport.
pub struct CodeSpec {
    /// The number on the wire (PROTOCOL.md section 3.1).
    pub number: u8,
    /// The name on the command line.
    pub name: &'static str,
    /// Makes the sender half for a new connection.
    pub make: fn(&Setup) -> Box<dyn Scheme>,
    /// Names of the repair rules that it supports, in addition to rules that list this code themselves.
    pub redundancies: &'static [&'static str],
    /// What the congestion window counts.
    pub window: WindowOf,
    /// Combinations may span everything in flight. A receiver then keeps as many combinations as symbols, and the memory for coefficients
    /// grows with the square of the window.
    pub spans_window: bool,
    /// Whether the scheme is notified of packets older than 1.5 RTT before they are acknowledged or lost.
    pub expires: bool,
}

/// A coding scheme: which range of source symbols the next combination spans.
#[derive(Clone, Copy)]
pub struct Code(&'static CodeSpec);

impl Code {
    /// Systematic block code (CTCP).
    pub const BLOCK: Self = Self(&block::SPEC);

    /// No coding: lost symbols are retransmitted unchanged.
    pub const PLAIN: Self = Self(&plain::SPEC);

    /// Sliding window: repairs between the symbols, for low latency.
    pub const SLIDING: Self = Self(&sliding::SPEC);

    /// A code defined outside this crate.
    #[must_use]
    pub const fn new(spec: &'static CodeSpec) -> Self {
        Self(spec)
    }

    /// The name in configuration and on the command line.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.0.name
    }

    /// What the congestion window counts.
    #[must_use]
    pub const fn window(&self) -> WindowOf {
        self.0.window
    }

    /// Whether combinations may span everything in flight.
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

    /// Whether the code supports this repair rule.
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

/// The fate of a symbol, for the congestion controller of a scheme whose window counts symbols.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// It was sent.
    Sent(SentSymbol),
    /// It was acknowledged as seen.
    Acked(Acked),
    /// It was lost.
    Lost(Lost),
    /// The scheme's timer expired.
    TimedOut(TimedOut),
}

impl Signal {
    /// Notifies the controller.
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
/// - [`Self::choose`] may be called many times before a packet is sent, and must then return the same choice.
/// - `next_timeout`, `handle_timeout`, `poll_signal` and `is_unpaced` are for schemes whose window counts symbols ([`WindowOf::Symbols`]).
///   While there is a timeout the path is not probed. After `handle_timeout` the timeout must lie in the future.
/// - If `sends_symbols` is false, `choose` is called again right after a new symbol, and must return a combination or nothing.
/// - `is_unpaced` never changes.
/// - A combination may be sent in several segments. `on_expired` is called when the last one is acknowledged, since others may be lost.
pub trait Scheme: fmt::Debug + Send {
    /// What to send now; `None` if nothing would be useful. [`Self::on_sent`] follows if it is sent.
    fn choose(&mut self, situation: &Situation) -> Option<Choice>;

    /// What to send when the path has been silent for a probe timeout: the most useful packet, even if enough packets are in flight.
    fn choose_probe(&mut self) -> Option<Choice>;

    /// The packet of `choice`, or its first segment, was sent. `index` is the index of a new symbol.
    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent;

    /// A packet that had not expired was acknowledged.
    fn on_acked(&mut self, sent: &Sent);

    /// A packet was lost. `was_expired` if [`Self::on_expired`] was called before.
    fn on_lost(&mut self, sent: &Sent, was_expired: bool);

    /// A packet was given up with all others in flight on its path, because the peer moved or the path failed. Called instead of
    /// [`Self::on_lost`].
    fn on_flight_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.on_lost(sent, was_expired);
    }

    /// A copy of a symbol went ahead to the address to which the path has moved, so that it need not be sent again at once. Called after
    /// [`Self::on_flight_lost`].
    fn on_sent_ahead(&mut self, _symbol: SymbolIndex) {}

    /// A packet that was declared lost has arrived after all.
    fn on_spurious_loss(&mut self, _sent: &Sent) {}

    /// A packet is so old (1.5 RTT) that it no longer counts as in flight, although it is neither acknowledged nor lost. [`Self::on_acked`]
    /// is not called for it.
    fn on_expired(&mut self, sent: &Sent);

    /// The receiver reported which symbols it misses.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>);

    /// The symbols below `index` are given up: nothing repairs them any more. Only for contexts with deadlines.
    fn on_given_up(&mut self, _index: SymbolIndex) {}

    /// The symbol just sent was the last one for now: there is no more data.
    fn on_end(&mut self) {}

    /// Whether a new symbol is first sent uncoded.
    fn sends_symbols(&self) -> bool {
        true
    }

    /// When the scheme's own timer expires; `None` if nothing is in flight.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// The scheme's timer expired.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// About how many repairs [`Self::choose`] would return before anything else. Another path sends them if the best one cannot.
    fn deficit(&self, _situation: &Situation) -> u64 {
        0
    }

    /// A choice cannot be sent: its combination is too large for the path, and cannot be divided. Another one is asked for.
    fn on_too_large(&mut self, _choice: Choice) {}

    /// When [`Self::choose`] will return a repair although nothing has happened; `None` if never. It is called then, unless the window or
    /// the pacer forbids a packet.
    fn next_repair(&self) -> Option<Instant> {
        None
    }

    /// The next signal for the congestion controller.
    fn poll_signal(&mut self) -> Option<Signal> {
        None
    }

    /// Whether packets are sent whenever the scheme chooses one, without pacing or a congestion window. Only for traffic models of papers
    /// in a simulation: it would flood a shared network.
    fn is_unpaced(&self) -> bool {
        false
    }
}
