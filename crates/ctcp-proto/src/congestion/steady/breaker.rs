//! The circuit breaker (RFC 8084): when much more is lost than the path loses by itself, the window is halved once a round trip until
//! that is over, whatever delay and experiments say.
//!
//! Many flows that share a full queue cannot tell what it drops from noise: one of them that sends less changes nothing. Without
//! the breaker, each made up for the drops of all.
//!
//! It is a cumulative sum test (Page, 1954) over all packets. Each lost packet adds one, and each packet takes the tolerated
//! share away. The sum rises when more than that is lost.

use super::loss_origin::Fate;
use crate::PacketNumber;

/// Loss beyond what is believed to be innocent that is put up with, as a share of packets and of that belief.
const MARGIN: f64 = 0.05;
const MARGIN_SHARE: f64 = 0.25;

/// However much is believed to be innocent, no more than this is.
const MOST: f64 = 0.48;

/// The same with fewer packets in a round trip than this: there are many flows, or there is little to win.
const MOST_OF_FEW: f64 = 0.15;
const FEW: f64 = 4.0;

/// What is believed is an average over some 256 packets: two of its deviations are put up with as well.
const DEVIATIONS: f64 = 0.125;

/// So many excess losses at least.
const LEAST: f64 = 2.0;

/// Sums the excess.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    sum: f64,
    /// Packets up to this number do not count.
    ignored: Option<PacketNumber>,
}

impl Breaker {
    /// Packets up to `last` were sent too fast, which was noticed and ended.
    pub(super) fn ignore(&mut self, last: PacketNumber) {
        *self = Self { sum: 0.0, ignored: Some(last) };
    }

    /// Takes the fate of a packet; `innocent`: the share of losses believed to be the path's own, which scatter `dispersion` times as
    /// much as single ones. Returns whether it trips.
    pub(super) fn on_fate(
        &mut self,
        fate: &Fate,
        innocent: f64,
        dispersion: f64,
        window: f64,
        is_beginning: bool,
    ) -> bool {
        if self.ignored.is_some_and(|last| fate.number <= last) {
            return false;
        }
        let margin = MARGIN + MARGIN_SHARE * innocent + DEVIATIONS * (innocent * (1.0 - innocent)).sqrt();
        // Before anything is known of the path, only what no path loses by itself counts.
        let most = if window < FEW { MOST_OF_FEW } else { MOST };
        let tolerated = if is_beginning { MOST } else { (innocent + margin).min(most) };
        self.sum = (self.sum + f64::from(u8::from(fate.is_lost)) - tolerated).max(0.0);
        // The limit is at least that; most packets need no more of it.
        if self.sum <= LEAST {
            return false;
        }
        let scatter = tolerated * (1.0 - tolerated) * dispersion;
        if self.sum <= confidence(window) * scatter / margin {
            return false;
        }
        self.sum = 0.0;
        true
    }
}

/// Half of the logarithm of how many packets should pass between two trips by chance: a hundred windows.
fn confidence(window: f64) -> f64 {
    let doublings = 64 - (window as u64).leading_zeros();
    1.2 + 0.5 * f64::from(doublings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::{Instant, Prng};

    /// How often it trips in 100,000 packets of which the share `lost` is lost, when `innocent` is believed.
    fn trips(lost: f64, innocent: f64, window: f64) -> u32 {
        let (mut breaker, mut prng) = (Breaker::default(), Prng::new(5));
        let fate = |number, is_lost| Fate {
            now: Instant::ZERO,
            number: PacketNumber(number),
            is_lost,
            is_calm: true,
        };
        (0..100_000)
            .map(|number| {
                let is_lost = prng.unit() < lost;
                u32::from(breaker.on_fate(&fate(number, is_lost), innocent, 1.0, window, false))
            })
            .sum()
    }

    #[test]
    fn loss_that_is_believed_to_be_innocent_hardly_ever_trips_it() {
        for (loss, most) in [(0.0, 0), (0.01, 1), (0.05, 5), (0.1, 10), (0.2, 10), (0.3, 10)] {
            let trips = trips(loss, loss, 64.0);
            assert!(trips <= most, "loss {loss}: {trips} times");
        }
    }

    #[test]
    fn a_tenth_beyond_what_is_believed_trips_it_within_a_few_windows() {
        for (innocent, window) in [(0.0, 4.0), (0.0, 64.0), (0.05, 64.0), (0.1, 64.0)] {
            let trips = trips(innocent + 0.15, innocent, window);
            assert!(trips > 500, "{innocent} believed, window {window}: {trips} times in 100,000 packets");
        }
    }

    #[test]
    fn half_of_all_packets_lost_trips_it_whatever_is_believed() {
        assert!(trips(0.6, 0.35, 64.0) > 1_000);
    }

    #[test]
    fn packets_sent_too_fast_at_the_end_of_slow_start_do_not_count() {
        let mut breaker = Breaker::default();
        breaker.ignore(PacketNumber(99));
        let trips = (0..100).filter(|&number| {
            let fate =
                Fate { now: Instant::ZERO, number: PacketNumber(number), is_lost: true, is_calm: false };
            breaker.on_fate(&fate, 0.0, 1.0, 64.0, false)
        });
        assert_eq!(trips.count(), 0);
    }
}
