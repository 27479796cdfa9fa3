//! Copies of what must arrive soon on further paths, in [`PathMode::Redundant`].

use ctcp_base::Instant;

use super::Established;
use crate::Code;
use crate::code::{Carried, Choice};
use crate::id::{ContextId, PathId, SymbolIndex};
use crate::path::PathMode;

impl Established {
    /// A combination of the context was written for a packet on a path: the other paths owe a copy of a new symbol, as far as the budget
    /// goes, and this one has sent its copy of an old one.
    pub(super) fn on_written(
        &mut self,
        now: Instant,
        path: PathId,
        context: ContextId,
        choice: Choice,
        carried: Option<&Carried>,
    ) {
        match (choice, carried) {
            (Choice::Again(index), Some(_)) => self.paths[path].copies.on_sent(context, index),
            (Choice::NewSymbol, Some(carried)) if self.is_copied(context) => {
                let bytes = self.contexts.open(context).sender.packet_size();
                for other in self.paths.iter_mut() {
                    if other.id != path
                        && other.is_validated()
                        && !other.is_avoided()
                        && self.copy_budget.take(now, self.config.copy_rate, bytes)
                    {
                        other.copies.push(context, carried.sent.first);
                    }
                }
            }
            _ => {}
        }
    }

    /// The next copy that a path owes, unless the peer has the symbol already.
    pub(super) fn next_copy(&mut self, path: PathId) -> Option<(ContextId, SymbolIndex)> {
        let contexts = &self.contexts;
        self.paths[path].copies.next(|context, index| {
            contexts.get(context).is_some_and(|context| context.sender.is_outstanding(index))
        })
    }

    /// Whether the symbols of a context go on each path. Those of a block wait for the whole block anyway.
    fn is_copied(&self, context: ContextId) -> bool {
        let is_urgent = context != ContextId::Streams || self.negotiated.profile.code == Code::SLIDING;
        is_urgent && self.paths.mode() == PathMode::Redundant
    }
}
