//! The window of an application that does not use all of it. RFC 9002 section 7.8 would not let it grow; but the loss of all that is in flight
//! in one burst must leave room for what comes next.

use super::super::Acked;

/// The largest window that an application gets without using it. One that sends more than a thin stream has to earn its window.
const MAX: f64 = 128.0;

/// A round trip that is so many times as long as the shortest one shows a queue.
const QUEUE_SHOWS: f64 = 1.125;

/// The window for `in_flight` packets: twice as many.
pub(super) fn of(in_flight: u64) -> f64 {
    (2.0 * in_flight as f64).min(MAX)
}

/// Whether a window of `tokens` is too small for the application, and no queue shows.
pub(super) fn may_grow(acked: &Acked, tokens: f64) -> bool {
    tokens < of(acked.in_flight) && acked.rtt.latest <= acked.rtt.minimum.mul_f64(QUEUE_SHOWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_stream_gets_twice_what_is_in_flight_and_a_thick_one_no_more_than_the_most() {
        assert_eq!([0, 20, 64, 1_000].map(of), [0.0, 40.0, MAX, MAX]);
    }
}
