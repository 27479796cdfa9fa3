//! What arrives on a slow path, told on a faster one.
//!
//! ```text
//!   sender                                              receiver
//!     | ------- symbols on the slow path ----------------> |
//!     | <------ report, ARRIVED n   on the fast path ----- |   soon
//!     | <------ PATH_ACK            on the slow path ----- |   later
//! ```
//!
//! With a report the sender knows what the receiver lacks, but not which of the packets in flight it counts. Those up to ARRIVED have arrived
//! or are lost, so a repair need not wait for the acknowledgement. Loss detection, round trips and congestion control do not use it: an
//! acknowledgement on the path itself follows.

use core::time::Duration;

use ctcp_base::Instant;

use super::scheduler::Ranking;
use super::{Path, Paths};
use crate::id::PacketNumber;
use crate::wire::{DatagramBuilder, Frame};

/// How many reports go ahead of the acknowledgements of a slow path in its round trip.
const REPORTS_A_ROUND: u32 = 16;

/// What is known of arrivals on a path before the acknowledgements tell.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The sender's: the newest report counts the packets that were sent until then and arrived.
    counted: Instant,
    /// The receiver's: the largest number that it told of on another path.
    told: Option<u64>,
}

/// When the receiver reports next.
#[derive(Debug, Default)]
pub(crate) struct EarlyReports {
    due: Option<Instant>,
    last: Instant,
}

impl EarlyReports {
    /// When a report is due on the best path.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A report is sent on the best path.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.due = None;
        self.last = now;
    }

    /// An acknowledgement is sent on a path with the round trip `rtt`, on which it arrives much later than on the best one.
    pub(crate) fn hasten(&mut self, now: Instant, rtt: Duration) {
        self.due.get_or_insert(now.max(self.last + rtt / REPORTS_A_ROUND));
    }
}

impl Path {
    /// The newest report counts the packets that were sent until then and arrived.
    pub(crate) fn counted(&self) -> Instant {
        self.arrivals.counted
    }

    /// The peer has reported after the packet `largest` had arrived. Those before it may be late as far as reordering was seen.
    pub(crate) fn on_arrived(&mut self, largest: PacketNumber) {
        let settled = largest.0.saturating_sub(self.measured.losses.packet_threshold());
        if let Some(time) = self.sent.newest_outstanding_until(PacketNumber(settled)) {
            self.arrivals.counted = self.arrivals.counted.max(time);
        }
    }

    fn write_arrival(&mut self, builder: &mut DatagramBuilder) {
        let news = self.acks.largest().filter(|&largest| Some(largest) > self.arrivals.told);
        if let Some(largest) = news
            && builder.write_if_it_fits(&Frame::Arrived { path: self.id, largest })
        {
            self.arrivals.told = Some(largest);
        }
    }
}

impl Paths {
    /// Writes what has arrived on slow paths into a packet of the best one that has a report.
    pub(crate) fn write_arrivals(&mut self, now: Instant, ranking: &Ranking, builder: &mut DatagramBuilder) {
        self.reports.on_sent(now);
        for id in ranking.iter() {
            if ranking.reports_sooner(now, self, id) {
                self[id].write_arrival(builder);
            }
        }
    }
}
