//! The circuit breaker (RFC 8084): while much more is lost than the path loses by itself, the window is cut at most once per round trip: to
//! half, or first to 0.7 (see `Steady::trip`). Packets of a push do not count, nor do those in flight when slow start ends, unless the breaker
//! ends it with a small window.
//!
//! Many flows that share a full queue cannot distinguish its drops from noise, because the reaction of one of them changes nothing. Without
//! the breaker, each would compensate for the drops of all.
//!
//! It is a cumulative sum test (Page, 1954) over all packets. Each lost packet adds one, and each packet subtracts the tolerated loss rate,
//! so the sum rises while more than that is lost.

use super::loss_origin::Fate;
use crate::PacketNumber;

/// Tolerated loss beyond the innocent loss, as a fraction of packets and of the innocent loss.
const MARGIN: f64 = 0.05;
const MARGIN_SHARE: f64 = 0.25;

/// Maximum of the tolerated loss.
const MOST: f64 = 0.48;

/// The same for windows below [`FEW`] that meet a queue: there are many flows, or there is little to gain.
const MOST_OF_FEW: f64 = 0.15;
const FEW: f64 = 4.0;

/// The innocent loss is an average over some 256 packets. Two of its standard deviations are tolerated in addition.
const DEVIATIONS: f64 = 0.125;

/// While the window has never been full, so many packets do not count. What a connection exchanges before its first request, and its probes, hardly
/// cause losses.
const UNUSED: u64 = 128;

/// Minimum number of excess losses.
const LEAST: f64 = 2.0;

/// The flow whose packets are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) window: f64,
    /// It is in its first slow start, and no flight of at least half of the window has timed out.
    pub(super) is_beginning: bool,
    /// Its window has never been full, and no such flight has timed out.
    pub(super) is_unused: bool,
    /// The last round trip had a queue above the target.
    pub(super) is_queued: bool,
}

/// The state of the test.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    sum: f64,
    /// Packets up to this number do not count.
    ignored: Option<PacketNumber>,
    /// The number of packets processed.
    packets: u64,
}

impl Breaker {
    /// Ignores packets up to `last`, which were sent too fast, since that was noticed and ended.
    pub(super) fn ignore(&mut self, last: PacketNumber) {
        *self = Self { sum: 0.0, ignored: self.ignored.max(Some(last)), ..*self };
    }

    /// Processes the fate of a packet. `innocent` is the fraction of losses attributed to the path, whose variance is `dispersion` times
    /// that of independent losses. Returns whether the breaker trips.
    pub(super) fn on_fate(&mut self, fate: &Fate, innocent: f64, dispersion: f64, flow: Flow) -> bool {
        self.packets += 1;
        let is_unused = flow.is_unused && self.packets <= UNUSED;
        if is_unused || self.ignored.is_some_and(|last| fate.number <= last) {
            return false;
        }
        let margin = MARGIN + MARGIN_SHARE * innocent + DEVIATIONS * (innocent * (1.0 - innocent)).sqrt();
        // Flows that have few packets because there are many of them usually fill a queue. One that joins when it is full does not see it.
        let meets_no_queue = fate.is_calm && !flow.is_queued;
        let window = if meets_no_queue { flow.window.max(FEW) } else { flow.window };
        // Before anything is known about the path, only loss that no path causes by itself counts.
        let most = if window < FEW { MOST_OF_FEW } else { MOST };
        let tolerated = if flow.is_beginning { MOST } else { (innocent + margin).min(most) };
        self.sum = (self.sum + f64::from(u8::from(fate.is_lost)) - tolerated).max(0.0);
        // The limit is at least this much, so most packets need no further computation.
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

/// Approximately half of the logarithm of the number of packets between two false alarms: a hundred windows.
fn confidence(window: f64) -> f64 {
    let doublings = 64 - (window as u64).leading_zeros();
    1.2 + 0.5 * f64::from(doublings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::{Instant, Prng};

    /// How often it trips in 100,000 packets of which the fraction `lost` is lost and `innocent` is attributed to the path.
    fn trips(lost: f64, innocent: f64, window: f64) -> u32 {
        trips_at(lost, innocent, window, false)
    }

    /// The same, at a queue or not.
    fn trips_at(lost: f64, innocent: f64, window: f64, is_queued: bool) -> u32 {
        let (mut breaker, mut prng) = (Breaker::default(), Prng::new(5));
        let flow = Flow { window, is_beginning: false, is_unused: false, is_queued };
        let fate = |number, is_lost| Fate {
            now: Instant::ZERO,
            number: PacketNumber(number),
            is_lost,
            is_calm: true,
        };
        (0..100_000)
            .map(|number| {
                let is_lost = prng.unit() < lost;
                u32::from(breaker.on_fate(&fate(number, is_lost), innocent, 1.0, flow))
            })
            .sum()
    }

    #[test]
    fn innocent_loss_hardly_ever_trips_the_breaker() {
        for (loss, most) in [(0.0, 0), (0.01, 1), (0.05, 5), (0.1, 10), (0.2, 10), (0.3, 10)] {
            let trips = trips(loss, loss, 64.0);
            assert!(trips <= most, "loss {loss}: {trips} times");
        }
    }

    #[test]
    fn loss_well_above_the_innocent_loss_trips_the_breaker_within_a_few_windows() {
        for (innocent, window) in [(0.0, 4.0), (0.0, 64.0), (0.05, 64.0), (0.1, 64.0)] {
            let trips = trips(innocent + 0.15, innocent, window);
            assert!(trips > 500, "{innocent} believed, window {window}: {trips} times in 100,000 packets");
        }
    }

    #[test]
    fn few_packets_tolerate_the_loss_of_the_path_only_where_they_meet_no_queue() {
        let (queued, free) = (trips_at(0.3, 0.3, 2.0, true), trips_at(0.3, 0.3, 2.0, false));
        assert!(free < 100 && queued > 1_000, "{free} and {queued} times in 100,000 packets");
    }

    #[test]
    fn loss_of_more_than_half_trips_the_breaker_whatever_the_innocent_loss() {
        assert!(trips(0.6, 0.35, 64.0) > 1_000);
    }

    #[test]
    fn packets_sent_too_fast_at_the_end_of_slow_start_do_not_count() {
        let mut breaker = Breaker::default();
        let flow = Flow { window: 64.0, is_beginning: false, is_unused: false, is_queued: false };
        breaker.ignore(PacketNumber(99));
        let trips = (0..100).filter(|&number| {
            let fate =
                Fate { now: Instant::ZERO, number: PacketNumber(number), is_lost: true, is_calm: false };
            breaker.on_fate(&fate, 0.0, 1.0, flow)
        });
        assert_eq!(trips.count(), 0);
    }
}
