//! The round trips of packets close to a lost one, which show how long the queue was when it was dropped.

use core::time::Duration;

use crate::PacketNumber;

/// Number of samples kept.
const SAMPLES: usize = 256;

/// Maximum distance of a neighbour in packets.
const NEAR: u64 = 32;

/// The newest samples, indexed by packet number.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    samples: [Option<(PacketNumber, Duration)>; SAMPLES],
    newest: Duration,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self { samples: [None; SAMPLES], newest: Duration::ZERO }
    }
}

impl Neighbours {
    /// Records the round trip of a packet. Returns the previous sample.
    pub(super) fn on_sample(&mut self, number: PacketNumber, rtt: Duration) -> Duration {
        self.samples[number.0 as usize % SAMPLES] = Some((number, rtt));
        core::mem::replace(&mut self.newest, rtt)
    }

    /// The round trip of the last acknowledged packet shortly before `number`; zero if there is none.
    pub(super) fn before(&self, number: PacketNumber) -> Duration {
        self.first((1..=NEAR.min(number.0)).map(|back| number.0 - back)).unwrap_or_default()
    }

    /// The round trip of the first acknowledged packet shortly after `number`, if there is one.
    pub(super) fn after(&self, number: PacketNumber) -> Option<Duration> {
        self.first((1..=NEAR).map(|ahead| number.0 + ahead))
    }

    fn first(&self, mut numbers: impl Iterator<Item = u64>) -> Option<Duration> {
        let sample = |near: u64| self.samples[near as usize % SAMPLES].filter(|sample| sample.0.0 == near);
        numbers.find_map(sample).map(|(_, rtt)| rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_samples_are_found() {
        let mut neighbours = Neighbours::default();
        let millis = Duration::from_millis;
        assert_eq!(neighbours.before(PacketNumber(9)), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(3), millis(30)), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(7), millis(70)), millis(30));
        assert_eq!(neighbours.before(PacketNumber(6)), millis(30));
        assert_eq!(neighbours.before(PacketNumber(8)), millis(70));
        assert_eq!(neighbours.after(PacketNumber(4)), Some(millis(70)));
        assert_eq!(neighbours.after(PacketNumber(7)), None);
    }
}
