//! The memory that only a busy connection keeps for reuse.

use core::time::Duration;

use ctcp_base::Instant;

use super::Established;

/// A connection is idle if nothing was coded between two looks, which are at least so far apart.
const LOOK: Duration = Duration::from_secs(1);

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
        if now.saturating_since(self.idleness.looked) < LOOK {
            return;
        }
        let (sent, received) = self.coding_counts();
        let combinations = sent.symbols + sent.repairs + received.decoded + received.repairs;
        if combinations == self.idleness.combinations {
            self.streams.shrink();
            self.contexts.shrink();
        }
        self.idleness = Idleness { looked: now, combinations };
    }
}
