//! Which combination the next packet carries: the sender half of a coding scheme.
//!
//! The receiver needs no counterpart: it decodes any mix of ranges and reports degrees of freedom, so a scheme
//! is only this small policy. It holds no payload and does no arithmetic on it.

mod block;
mod blocks;
mod classic;
mod plain;
mod receiver;
mod segments;
mod sender;
mod sparse;
mod symbolic;

use ctcp_base::Instant;

use crate::id::SymbolIndex;
use crate::profile::{Code, Profile};
use crate::wire::MissingInterval;
use block::BlockCode;
pub(crate) use classic::Classic;
use plain::PlainCode;
pub(crate) use receiver::CodedReceiver;
pub(crate) use segments::Part;
pub(crate) use sender::CodedSender;
use sparse::SparseBlockCode;
pub(crate) use symbolic::SymbolicCombination;
pub use symbolic::{SymbolicChannel, SymbolicRecoder};

/// What the next packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
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
pub(crate) struct Sent {
    /// First symbol of the combination.
    pub(crate) first: SymbolIndex,
    /// Number of symbols, 1 for an uncoded one.
    pub(crate) length: u16,
}

/// The combination, or the piece of one, that a packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) sent: Sent,
    pub(crate) part: Part,
}

/// What the sender knows when it may send a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) now: Instant,
    /// The loss average `p` of the path.
    pub(crate) loss: f64,
    /// By how much losses scatter more than single ones ([`crate::recovery::bursts`]).
    pub(crate) dispersion: f64,
    /// The streams have bytes that may be sent.
    pub(crate) has_data: bool,
    /// The coding window takes another symbol.
    pub(crate) has_room: bool,
    /// The congestion window in packets, about one bandwidth-delay product: the size of new blocks.
    pub(crate) window: f64,
}

#[cfg(test)]
impl Situation {
    /// A long transfer over a path without losses.
    pub(crate) const BULK: Self =
        Self { now: Instant::ZERO, loss: 0.0, dispersion: 1.0, has_data: true, has_room: true, window: 32.0 };
}

/// What an acknowledgement said about the receiver's decoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback<'a> {
    /// Oldest symbol the receiver cannot decode.
    pub(crate) oldest_undecoded: SymbolIndex,
    /// Oldest symbol it has not seen (TCP/NC definition 1).
    pub(crate) oldest_unseen: SymbolIndex,
    /// Groups of unknown symbols, ascending.
    pub(crate) intervals: &'a [MissingInterval],
    /// One past the last symbol the receiver heard of.
    pub(crate) known_end: SymbolIndex,
    /// The intervals are complete below this.
    pub(crate) reported_end: SymbolIndex,
}

/// Limits of the scheme, from the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeLimits {
    /// `blksize`: most symbols in a block.
    pub(crate) block_size: u16,
    /// `numblks`: most blocks in flight.
    pub(crate) blocks: u16,
}

/// What a classical source is told beside its profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceConfig {
    /// Most symbols under way.
    pub(crate) window_max: u32,
    /// N_lp is its own estimate.
    pub(crate) estimates_lost: bool,
}

/// The sender half of a coding scheme.
#[derive(Debug)]
pub(crate) enum SendCode {
    /// CTCP's block code.
    Block(BlockCode),
    /// The thesis's sparse code.
    Sparse(SparseBlockCode),
    /// No coding.
    Plain(PlainCode),
    /// TCP to the letter, with TCP/NC's coding layer or without.
    Classic(Box<Classic>),
}

impl SendCode {
    pub(crate) fn new(profile: Profile, limits: CodeLimits, source: SourceConfig) -> Self {
        match profile.code {
            _ if profile.is_classic() => {
                Self::Classic(Box::new(Classic::new(profile, limits.block_size, source)))
            }
            Code::Block => {
                Self::Block(BlockCode::new(profile.redundancy, limits, profile.is_to_the_letter()))
            }
            Code::Sparse => Self::Sparse(SparseBlockCode::new(profile.redundancy, limits)),
            Code::Plain | Code::Window | Code::Classic => Self::Plain(PlainCode::default()),
        }
    }

    /// What to send now, `None` when nothing would be useful. [`Self::on_sent`] follows if it is sent.
    pub(crate) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        match self {
            Self::Classic(code) => code.choose(situation),
            Self::Block(code) => code.choose(situation),
            Self::Sparse(code) => code.choose(situation),
            Self::Plain(code) => code.choose(situation),
        }
    }

    /// What to send when the path has been silent for a probe time-out: the most useful packet, even though
    /// enough should be in flight.
    pub(crate) fn choose_probe(&mut self) -> Option<Choice> {
        match self {
            Self::Block(code) => code.choose_probe(),
            Self::Sparse(code) => code.choose_probe(),
            Self::Plain(code) => code.choose_probe(),
            Self::Classic(_) => None,
        }
    }

    /// The packet of `choice` was sent, or the first of several; a new symbol got `index`.
    pub(crate) fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        match self {
            Self::Classic(code) => code.on_sent(choice, index, situation),
            Self::Block(code) => code.on_sent(choice, index, situation),
            Self::Sparse(code) => code.on_sent(choice, index),
            Self::Plain(code) => code.on_sent(choice, index),
        }
    }

    /// A packet arrived.
    pub(crate) fn on_acked(&mut self, sent: &Sent) {
        match self {
            Self::Block(code) => code.on_resolved(sent),
            Self::Sparse(code) => code.on_resolved(sent),
            Self::Plain(code) => code.on_acked(sent),
            Self::Classic(_) => {}
        }
    }

    /// A packet was lost; `was_expired` if [`Self::on_expired`] had taken it out of the count before.
    pub(crate) fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        match self {
            Self::Block(_) | Self::Sparse(_) if was_expired => {}
            Self::Classic(_) => {}
            Self::Block(code) => code.on_resolved(sent),
            Self::Sparse(code) => code.on_resolved(sent),
            Self::Plain(code) => code.on_lost(sent),
        }
    }

    /// A packet is so old (1.5 RTT) that it is no longer counted in flight, though its fate is unknown.
    /// [`Self::on_acked`] does not follow for it.
    pub(crate) fn on_expired(&mut self, sent: &Sent) {
        match self {
            Self::Block(code) => code.on_resolved(sent),
            Self::Sparse(code) => code.on_resolved(sent),
            Self::Plain(_) | Self::Classic(_) => {}
        }
    }

    /// The receiver told what it misses.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        match self {
            Self::Classic(code) => code.on_feedback(now, feedback),
            Self::Block(code) => code.on_feedback(feedback),
            Self::Sparse(code) => code.on_feedback(feedback),
            Self::Plain(code) => code.on_feedback(feedback),
        }
    }

    /// The classical source, if it is one: it has a timer of its own.
    pub(crate) fn classic(&self) -> Option<&Classic> {
        if let Self::Classic(code) = self { Some(code) } else { None }
    }

    /// The classical source, if it is one.
    pub(crate) fn classic_mut(&mut self) -> Option<&mut Classic> {
        if let Self::Classic(code) = self { Some(code) } else { None }
    }
}
