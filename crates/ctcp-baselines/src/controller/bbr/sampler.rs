//! Rate samples: how fast, and with how many losses, packets were delivered since an acknowledged packet was sent.

use std::collections::BTreeMap;

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_proto::congestion::{Acked, Lost, Sent};

/// Packets to remember at most. Their fate is unknown for longer only if the path is dead.
const REMEMBERED: usize = 1 << 17;

/// The state when a packet was sent.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    sent_time: Instant,
    delivered: u64,
    lost: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    in_flight: u64,
    is_app_limited: bool,
}

/// What the fate of one packet tells (draft-ietf-ccwg-bbr, per-ACK rate sample state). Amounts are packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Packets per second; `None` if the interval is shorter than a round trip, or the packet was lost.
    pub(super) rate: Option<f64>,
    /// Delivered since it was sent.
    pub(super) delivered: f64,
    /// Delivered before it was sent.
    pub(super) prior_delivered: u64,
    /// Lost since it was sent.
    pub(super) lost: f64,
    /// In flight when it was sent.
    pub(super) in_flight: f64,
    pub(super) is_app_limited: bool,
}

/// Takes the samples of one path.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    pub(super) delivered: u64,
    lost: u64,
    delivered_time: Option<Instant>,
    first_sent_time: Option<Instant>,
    /// Samples are limited by the application while fewer packets than this are delivered.
    app_limited_until: u64,
    sent: BTreeMap<u64, Snapshot>,
}

impl Sampler {
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        if sent.in_flight <= 1 {
            self.first_sent_time = Some(sent.now);
            self.delivered_time = Some(sent.now);
        }
        let snapshot = Snapshot {
            sent_time: sent.now,
            delivered: self.delivered,
            lost: self.lost,
            delivered_time: self.delivered_time.unwrap_or(sent.now),
            first_sent_time: self.first_sent_time.unwrap_or(sent.now),
            in_flight: sent.in_flight,
            is_app_limited: self.delivered < self.app_limited_until,
        };
        self.sent.insert(sent.number.0, snapshot);
        if self.sent.len() > REMEMBERED {
            self.sent.pop_first();
        }
    }

    /// Samples count as limited by the application until those in flight are delivered.
    pub(super) fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight.max(1);
    }

    /// `None` for a packet whose sending was not seen.
    pub(super) fn on_ack(&mut self, acked: &Acked, minimum_rtt: Duration) -> Option<Sample> {
        let snapshot = self.sent.remove(&acked.number.0)?;
        self.delivered += 1;
        self.delivered_time = Some(acked.now);
        self.first_sent_time = Some(snapshot.sent_time);
        let sending = snapshot.sent_time - snapshot.first_sent_time;
        let interval = sending.max(acked.now - snapshot.delivered_time);
        let sample = self.sample(&snapshot);
        let is_long = !interval.is_zero() && interval >= minimum_rtt;
        Some(Sample {
            rate: is_long.then(|| sample.delivered / interval.as_secs_f64()),
            is_app_limited: sample.is_app_limited || acked.is_app_limited,
            ..sample
        })
    }

    /// `None` for a packet whose sending was not seen.
    pub(super) fn on_loss(&mut self, lost: &Lost) -> Option<Sample> {
        self.lost += 1;
        let snapshot = self.sent.remove(&lost.number.0)?;
        Some(self.sample(&snapshot))
    }

    fn sample(&self, snapshot: &Snapshot) -> Sample {
        Sample {
            rate: None,
            delivered: (self.delivered - snapshot.delivered) as f64,
            prior_delivered: snapshot.delivered,
            lost: (self.lost - snapshot.lost) as f64,
            in_flight: snapshot.in_flight as f64,
            is_app_limited: snapshot.is_app_limited,
        }
    }
}
