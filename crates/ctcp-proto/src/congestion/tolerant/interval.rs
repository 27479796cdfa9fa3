//! What happened in a control interval: a round trip at least, and long enough for its figures to mean something.

use core::time::Duration;

use ctcp_base::Instant;

use super::super::Acked;
use super::super::round::Round;

/// Fewer packets say nothing of a rate.
const PACKETS_MIN: u32 = 8;

/// Deliveries are early and late by about the deviation of round trips: over so many of them it no longer matters.
const DEVIATIONS: u32 = 4;

/// An interval that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) lowest: Duration,
    /// The mean sample.
    pub(super) mean: Duration,
    pub(super) acked: u32,
    pub(super) lost: u32,
    pub(super) time: Duration,
    pub(super) is_app_limited: bool,
}

impl Interval {
    /// Packets a second that arrived.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.acked) / self.time.as_secs_f64().max(1e-6)
    }

    /// The share of packets that were lost.
    pub(super) fn loss(&self) -> f64 {
        f64::from(self.lost) / f64::from((self.acked + self.lost).max(1))
    }
}

/// Divides time into intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    round: Round,
    begun: Option<Instant>,
    lowest: Option<Duration>,
    sum: Duration,
    samples: u32,
    acked: u32,
    lost: u32,
    limited: u32,
}

impl Meter {
    /// Counts a packet. Returns the interval that it ends, if it does.
    pub(super) fn on_ack(&mut self, acked: &Acked) -> Option<Interval> {
        let Some(begun) = self.begun else {
            self.begin(acked);
            return None;
        };
        let enough = self.acked >= PACKETS_MIN && acked.now - begun >= acked.rtt.variance * DEVIATIONS;
        let ended = if self.round.is_behind(acked.number) && enough && acked.now > begun {
            let interval = self.lowest.map(|lowest| Interval {
                lowest,
                mean: self.sum / self.samples.max(1),
                acked: self.acked,
                lost: self.lost,
                time: acked.now - begun,
                is_app_limited: 2 * self.limited > self.acked,
            });
            self.begin(acked);
            interval
        } else {
            None
        };
        self.acked += 1;
        self.limited += u32::from(acked.is_app_limited);
        if acked.is_sample {
            let latest = acked.rtt.latest;
            self.sum += latest;
            self.samples += 1;
            self.lowest = Some(self.lowest.map_or(latest, |lowest| lowest.min(latest)));
        }
        ended
    }

    pub(super) fn on_loss(&mut self) {
        self.lost += 1;
    }

    fn begin(&mut self, acked: &Acked) {
        *self = Self { begun: Some(acked.now), ..Self::default() };
        self.round.begin(acked.largest_sent);
    }
}
