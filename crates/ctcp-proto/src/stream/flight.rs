//! Which streams wait until the peer has decoded all of their data.
//!
//! ```text
//!   lane 0   symbols ... 7  8  9          stream 4: bytes in 7, 8 and 21, the end in 9: waits for 10 in lane 0, then for 22 in lane 1
//!   lane 1   symbols ... 20 21
//! ```

use std::collections::BTreeMap;

use crate::id::{ContextId, StreamId, SymbolIndex};

/// One of the two sequences of symbols that carry streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Most data.
    Bulk,
    /// Small writes, and streams that ask for low latency.
    Interactive,
}

impl Lane {
    const ALL: [Self; 2] = [Self::Bulk, Self::Interactive];

    /// The lane whose symbols are those of this context.
    #[must_use]
    pub fn of(context: ContextId) -> Self {
        if context == ContextId::Interactive { Self::Interactive } else { Self::Bulk }
    }
}

/// One past the last symbol of each lane that may hold data of a stream.
pub(crate) type Ends = [SymbolIndex; 2];

/// The symbols of both lanes, and the streams whose ends are in them.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// One past the last symbol filled.
    ends: Ends,
    /// The peer has decoded all symbols below these.
    decoded: Ends,
    /// Streams, ordered by the end for which they wait in this lane, and both ends.
    waiting: [BTreeMap<(SymbolIndex, StreamId), Ends>; 2],
}

impl Flight {
    /// The symbol `index` is being filled. Returns the ends of a stream whose last data it holds.
    pub(crate) fn ends_with(&self, lane: Lane, index: SymbolIndex) -> Ends {
        let mut ends = self.ends;
        ends[lane as usize] = index + 1;
        ends
    }

    /// The symbol `index` was filled.
    pub(crate) fn on_filled(&mut self, lane: Lane, index: SymbolIndex) {
        self.ends[lane as usize] = index + 1;
    }

    /// A stream waits for `ends`. Returns false if the peer has decoded them.
    pub(crate) fn insert(&mut self, id: StreamId, ends: Ends) -> bool {
        let lane = Lane::ALL.into_iter().find(|&lane| self.decoded[lane as usize] < ends[lane as usize]);
        lane.is_some_and(|lane| self.waiting[lane as usize].insert((ends[lane as usize], id), ends).is_none())
    }

    /// A stream waits no more. Takes time linear in the number of waiting streams.
    pub(crate) fn remove(&mut self, id: StreamId) {
        self.waiting.iter_mut().for_each(|waiting| waiting.retain(|&(_, other), _| other != id));
    }

    /// The peer has decoded all symbols below `index`.
    pub(crate) fn on_decoded_below(&mut self, lane: Lane, index: SymbolIndex) {
        self.decoded[lane as usize] = self.decoded[lane as usize].max(index);
    }

    /// The next stream that has nothing left to wait for, now that the peer has decoded more of this lane.
    pub(crate) fn poll(&mut self, lane: Lane) -> Option<StreamId> {
        loop {
            let (decoded, waiting) = (self.decoded[lane as usize], &mut self.waiting[lane as usize]);
            let next = waiting.first_entry().filter(|entry| entry.key().0 <= decoded)?;
            let ((_, id), ends) = next.remove_entry();
            if !self.insert(id, ends) {
                return Some(id);
            }
        }
    }
}
