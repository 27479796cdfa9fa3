//! What the controllers do with each thing they are told, and what all of them keep whatever happens. What they make of a
//! link is tested in `ctcp-sim` (`tests/controllers`).

use core::time::Duration;

use super::*;

mod invariants;
mod letter;
mod marks;
mod steady;

/// Bytes of a full datagram.
const DATAGRAM: u64 = 1_472;

/// Algorithm 2 with the same growth always: what laboratories compare with.
const CTCP_CONSTANT_ALPHA: Algorithm = Algorithm::new(&AlgorithmSpec {
    number: 6,
    name: "ctcp-constant-alpha",
    make: |datagram_size| Box::new(Ctcp::with_constant_alpha(datagram_size)),
    answers_to_marks: true,
    is_punctual: true,
    window: Some(WindowOf::Packets),
});

/// A path of 20 ms with some queue.
pub(super) fn rtt(queue_millis: u64) -> RttView {
    let (base, now) = (Duration::from_millis(20), Duration::from_millis(20 + queue_millis));
    RttView {
        latest: now,
        smoothed: now,
        variance: base / 10,
        minimum: base,
        minimum_ever: base,
        standing: now,
    }
}

/// An acknowledgement over such a path.
pub(super) fn acked(number: u64, largest_sent: u64, queue_millis: u64) -> Acked {
    Acked {
        now: Instant::from_millis(number),
        number: PacketNumber(number),
        sent_time: Instant::ZERO,
        sample: None,
        size: DATAGRAM,
        in_flight: 10,
        largest_sent: PacketNumber(largest_sent),
        rtt: rtt(queue_millis),
        loss_average: 0.0,
        is_app_limited: false,
        delivery_rate: None,
        ecn_ce: false,
    }
}

/// A loss over such a path.
pub(super) fn lost(number: u64, largest_sent: u64, rtt: RttView) -> Lost {
    Lost {
        now: Instant::from_millis(number),
        number: PacketNumber(number),
        sent_time: Instant::ZERO,
        size: DATAGRAM,
        in_flight: 10,
        largest_sent: PacketNumber(largest_sent),
        rtt,
        loss_average: 0.1,
    }
}
