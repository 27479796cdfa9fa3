//! The share of packets that the path loses by itself: what is lost while delay is low.
//!
//! A queue that overflows is a full one, so that what it drops has neighbours with long round trips, whether the queue is ours alone or
//! shared with many. Loss by noise has any neighbours. So only packets whose neighbour just before them took little time count: little
//! beside the empty path, or beside what packets took of late. What a crowd drops then counts for less than it is, and
//! trust in it cannot feed on itself.

use core::time::Duration;

use crate::PacketNumber;
use crate::recovery::bursts::Bursts;

const WEIGHT: f64 = 1.0 / 128.0;
const WEIGHT_UNTRUSTED: f64 = 1.0 / 1024.0;
const PRIOR: u32 = 8;
const MOST: f64 = 0.4;

/// Until so many packets the share follows whatever is lost.
const YOUNG: u32 = 64;

/// Low is what so many of the last packets were below.
const LOW: f64 = 0.25;

/// How fast the quantile follows, in deviations a sample.
const LOW_STEP: f64 = 0.15;

/// Samples kept to find a neighbour.
const NEIGHBOURS: usize = 64;

/// The share, and what it is learnt from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Innocent {
    share: f64,
    samples: u32,
    bursts: Bursts,
    /// The quantile of round trips, in seconds.
    low: Option<f64>,
    /// The newest samples, a ring.
    neighbours: [(u64, Duration); NEIGHBOURS],
    next: usize,
}

impl Default for Innocent {
    fn default() -> Self {
        Self {
            share: 0.0,
            samples: 0,
            bursts: Bursts::default(),
            low: None,
            neighbours: [(u64::MAX, Duration::ZERO); NEIGHBOURS],
            next: 0,
        }
    }
}

impl Innocent {
    pub(super) fn share(&self) -> f64 {
        self.share.min(MOST)
    }

    pub(super) fn dispersion(&self) -> f64 {
        self.bursts.dispersion(self.share)
    }

    /// A round trip was measured with packet `number`.
    pub(super) fn on_sample(&mut self, number: PacketNumber, rtt: Duration, deviation: Duration) {
        self.neighbours[self.next] = (number.0, rtt);
        self.next = (self.next + 1) % NEIGHBOURS;
        let sample = rtt.as_secs_f64();
        let low = self.low.get_or_insert(sample);
        let step = LOW_STEP * deviation.as_secs_f64();
        *low += if sample < *low { -step * (1.0 - LOW) } else { step * LOW };
    }

    /// The round trip of the newest packet before `number`.
    pub(super) fn neighbour(&self, number: PacketNumber) -> Option<Duration> {
        let before = self.neighbours.iter().filter(|(sample, _)| *sample <= number.0);
        before.max_by_key(|(sample, _)| *sample).map(|(_, rtt)| *rtt)
    }

    /// Whether a round trip is short beside what packets took of late.
    pub(super) fn is_low(&self, rtt: Duration) -> bool {
        self.low.is_some_and(|low| rtt.as_secs_f64() <= low)
    }

    /// Few packets were seen: any share may be learnt.
    pub(super) fn is_young(&self) -> bool {
        self.samples < YOUNG
    }

    /// The share that loss must exceed before it is more than innocent.
    pub(super) fn tolerated(&self) -> f64 {
        let known = f64::from(self.samples.clamp(YOUNG, 256));
        (self.share() + 1.5 * (self.share() * (1.0 - self.share()) * self.dispersion() / known).sqrt()).min(MOST)
    }

    /// A packet that counts arrived or was lost. Unless what it shows `is_trusted`, the share follows slowly.
    pub(super) fn on_fate(&mut self, number: PacketNumber, is_lost: bool, is_trusted: bool) {

        if is_lost {
            self.bursts.on_loss(number);
        }
        self.samples = self.samples.saturating_add(1);
        let fresh = 1.0 / f64::from(self.samples.saturating_add(PRIOR));
        let weight = if is_trusted || self.is_young() {
            self.bursts.weight(WEIGHT, self.share).max(fresh)
        } else {
            WEIGHT_UNTRUSTED
        };
        self.share += weight * (f64::from(u8::from(is_lost)) - self.share);
    }

    /// What was learnt of the share is void.
    pub(super) fn forget(&mut self) {
        (self.share, self.samples, self.bursts) = (0.0, 0, Bursts::default());
    }
}
