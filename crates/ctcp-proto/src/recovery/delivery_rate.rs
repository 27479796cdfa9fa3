//! The delivery rate of the path in bytes per second, measured at acknowledgements.
//!
//! Follows draft-ietf-ccwg-bbr section 4.1: each packet carries a snapshot of how much had been delivered when it was sent. Its
//! acknowledgement shows how much was delivered since then, over the longer of the time it took to send that much and the time to
//! acknowledge it. Lost packets do not count, so this is the rate after losses. The maximum over about ten round trips estimates the
//! bottleneck.

use core::time::Duration;

use ctcp_base::Instant;

use super::sliding::SlidingMaximum;

/// Number of round trips over which the maximum is taken.
const WINDOW_ROUNDS: u64 = 10;

/// The state when a packet was sent, stored with the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliverySnapshot {
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    /// Whether the application had no more data to send.
    pub(crate) is_app_limited: bool,
}

impl DeliverySnapshot {
    /// A snapshot of a path that has not delivered anything.
    #[cfg(test)]
    pub(crate) fn empty(now: Instant) -> Self {
        Self { delivered: 0, delivered_time: now, first_sent_time: now, is_app_limited: false }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateSample {
    /// Bytes per second.
    pub(crate) rate: f64,
    /// The sender had no more data in that time, so the path may be faster.
    pub(crate) is_app_limited: bool,
    /// This acknowledgement began a new round trip.
    pub(crate) is_round_start: bool,
}

/// Measures the delivery rate of one path.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    /// Samples are application-limited while `delivered` is below this.
    app_limited_until: Option<u64>,
    /// Samples say nothing about the capacity of the path while `delivered` is below this.
    held_back_until: Option<u64>,
    round: u64,
    round_ends_at: u64,
    maximum: SlidingMaximum,
    /// The round of the last sample that was neither limited by the application nor held back.
    full_round: Option<u64>,
    /// The newest packet of the current acknowledgement: its snapshot and send time.
    newest: Option<(DeliverySnapshot, Instant)>,
}

impl DeliveryRate {
    /// Creates a meter without measurements.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_time: now,
            first_sent_time: now,
            app_limited_until: None,
            held_back_until: None,
            round: 0,
            round_ends_at: 0,
            maximum: SlidingMaximum::new(WINDOW_ROUNDS),
            full_round: None,
            newest: None,
        }
    }

    /// The snapshot for a packet sent now, with `bytes_in_flight` (not counting it) in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes_in_flight: u64) -> DeliverySnapshot {
        if bytes_in_flight == 0 {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            is_app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The sender has room but no data, with `bytes_in_flight` in flight.
    pub(crate) fn on_app_limited(&mut self, bytes_in_flight: u64) {
        self.app_limited_until = Some(self.delivered + bytes_in_flight.max(1));
    }

    /// The sender leaves the path out for moments, although it has data and the path has room.
    pub(crate) fn on_held_back(&mut self, bytes_in_flight: u64) {
        self.held_back_until = Some(self.delivered + bytes_in_flight.max(1));
    }

    /// A packet of `size` bytes sent at `sent` was acknowledged. Call this for each newly acknowledged packet in ascending order, then
    /// [`Self::finish_ack`].
    pub(crate) fn on_packet_acked(
        &mut self,
        now: Instant,
        snapshot: DeliverySnapshot,
        sent: Instant,
        size: u64,
    ) {
        self.delivered += size;
        self.delivered_time = now;
        let is_newer = self.newest.is_none_or(|(newest, newest_sent)| {
            snapshot.delivered > newest.delivered
                || snapshot.delivered == newest.delivered && sent >= newest_sent
        });
        if is_newer {
            self.newest = Some((snapshot, sent));
            // The next sending interval begins when this packet was sent.
            self.first_sent_time = sent;
        }
    }

    /// Ends the processing of one acknowledgement. Intervals below `minimum_rtt` are rejected, since a burst of acknowledgements would make
    /// the path look too fast.
    pub(crate) fn finish_ack(&mut self, now: Instant, minimum_rtt: Duration) -> Option<RateSample> {
        for limit in [&mut self.app_limited_until, &mut self.held_back_until] {
            limit.take_if(|until| self.delivered > *until);
        }
        let (snapshot, sent) = self.newest.take()?;
        let is_round_start = snapshot.delivered >= self.round_ends_at;
        if is_round_start {
            self.round += 1;
            self.round_ends_at = self.delivered;
        }
        let sending = sent - snapshot.first_sent_time;
        let acknowledging = now - snapshot.delivered_time;
        let interval = sending.max(acknowledging);
        if interval.is_zero() || interval < minimum_rtt {
            return None;
        }
        let rate = (self.delivered - snapshot.delivered) as f64 / interval.as_secs_f64();
        if !snapshot.is_app_limited && self.held_back_until.is_none() {
            self.full_round = Some(self.round);
        }
        // An application-limited sample can only prove that the path is faster, never that it is slower.
        if !snapshot.is_app_limited || rate > self.maximum().unwrap_or(0.0) {
            self.maximum.insert(self.round, rate as u64);
        }
        Some(RateSample { rate, is_app_limited: snapshot.is_app_limited, is_round_start })
    }

    /// The maximum rate of about the last ten round trips, in bytes per second.
    pub(crate) fn maximum(&self) -> Option<f64> {
        self.maximum.maximum(self.round).map(|rate| rate as f64)
    }

    /// The same, if in one of these round trips the sender sent all that congestion control allowed.
    pub(crate) fn capacity(&self) -> Option<f64> {
        self.full_round.filter(|round| self.round - round <= WINDOW_ROUNDS).and_then(|_| self.maximum())
    }

    /// Whether packets sent now are application-limited.
    #[cfg(test)]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
}

#[cfg(test)]
mod tests;
