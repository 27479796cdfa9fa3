//! The window of a path of several whose application does not use all of it. RFC 9002 section 7.8 would not let it grow. But
//! latency-sensitive data changes to a path that has carried little so far, and must find room there. Only in slow start: afterwards the
//! delay decides.

use super::super::Acked;
use super::share::Share;
use super::{INITIAL_WINDOW, Steady};

/// The largest window that an application gets without using it. One that sends more than a thin stream has to earn its window.
const MAX: f64 = 128.0;

/// A round trip that is so many times as long as the shortest one shows a queue.
const QUEUE_SHOWS: f64 = 1.125;

/// The window for `in_flight` packets: twice as many.
fn of(share: &Share, in_flight: u64) -> f64 {
    if share.is_one_of_several { (2.0 * in_flight as f64).min(MAX) } else { 0.0 }
}

/// Whether a window of `tokens` is too small for the application, and no queue shows.
pub(super) fn may_grow(share: &Share, acked: &Acked, tokens: f64) -> bool {
    tokens < of(share, acked.in_flight) && acked.rtt.latest <= acked.rtt.minimum.mul_f64(QUEUE_SHOWS)
}

impl Steady {
    /// Whether the application sends so little, `packets` of a round trip, that the queue is hardly its own. One that uses much of a window
    /// that has grown may fill it.
    pub(super) fn is_thin(&self, acked: &Acked, packets: u32) -> bool {
        acked.is_app_limited && (self.tokens <= INITIAL_WINDOW || 2.0 * f64::from(packets) < self.tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_stream_gets_twice_what_is_in_flight_and_a_thick_one_no_more_than_the_most() {
        let mut share = Share::default();
        assert_eq!(of(&share, 20), 0.0, "a single path earns its window");
        share.set(Some(1.0));
        assert_eq!([0, 20, 64, 1_000].map(|packets| of(&share, packets)), [0.0, 40.0, MAX, MAX]);
        share.set(None);
        assert_eq!(of(&share, 20), 0.0, "the only one again");
    }
}
