//! How loss responds to the window.
//!
//! A path that loses packets by itself loses the same fraction of a small window and of a large one. A queue that overflows loses what exceeds
//! it, so only large windows lose more. The window of a flow varies from round trip to round trip, so the last ones show which it is
//! without an experiment, also where noise hides the queue. Among many flows the loss of one does not respond to its own window, and nothing
//! is found.

/// Number of round trips compared: the smaller half of their windows with the larger half. More would compare with a past that is gone.
const ROUNDS: usize = 16;

/// Minimum number of round trips.
const ROUNDS_MIN: usize = 8;

/// How much larger the windows of the larger half must be.
const LARGER: f64 = 1.15;

/// By how many standard deviations its loss must be higher. There is a comparison in each round trip, so two would often be chance.
const DEVIATIONS: f64 = 3.0;

/// Added to the loss of the smaller half, in the same standard deviations. It is found where chance made it small.
const CHANCE: f64 = 0.5;

/// A round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Trip {
    /// Packets that might be in flight when its packets were sent.
    window: f64,
    acked: u32,
    lost: u32,
}

/// The windows and losses of the last round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    trips: [Option<Trip>; ROUNDS],
    /// The window of the packets now in flight.
    window: Option<f64>,
    is_found: bool,
}

impl Response {
    /// A round trip is over, after which `window` packets may be in flight. `dispersion` is the variance of the number of lost packets relative to
    /// independent losses. Returns the fraction of packets that the path loses by itself, if larger windows lost more than that.
    pub(super) fn on_round(&mut self, window: f64, acked: u32, lost: u32, dispersion: f64) -> Option<f64> {
        if let Some(window) = self.window.replace(window) {
            self.trips.rotate_right(1);
            self.trips[0] = Some(Trip { window, acked, lost });
        }
        let found = self.compare(dispersion);
        self.is_found = found.is_some();
        found
    }

    /// Whether larger windows lost more lately.
    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    fn compare(&self, dispersion: f64) -> Option<f64> {
        // The places that are still empty are the last ones.
        let count = self.trips.iter().flatten().count();
        let mut trips = self.trips.map(Option::unwrap_or_default);
        let trips = trips.get_mut(..count).filter(|trips| trips.len() >= ROUNDS_MIN)?;
        trips.sort_unstable_by(|one, other| one.window.total_cmp(&other.window));
        let (small, large) = trips.split_at(count / 2);
        let (small, large) = (Half::of(small), Half::of(large));
        let loss = (small.lost + large.lost) / (small.packets + large.packets);
        let scatter = loss * (1.0 - loss) * dispersion;
        let deviation = (scatter * (1.0 / small.packets + 1.0 / large.packets)).sqrt();
        let is_larger = large.window > LARGER * small.window;
        let is_found = is_larger && large.loss() - small.loss() > DEVIATIONS * deviation;
        is_found.then(|| small.loss() + CHANCE * deviation)
    }
}

/// Half of the round trips.
struct Half {
    /// The mean window.
    window: f64,
    packets: f64,
    lost: f64,
}

impl Half {
    fn of(trips: &[Trip]) -> Self {
        let sum = |value: fn(&Trip) -> f64| trips.iter().map(value).sum::<f64>();
        Self {
            window: sum(|trip| trip.window) / trips.len() as f64,
            packets: sum(|trip| f64::from(trip.acked + trip.lost)).max(1.0),
            lost: sum(|trip| f64::from(trip.lost)),
        }
    }

    fn loss(&self) -> f64 {
        self.lost / self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;

    /// What is found in some of `rounds` round trips with windows of 40 to 72 packets, on a path that loses the fraction `loss` and holds
    /// `room` packets.
    fn found(rounds: u32, loss: f64, room: u32, dispersion: f64) -> Vec<f64> {
        let (mut response, mut prng) = (Response::default(), Prng::new(1));
        let windows = |round: u32| 40 + round * 7 % 33;
        let mut on_round = |round| {
            let sent = if round == 0 { 0 } else { windows(round - 1) };
            let passed = (0..sent).map(|_| u32::from(prng.unit() >= loss)).sum::<u32>();
            let acked = passed.min(room);
            response.on_round(f64::from(windows(round)), acked, sent - acked, dispersion)
        };
        (0..=rounds).filter_map(&mut on_round).collect()
    }

    #[test]
    fn loss_that_grows_with_the_window_is_not_the_paths_own() {
        let found = found(100, 0.1, 50, 1.0);
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        assert!(found.len() > 50 && (0.06..0.16).contains(&mean), "{} times {mean}", found.len());
    }

    #[test]
    fn loss_that_does_not_respond_to_the_window_may_be_the_paths_own() {
        for loss in [0.0, 0.1, 0.3] {
            let found = found(1_000, loss, u32::MAX, 1.0);
            assert!(found.len() < 20, "{loss}: {} times", found.len());
        }
    }

    #[test]
    fn bursts_scatter_more_and_few_round_trips_say_nothing() {
        assert!(found(100, 0.1, 50, 20.0).is_empty(), "by chance with bursts");
        assert!(found(7, 0.1, 50, 1.0).is_empty());
    }

    #[test]
    fn a_steady_window_says_nothing() {
        let mut response = Response::default();
        let found = (0..32).filter_map(|round| {
            let lost = if round < 16 { 0 } else { 20 };
            response.on_round(50.0 + f64::from(round / 16), 50 - lost, lost, 1.0)
        });
        assert_eq!(found.count(), 0);
    }
}
