//! The round trips of packets near a lost one, which tell how long the queue was when it was dropped.

use core::time::Duration;

use crate::PacketNumber;

/// How many samples are remembered.
const SAMPLES: usize = 32;

/// The newest samples by packet number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Neighbours {
    samples: [Option<(PacketNumber, Duration)>; SAMPLES],
    newest: Duration,
}

impl Neighbours {
    /// A packet took `rtt`. Returns what the one before it took.
    pub(super) fn on_sample(&mut self, number: PacketNumber, rtt: Duration) -> Duration {
        self.samples[number.0 as usize % SAMPLES] = Some((number, rtt));
        core::mem::replace(&mut self.newest, rtt)
    }

    /// What the last acknowledged packet before `number` took; zero if it is not remembered.
    pub(super) fn before(&self, number: PacketNumber) -> Duration {
        let earlier = self.samples.iter().flatten().filter(|sample| sample.0 < number);
        earlier.max_by_key(|sample| sample.0).map_or(Duration::ZERO, |sample| sample.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_earlier_sample_is_found() {
        let mut neighbours = Neighbours::default();
        let millis = Duration::from_millis;
        assert_eq!(neighbours.before(PacketNumber(9)), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(3), millis(30)), Duration::ZERO);
        assert_eq!(neighbours.on_sample(PacketNumber(7), millis(70)), millis(30));
        assert_eq!(neighbours.before(PacketNumber(6)), millis(30));
        assert_eq!(neighbours.before(PacketNumber(8)), millis(70));
    }
}
