//! Is more lost than the path loses by itself? A cumulative sum test (Page, 1954) over the packets of busy times.

use core::time::Duration;

use ctcp_base::Instant;

/// The excess that is to be found, as a share of packets and of the innocent share.
const MARGIN: f64 = 0.02;
const MARGIN_SHARE: f64 = 0.2;

/// The alarm comes with `e` to the power of this many packets between false ones.
const CONFIDENCE: f64 = 3.5;

/// An alarm is recent for so many round trips.
const RECENT_ROUNDS: u32 = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excess {
    sum: f64,
    last: Option<Instant>,
}

impl Excess {
    /// Returns whether it is time to react.
    pub(super) fn on_fate(&mut self, now: Instant, is_lost: bool, innocent: f64, dispersion: f64, least: f64) -> bool {
        let margin = MARGIN + MARGIN_SHARE * innocent;
        self.sum = (self.sum + f64::from(u8::from(is_lost)) - innocent - margin).max(0.0);
        let limit = (CONFIDENCE * innocent * (1.0 - innocent) / margin * dispersion).max(least);
        if self.sum <= limit {
            return false;
        }
        self.sum = 0.0;
        self.last = Some(now);
        true
    }

    pub(super) fn on_calm(&mut self) {
        self.sum = (self.sum - 0.02).max(0.0);
    }

    pub(super) fn is_recent(&self, now: Instant, rtt: Duration) -> bool {
        self.last.is_some_and(|last| now - last < rtt * RECENT_ROUNDS)
    }
}
