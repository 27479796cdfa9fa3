//! Stream control frames, which are sent alongside the symbols, and the set of frames still to be sent. Each frame is sent once with its
//! latest value. A lost frame is sent again only if its value is still the latest and still needed. The set has at most one entry per
//! stream.

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
    /// The sender of the stream abandoned it.
    ResetStream {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        code: u64,
        /// The final size of the stream: its bytes that are in symbols.
        final_size: u64,
    },
    /// The receiver of the stream wants no more data.
    StopSending {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        code: u64,
    },
}

/// A set of flags.
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

    /// Removes `flag` and returns whether it was set.
    pub(super) fn take(&mut self, flag: u8) -> bool {
        let was_in = self.contains(flag);
        self.0 &= !flag;
        was_in
    }
}

/// A queue of streams with a flag set, in the order in which their first flag was set. The flags themselves are stored in the streams.
#[derive(Debug, Default)]
pub(super) struct Flagged {
    line: VecDeque<StreamId>,
}

impl Flagged {
    /// Sets a flag of the stream.
    pub(super) fn set(&mut self, id: StreamId, flags: &mut Flags, flag: u8) {
        if flags.is_empty() {
            self.line.push_back(id);
        }
        flags.insert(flag);
    }

    /// Queues a stream whose flags were set without queueing it.
    pub(super) fn resume(&mut self, id: StreamId, flags: Flags) {
        if !flags.is_empty() {
            self.line.push_back(id);
        }
    }

    pub(super) fn first(&self) -> Option<StreamId> {
        self.line.front().copied()
    }

    /// Removes the first stream, which has no flags left.
    pub(super) fn pop(&mut self) {
        self.line.pop_front();
    }

    /// Removes a stream that is being released. Takes time linear in the length of the queue; rare.
    pub(super) fn remove(&mut self, id: StreamId, flags: Flags) {
        if !flags.is_empty() {
            self.line.retain(|&other| other != id);
        }
    }
}
