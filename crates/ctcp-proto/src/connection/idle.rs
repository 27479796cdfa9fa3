//! The memory that only a busy connection keeps for reuse. It is freed when the connection is polled for something to send, at the latest
//! with the second keep-alive.

use core::time::Duration;

use ctcp_base::Instant;

use super::Established;

/// The least time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// A connection is idle if it codes less than so many packets a second between two looks.
const BUSY: u64 = 32;

/// What was seen at the last look.
#[derive(Debug, Default)]
pub(super) struct Idleness {
    looked: Instant,
    /// Combinations sent and received until then.
    combinations: u64,
}

impl Established {
    /// Frees what an idle connection does not need. Called whenever it may send, so also when it answers a keep-alive.
    pub(super) fn shrink_if_idle(&mut self, now: Instant) {
        let time = now.saturating_since(self.idleness.looked);
        if time < LOOK {
            return;
        }
        let (sent, received) = self.coding_counts();
        let combinations = sent.symbols + sent.repairs + received.decoded + received.repairs;
        if combinations - self.idleness.combinations < BUSY * time.as_secs() {
            self.streams.shrink();
            self.contexts.shrink();
        }
        self.idleness = Idleness { looked: now, combinations };
    }
}
