//! Combines the values of repetitions and finds the best peers.

use serde::Serialize;

use super::cell::Cell;
use super::metric::{Metric, Summing};
use super::{Comparison, Sample};

/// Our own profile on some of the paths only: a yardstick rather than another transport, so it is never the best one.
const REFERENCES: [&str; 3] = ["path-1", "path-2", "path-1-2"];

/// Values within this share of the best one count as equally good.
const SAME: f64 = 0.01;

/// One peer's values in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Value {
    /// The statistic over all repetitions.
    pub(super) value: f64,
    /// The minimum over the repetitions.
    pub(super) least: f64,
    /// The maximum over the repetitions.
    pub(super) most: f64,
    /// The number of repetitions.
    pub(super) repetitions: usize,
    /// Whether the value is only a bound.
    pub(super) is_cut_off: bool,
}

/// A quantity in a cell, for all peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    #[serde(skip)]
    pub(super) cell: usize,
    #[serde(skip)]
    pub(super) metric: Metric,
    pub(super) scenario: String,
    pub(super) rate_bps: u64,
    pub(super) rtt_ms: f64,
    pub(super) loss: f64,
    pub(super) unit: &'static str,
    /// `median` or `p95`.
    pub(super) statistic: &'static str,
    /// In the order of the comparison's peers; `None` if a peer did not take part or failed.
    pub(super) values: Vec<Option<Value>>,
    /// The peers with the best value, and those that are equally good.
    pub(super) best: Vec<&'static str>,
}

impl Comparison {
    /// All rows, in the order of cells and of the metrics within.
    pub(super) fn summary(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            let samples = || self.samples.iter().filter(move |sample| sample.cell == index);
            let mut metrics: Vec<Metric> = samples().map(|sample| sample.metric).collect();
            metrics.sort_unstable();
            metrics.dedup();
            for metric in metrics {
                let samples: Vec<&Sample> = samples().filter(|sample| sample.metric == metric).collect();
                rows.push(self.row(index, cell, metric, ("median", 0.5), &samples));
                if metric.summing() == Summing::MedianAndTail {
                    rows.push(self.row(index, cell, metric, ("p95", 0.95), &samples));
                }
            }
        }
        rows
    }

    fn row(
        &self,
        index: usize,
        cell: &Cell,
        metric: Metric,
        (statistic, share): (&'static str, f64),
        samples: &[&Sample],
    ) -> Row {
        let of = |peer| samples.iter().copied().filter(move |sample| sample.peer == peer);
        let values: Vec<Option<Value>> =
            self.peers.iter().map(|&peer| value(&of(peer).collect::<Vec<_>>(), share)).collect();
        let rivals: Vec<Option<Value>> = self
            .peers
            .iter()
            .zip(&values)
            .map(|(peer, value)| value.filter(|_| !REFERENCES.contains(peer)))
            .collect();
        let best = best(metric, &self.peers, &rivals);
        Row {
            cell: index,
            metric,
            scenario: cell.scenario(metric),
            rate_bps: cell.rate().as_bits_per_second(),
            rtt_ms: cell.rtt().as_secs_f64() * 1e3,
            loss: cell.loss,
            unit: metric.unit(),
            statistic,
            values,
            best,
        }
    }
}

fn value(samples: &[&Sample], share: f64) -> Option<Value> {
    let statistic = |seed: Option<u64>| {
        let chosen = samples.iter().filter(|sample| seed.is_none_or(|seed| sample.seed == seed));
        quantile(chosen.map(|sample| sample.value).collect(), share)
    };
    let mut seeds: Vec<u64> = samples.iter().map(|sample| sample.seed).collect();
    seeds.dedup();
    let value = statistic(None)?;
    let each = seeds.iter().filter_map(|&seed| statistic(Some(seed)));
    let (least, most) = each.fold((value, value), |(least, most), one| (least.min(one), most.max(one)));
    // A value at or beyond a bound may really be larger.
    let is_cut_off = samples.iter().any(|sample| sample.is_cut_off && sample.value <= value);
    Some(Value { value, least, most, repetitions: seeds.len(), is_cut_off })
}

/// The value that this share of all values does not exceed; for the median of an even number, the mean of the middle
/// two.
fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let place = values.len() as f64 * share;
    let at = |place: f64| values.get((place as usize).max(1) - 1).copied();
    if share == 0.5 && values.len().is_multiple_of(2) {
        return Some(f64::midpoint(at(place)?, at(place + 1.0)?));
    }
    at(place.ceil())
}

fn best(metric: Metric, peers: &[&'static str], values: &[Option<Value>]) -> Vec<&'static str> {
    let is_better = |a: f64, b: f64| if metric.is_more_better() { a > b } else { a < b };
    let found = || values.iter().flatten().filter(|value| !value.is_cut_off).map(|value| value.value);
    let Some(best) = found().reduce(|a, b| if is_better(a, b) { a } else { b }) else { return Vec::new() };
    let is_as_good = |value: &Value| !value.is_cut_off && (value.value - best).abs() <= SAME * best.abs();
    let pairs = peers.iter().zip(values);
    pairs.filter(|(_, value)| value.as_ref().is_some_and(is_as_good)).map(|(peer, _)| *peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, is_cut_off: bool) -> Option<Value> {
        Some(Value { value, least: value, most: value, repetitions: 1, is_cut_off })
    }

    #[test]
    fn quantiles_are_measured_values_or_the_mean_of_two() {
        assert_eq!(quantile(vec![3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(vec![4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        assert_eq!(quantile((1..=20).map(f64::from).collect(), 0.95), Some(19.0));
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }

    #[test]
    fn the_best_peers_include_those_that_are_equally_good() {
        let peers = ["a", "b", "c", "d"];
        let values = [of(0.95, false), of(0.944, false), None, of(0.9, false)];
        assert_eq!(best(Metric::Goodput, &peers, &values), ["a", "b"]);
        assert_eq!(best(Metric::SentPerByte, &peers, &values), ["d"]);
        assert_eq!(best(Metric::Undelivered, &peers, &[of(0.0, false), of(0.0, false)]), ["a", "b"]);
    }

    #[test]
    fn a_value_that_is_only_a_bound_is_never_the_best() {
        let values = [of(5.0, true), of(6.0, false)];
        assert_eq!(best(Metric::Request(10_000), &["a", "b"], &values), ["b"]);
    }
}
