//! Networks drawn from all combinations of a few rates and round-trip times, kinds of loss and of noise, and loss rates.

use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};

/// The seed of the draw.
const SEED: u64 = 1;

/// A download takes this long, or so many round trips if they take longer.
const TIME: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 50;

/// What networks are drawn from.
pub(super) struct Ranges {
    /// Rates in Mbit/s and round-trip times in milliseconds.
    paths: &'static [(u64, u64)],
    kinds: &'static [Kind],
    /// Mean loss rates.
    losses: &'static [f64],
    /// The number of networks in a full and in a quick run.
    drawn: (usize, usize),
}

/// The networks of downloads.
pub(super) const DOWNLOADS: Ranges = Ranges {
    paths: &[(5, 300), (25, 20), (100, 100), (200, 30)],
    kinds: &[
        Kind::Independent,
        Kind::Bursts(5),
        Kind::Bursts(12),
        Kind::Jitter(5),
        Kind::Jitter(15),
        Kind::Jitter(30),
    ],
    losses: &[0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3],
    drawn: (40, 1),
};

/// The networks of requests.
pub(super) const REQUESTS: Ranges = Ranges {
    paths: &[(25, 10), (25, 100)],
    kinds: &[Kind::Independent, Kind::Bursts(5), Kind::Jitter(5)],
    losses: &[0.0, 0.01, 0.05, 0.1, 0.2],
    drawn: (12, 1),
};

/// Above this loss rate no path is faster than this many Mbit/s: emulator and programs share the processor.
const LOSS_AT_ANY_RATE: f64 = 0.02;
const RATE_WITH_MORE_LOSS: u64 = 100;

/// How packets are lost and delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Losses are independent.
    Independent,
    /// Losses come in bursts of this many packets on average.
    Bursts(u32),
    /// Losses are independent, and up to this many milliseconds are added to the delay each way.
    Jitter(u64),
}

/// A network but for its loss rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnNetwork {
    megabits: u64,
    rtt_ms: u64,
    kind: Kind,
}

impl DrawnNetwork {
    /// The name in scenarios.
    pub(super) fn name(self) -> String {
        match self.kind {
            Kind::Independent => "drawn network with independent loss".to_owned(),
            Kind::Bursts(packets) => format!("drawn network with bursts of {packets}"),
            Kind::Jitter(millis) => format!("drawn network with up to {millis} ms of jitter each way"),
        }
    }

    /// The path that loses the fraction `loss`.
    pub(super) fn path(self, loss: Probability) -> PathConfig {
        let model = match self.kind {
            Kind::Bursts(packets) => {
                LossModel::bursts(loss, f64::from(packets)).expect("possible for all losses here")
            }
            Kind::Independent | Kind::Jitter(_) => LossModel::Bernoulli(loss),
        };
        let (rate, rtt) = (Rate::from_megabits_per_second(self.megabits), Duration::from_millis(self.rtt_ms));
        let path = PathConfig::new(rate, rtt, model).with_lossless_return();
        match self.kind {
            Kind::Jitter(millis) => path.with_jitter(Duration::from_millis(millis)),
            Kind::Independent | Kind::Bursts(_) => path,
        }
    }
}

/// All combinations, each with its loss rate.
fn all(ranges: &Ranges) -> Vec<(DrawnNetwork, f64)> {
    let mut all = Vec::new();
    for &(fastest, rtt_ms) in ranges.paths {
        for &kind in ranges.kinds {
            // Without loss there are no bursts.
            let losses =
                ranges.losses.iter().copied().filter(|loss| *loss > 0.0 || !matches!(kind, Kind::Bursts(_)));
            all.extend(losses.map(|loss| {
                let megabits =
                    if loss > LOSS_AT_ANY_RATE { fastest.min(RATE_WITH_MORE_LOSS) } else { fastest };
                (DrawnNetwork { megabits, rtt_ms, kind }, loss)
            }));
        }
    }
    all
}

/// The networks of a run, in the order of all combinations.
pub(super) fn networks(ranges: &Ranges, quick: bool) -> Vec<(DrawnNetwork, f64)> {
    let mut numbered: Vec<_> = all(ranges).into_iter().enumerate().collect();
    let mut prng = Prng::new(SEED).fork("networks");
    let wanted = if quick { ranges.drawn.1 } else { ranges.drawn.0 };
    for place in 0..wanted {
        let chosen = place + prng.below((numbered.len() - place) as u64) as usize;
        numbered.swap(place, chosen);
    }
    numbered.truncate(wanted);
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, network)| network).collect()
}

/// How long a download on a network with this round-trip time takes.
pub(super) fn time(rtt: Duration) -> Duration {
    TIME.max(ROUNDS * rtt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_different_networks_of_every_rate_and_kind_are_drawn() {
        let drawn = networks(&DOWNLOADS, false);
        assert_eq!(drawn.len(), 40);
        assert!((1..drawn.len()).all(|index| !drawn[..index].contains(&drawn[index])));
        let has = |of: &dyn Fn(&DrawnNetwork) -> bool| drawn.iter().any(|(network, _)| of(network));
        assert!(DOWNLOADS.kinds.iter().all(|kind| has(&|network| network.kind == *kind)));
        assert!(DOWNLOADS.paths.iter().all(|(_, rtt_ms)| has(&|network| network.rtt_ms == *rtt_ms)));
        assert_eq!(drawn, networks(&DOWNLOADS, false));
        assert_eq!(networks(&REQUESTS, false).len(), 12);
    }

    #[test]
    fn downloads_over_long_paths_take_longer() {
        assert_eq!([20, 300].map(|millis| time(Duration::from_millis(millis)).as_secs()), [5, 15]);
    }

    #[test]
    fn a_fast_path_loses_little() {
        let all = all(&DOWNLOADS);
        assert!(all.iter().all(|(network, loss)| network.megabits <= 100 || *loss <= 0.02));
        assert!(all.iter().any(|(network, _)| network.megabits == 200));
    }

    #[test]
    fn the_path_is_that_of_the_name() {
        let network = DrawnNetwork { megabits: 5, rtt_ms: 300, kind: Kind::Jitter(15) };
        let path = network.path(Probability::new(0.1).expect("a probability"));
        assert_eq!(path.forward.jitter, Duration::from_millis(15));
        assert_eq!(2 * path.forward.delay, Duration::from_millis(300));
        assert_eq!(path.forward.rate, Rate::from_megabits_per_second(5));
    }
}
