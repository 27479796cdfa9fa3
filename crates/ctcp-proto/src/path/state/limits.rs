//! What limits the packets in flight, if not the path: the application, the scheduler, or the window.

use super::Path;

/// Loss up to which a path that is not always used grows its window.
const LOSS_TO_GROW: f64 = 0.1;

impl Path {
    /// The window has no room, and so many bytes wait.
    pub(crate) fn on_no_room(&mut self, waiting: u64) {
        self.admission.on_no_room(self.largest_sent(), waiting, self.owed.mtu.current());
    }

    /// The window has room but there is nothing to send.
    pub(crate) fn on_app_limited(&mut self) {
        self.ack_requests.on_interruption();
        self.measured.delivery.on_app_limited(self.sent.bytes_in_flight());
    }

    /// The scheduler leaves a path out for moments. One that carries much of its window all the same may have a larger one, so only others
    /// count as limited by the application.
    pub(crate) fn on_not_chosen(&mut self) {
        let in_flight = self.sent.bytes_in_flight();
        if self.may_grow() {
            return self.measured.delivery.on_held_back(in_flight);
        }
        self.measured.delivery.on_app_limited(in_flight);
    }

    /// Whether the window may be too small for a path that is left out for moments: at least half of it is in flight. Where much is lost,
    /// more in flight would only delay the blocks.
    fn may_grow(&self) -> bool {
        let is_half_full = 2.0 * self.sent.packets_in_flight() as f64 >= self.admission.controller.window();
        is_half_full && self.loss() < LOSS_TO_GROW && !self.is_relayed()
    }
}
