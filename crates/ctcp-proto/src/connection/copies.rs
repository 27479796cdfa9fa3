//! Copies on further paths: of latency-sensitive data, in [`PathMode::Redundant`], and of anything on a path that must show what it is capable of.

use ctcp_base::Instant;

use super::Established;
use super::transmit::Turn;
use crate::Code;
use crate::code::{Carried, Choice};
use crate::id::{ContextId, PathId, SymbolIndex};
use crate::path::{Copies, Path, PathMode, scheduler};
use crate::wire::{DatagramBuilder, Frame};

impl Established {
    /// A new symbol of the context was sent on the path of this turn. In [`PathMode::Redundant`] the others owe a copy of it, as far as the
    /// budget goes; otherwise those that must show what is lost on them.
    pub(super) fn owe_copies(&mut self, now: Instant, turn: Turn, context: ContextId, symbol: SymbolIndex) {
        if self.paths.len() == 1 {
            return;
        }
        if !self.is_copied(context) {
            self.owe_trials(now, turn, context, symbol);
            return;
        }
        let bytes = self.contexts.open(context).sender.packet_size();
        let length_max = self.negotiated.code.block_size;
        let packets = [Some(Choice::Again(symbol)), Copies::combination_behind(symbol, length_max)];
        // A path that is in trouble gets what the others leave of the budget.
        for is_avoided in [false, true] {
            let is_next = |other: &&mut Path| {
                other.id != turn.id && other.is_validated() && other.is_avoided() == is_avoided
            };
            for other in self.paths.iter_mut().filter(is_next) {
                for packet in packets.into_iter().flatten() {
                    if self.copy_budget.take(now, self.config.copy_rate, bytes) {
                        other.copies.push(context, packet);
                    }
                }
            }
        }
    }

    fn owe_trials(&mut self, now: Instant, turn: Turn, context: ContextId, symbol: SymbolIndex) {
        if !self.must_hurry(context) || self.paths.mode() == PathMode::Backup {
            return;
        }
        for other in turn.ranking.iter().filter(|&other| other != turn.id) {
            let is_used = !self.paths[other].is_avoided();
            if is_used && scheduler::shows_losses(now, &self.paths, turn.id, other) {
                self.paths[other].copies.push_trial(context, symbol);
            }
        }
    }

    /// The next copy or combination that a path owes, unless the peer has the symbols already.
    pub(super) fn choose_copy(&mut self, path: PathId) -> Option<(ContextId, Choice)> {
        let contexts = &self.contexts;
        self.paths[path].copies.next(|context, packet| contexts.needs_copy(context, packet))
    }

    /// A copy of the newest symbol, for a path that must show what it is capable of.
    pub(super) fn choose_trial(&mut self, path: PathId) -> Option<(ContextId, Choice)> {
        let newest = self.contexts.streams().sender.next_index().checked_sub(1)?;
        self.paths[path].copies.push_trial(ContextId::Streams, newest);
        self.choose_copy(path)
    }

    /// Writes a copy. One that fits no datagram of the path gives way to the next one. A path that must show what it is capable of sends a
    /// PING of that size instead.
    pub(super) fn write_copy(
        &mut self,
        path: PathId,
        (context, choice): (ContextId, Choice),
        datagram_size: usize,
        builder: &mut DatagramBuilder,
    ) -> Option<Carried> {
        let is_alone = builder.is_empty();
        let carried = self.contexts.open(context).sender.write_copy(choice, builder);
        let copies = &mut self.paths[path].copies;
        if carried.is_none() && is_alone && copies.is_trial(context, choice) {
            builder.write(&Frame::Ping);
            builder.pad_to(datagram_size);
        }
        if carried.is_some() || is_alone {
            copies.on_sent();
        }
        if is_alone && builder.is_empty() {
            let next = self.choose_copy(path)?;
            return self.write_copy(path, next, datagram_size, builder);
        }
        carried
    }

    /// Latency-sensitive data, on the path for it, and in [`PathMode::Redundant`] on any path while the first one cannot send: after a burst of
    /// losses its window is full until they are noticed.
    pub(super) fn choose_urgent(&mut self, now: Instant, turn: Turn) -> Option<(ContextId, Choice)> {
        let first = turn.ranking.first()?;
        let replaces_first = self.paths.mode() == PathMode::Redundant && !self.paths[first].has_window();
        if turn.ranking.urgent() != Some(turn.id) && !replaces_first {
            return None;
        }
        self.contexts_in_turn().into_iter().find_map(|id| {
            let choice = if self.must_hurry(id) { self.choose_in(now, turn, id) } else { None };
            Some((id, choice?))
        })
    }

    /// Whether the symbols of a context take the path on which they are late the least. Of those that are relayed nobody knows.
    pub(super) fn must_hurry(&self, context: ContextId) -> bool {
        context != ContextId::Relayed && self.is_sliding(context)
    }

    /// Whether the symbols of a context go on each path.
    fn is_copied(&self, context: ContextId) -> bool {
        self.is_sliding(context) && self.paths.mode() == PathMode::Redundant
    }

    /// Whether each symbol of a context counts. Those of a block wait for the whole block anyway.
    fn is_sliding(&self, context: ContextId) -> bool {
        context != ContextId::Streams || self.negotiated.profile.code == Code::SLIDING
    }
}
