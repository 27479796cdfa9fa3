//! Reports on what the decoders lack, and those that go ahead of the acknowledgements of slow paths ([`crate::path::arrivals`]).

use ctcp_base::Instant;

use super::Established;
use super::contents::Contents;
use super::transmit::Turn;
use crate::wire::DatagramBuilder;

impl Established {
    /// Writes the reports of all contexts that have news.
    pub(super) fn write_reports(&mut self, builder: &mut DatagramBuilder, contents: &mut Contents) {
        for (id, context) in self.contexts.used_mut() {
            contents.reports[id as usize] = context.receiver.write_report(builder).unwrap_or(0);
        }
    }

    /// Whether a report on what arrived on a slow path is due on the best one. If it is not due yet, the timer is set.
    pub(super) fn poll_report(&mut self, now: Instant) -> bool {
        let Some(due) = self.paths.reports.due() else { return false };
        if due > now {
            self.timers.wait_until(due);
        }
        due <= now
    }

    /// Tells on the best path what arrived on slow ones, with a report if `is_due`. After an acknowledgement of a slow path the best one
    /// owes that.
    pub(super) fn report_ahead(
        &mut self,
        now: Instant,
        turn: Turn,
        is_due: bool,
        builder: &mut DatagramBuilder,
        contents: &mut Contents,
    ) {
        let has_acknowledged = contents.largest_acked.is_some();
        if is_due && !has_acknowledged {
            self.write_reports(builder, contents);
        }
        if turn.is_first && (is_due || has_acknowledged) {
            self.paths.write_arrivals(now, &turn.ranking, builder);
        } else if has_acknowledged {
            self.paths.hasten_report(now, &turn.ranking, turn.id);
        }
    }
}
