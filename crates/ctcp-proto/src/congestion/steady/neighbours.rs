//! The round trips of packets close to another one, which show how long the queue was when that was sent.
//!
//! One neighbour on either side shows it if the path's delay varies little. If it varies, hardly any packet takes as little time as the shortest one.
//! With a small window nearly no moment would then look calm, and the loss of the path would remain unknown. So a queue is what the nearest
//! [`PACKETS`] on one side show, or those that there are.

use core::time::Duration;

use super::calm::NOISE_WINDOW_MIN;
use super::{Acked, Lost, Steady};
use crate::PacketNumber;
use crate::recovery::rtt::RttView;

/// Number of samples kept.
const KEPT: usize = 256;

/// Maximum distance of a neighbour in packets.
const NEAR: u64 = 32;

/// So many packets on one side show a queue with a small window on a path whose delay varies.
const PACKETS: usize = 8;

/// The newest samples, indexed by packet number.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    samples: [Option<(PacketNumber, Duration)>; KEPT],
    newest: Duration,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self { samples: [None; KEPT], newest: Duration::ZERO }
    }
}

impl Neighbours {
    /// Records the round trip of a packet. Returns the previous sample.
    pub(super) fn on_sample(&mut self, number: PacketNumber, rtt: Duration) -> Duration {
        self.samples[number.0 as usize % KEPT] = Some((number, rtt));
        core::mem::replace(&mut self.newest, rtt)
    }

    /// The smallest round trip of the last `count` acknowledged packets shortly before `number`; zero if there is none.
    fn before(&self, number: PacketNumber, count: usize) -> Duration {
        self.least((1..=NEAR.min(number.0)).map(|back| number.0 - back), count).unwrap_or_default()
    }

    /// The smallest round trip of the first `count` acknowledged packets shortly after `number`, if there is one.
    fn after(&self, number: PacketNumber, count: usize) -> Option<Duration> {
        self.least((1..=NEAR).map(|ahead| number.0 + ahead), count)
    }

    fn least(&self, numbers: impl Iterator<Item = u64>, count: usize) -> Option<Duration> {
        let sample = |near: u64| self.samples[near as usize % KEPT].filter(|sample| sample.0.0 == near);
        numbers.filter_map(sample).map(|(_, rtt)| rtt).take(count).min()
    }
}

impl Steady {
    /// Whether a packet was acknowledged in a calm moment. Records its sample.
    pub(super) fn is_calm_ack(&mut self, acked: &Acked) -> bool {
        let rtt = &acked.rtt;
        let previous = self.neighbours.on_sample(acked.number, rtt.latest);
        let is_one_enough = self.is_one_neighbour_enough(rtt);
        let before = if is_one_enough { previous } else { self.neighbours.before(acked.number, PACKETS) };
        // The packet itself must be fast, too, or nearly every moment of a path with jitter would count.
        self.is_calm(rtt, before.max(rtt.latest))
    }

    /// Whether a packet was lost in a calm moment.
    pub(super) fn is_calm_loss(&self, lost: &Lost) -> bool {
        let rtt = &lost.rtt;
        let count = if self.is_one_neighbour_enough(rtt) { 1 } else { PACKETS };
        let after = self.neighbours.after(lost.number, count).unwrap_or(rtt.latest);
        self.is_calm(rtt, self.neighbours.before(lost.number, count).max(after))
    }

    fn is_one_neighbour_enough(&self, rtt: &RttView) -> bool {
        self.tokens >= NOISE_WINDOW_MIN || self.base.is_restless() || !self.base.varies(rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_samples_are_found() {
        let mut neighbours = Neighbours::default();
        let millis = Duration::from_millis;
        assert_eq!(neighbours.before(PacketNumber(9), 1), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(3), millis(30)), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(7), millis(70)), millis(30));
        assert_eq!([6, 8].map(|number| neighbours.before(PacketNumber(number), 1)), [millis(30), millis(70)]);
        assert_eq!(neighbours.before(PacketNumber(8), 2), millis(30), "the smaller one of two");
        assert_eq!(neighbours.after(PacketNumber(4), 2), Some(millis(70)), "there is only one");
        assert_eq!(neighbours.after(PacketNumber(7), 1), None);
    }
}
