//! What arrives on a slow path, told on a faster one.
//!
//! ```text
//!   sender                                              receiver
//!     | ------- symbols on the slow path ----------------> |
//!     | <------ report, ARRIVED n   on the fast path ----- |   soon
//!     | <------ PATH_ACK            on the slow path ----- |   later
//! ```
//!
//! With a report the sender knows what the receiver lacks, but not which of the packets in flight it counts. Those before the one that ARRIVED
//! names have arrived or are lost, unless the path reorders, so a repair need not wait for the acknowledgement. Loss detection, round trips
//! and congestion control do not use it: an acknowledgement on the path itself follows.

use core::time::Duration;

use ctcp_base::Instant;

use super::scheduler::Ranking;
use super::{Path, Paths};
use crate::id::{PacketNumber, PathId};
use crate::recovery::rtt::GRANULARITY;
use crate::wire::{DatagramBuilder, Frame};

/// How many reports go ahead of the acknowledgements of a slow path in its round trip.
const REPORTS_A_ROUND: u32 = 16;

/// What is known of arrivals on a path before the acknowledgements tell.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The sender's: the newest report counts the packets that were sent before and arrived.
    counted: Instant,
    /// The receiver's: how many combinations had arrived when a report last became due for them.
    combinations: u64,
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

    /// Something has arrived on a path with the round trip `rtt`.
    fn hasten(&mut self, now: Instant, rtt: Duration) {
        self.due.get_or_insert(now.max(self.last + (rtt / REPORTS_A_ROUND).max(GRANULARITY)));
    }
}

impl Path {
    /// The newest report counts the packets that were sent before and arrived.
    pub(crate) fn counted(&self) -> Instant {
        self.arrivals.counted
    }

    /// The peer has reported after the packet `largest` had arrived.
    pub(crate) fn on_arrived(&mut self, now: Instant, largest: PacketNumber) {
        if let Some(settled) = largest.0.checked_sub(self.measured.losses.reordering()) {
            let next = self.sent.first_outstanding_after(PacketNumber(settled));
            self.arrivals.counted = self.arrivals.counted.max(next.unwrap_or(now));
        }
    }

    /// Whether combinations have arrived since the last call.
    fn has_new_combinations(&mut self) -> bool {
        let before = core::mem::replace(&mut self.arrivals.combinations, self.received.combinations);
        before < self.received.combinations
    }

    /// Writes an ARRIVED, unless the acknowledgements tell as much by now. It is repeated, since a packet with it may be lost.
    fn write_arrival(&self, now: Instant, builder: &mut DatagramBuilder) {
        let is_news = self.acks.delay(now) < self.measured.rtt.smoothed();
        if let Some(largest) = self.acks.largest().filter(|_| is_news) {
            builder.write_if_it_fits(&Frame::Arrived { path: self.id, largest });
        }
    }
}

impl Paths {
    /// An acknowledgement was sent on the path `id`. If it brings news of combinations, and arrives much later than on the best path, a report
    /// becomes due there.
    pub(crate) fn hasten_report(&mut self, now: Instant, ranking: &Ranking, id: PathId) {
        if ranking.reports_sooner(now, self, id) && self[id].has_new_combinations() {
            let rtt = self[id].measured.rtt.smoothed();
            self.reports.hasten(now, rtt);
        }
    }

    /// Writes what has arrived on slow paths into a packet of the best one that has a report.
    pub(crate) fn write_arrivals(&mut self, now: Instant, ranking: &Ranking, builder: &mut DatagramBuilder) {
        self.reports.on_sent(now);
        for id in ranking.iter().filter(|&id| ranking.reports_sooner(now, self, id)) {
            self[id].write_arrival(now, builder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_go_ahead_at_most_sixteen_times_in_a_round_trip() {
        let rtt = Duration::from_millis(160);
        let at = Instant::from_millis;
        let mut reports = EarlyReports::default();
        reports.hasten(at(1_000), rtt);
        assert_eq!(reports.due(), Some(at(1_000)));
        reports.on_sent(at(1_000));
        assert_eq!(reports.due(), None);
        reports.hasten(at(1_003), rtt);
        reports.hasten(at(1_006), rtt);
        assert_eq!(reports.due(), Some(at(1_010)));
        reports.on_sent(at(1_010));
        reports.hasten(at(1_010), Duration::from_micros(50));
        assert_eq!(reports.due(), Some(at(1_011)), "not more often than timers run");
    }
}
