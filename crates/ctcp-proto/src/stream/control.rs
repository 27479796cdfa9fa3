//! What streams tell the peer beside the symbols, and the set of things that are still to be told.
//!
//! Each item is told once by its latest value; told items that were lost come back only if they are still the
//! latest and still needed. The set has one entry a stream, whatever happens to it.

use std::collections::VecDeque;

use crate::id::StreamId;

/// One frame of stream control (PROTOCOL.md section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The peer may send this many bytes in total.
    MaxData(u64),
    /// The peer may send this many bytes of this stream.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// One past the highest offset it may send.
        credit: u64,
    },
    /// The peer may open this many streams in total.
    MaxStreams(u64),
    /// We gave up sending.
    ResetStream {
        /// The stream.
        id: StreamId,
        /// Our application's reason.
        code: u64,
        /// Bytes of the stream that are in symbols.
        final_size: u64,
    },
    /// We want to read no more.
    StopSending {
        /// The stream.
        id: StreamId,
        /// Our application's reason.
        code: u64,
    },
}

/// A set of small flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn contains(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn insert(&mut self, flag: u8) {
        self.0 |= flag;
    }

    /// Takes `flag` out and says whether it was in.
    pub(super) fn take(&mut self, flag: u8) -> bool {
        let was_in = self.contains(flag);
        self.0 &= !flag;
        was_in
    }
}

/// Streams of which some flag is set, each once, in the order in which the first flag was set. The flags
/// themselves live in the streams.
#[derive(Debug, Default)]
pub(super) struct Flagged {
    line: VecDeque<StreamId>,
}

impl Flagged {
    /// Sets `flag` of the stream.
    pub(super) fn set(&mut self, id: StreamId, flags: &mut Flags, flag: u8) {
        if flags.is_empty() {
            self.line.push_back(id);
        }
        flags.insert(flag);
    }

    /// Puts a stream in line whose flags were set without.
    pub(super) fn resume(&mut self, id: StreamId, flags: Flags) {
        if !flags.is_empty() {
            self.line.push_back(id);
        }
    }

    pub(super) fn first(&self) -> Option<StreamId> {
        self.line.front().copied()
    }

    /// The first stream has no flags any more.
    pub(super) fn pop(&mut self) {
        self.line.pop_front();
    }

    /// The stream goes away with its flags. Takes time in proportion to the streams in line; rare.
    pub(super) fn remove(&mut self, id: StreamId, flags: Flags) {
        if !flags.is_empty() {
            self.line.retain(|&other| other != id);
        }
    }
}
