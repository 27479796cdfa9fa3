//! Values that relate the peers of a cell and a repetition to each other.

use super::cell::{Cell, Test};
use super::metric::Metric;
use super::profiles::TRANSFERS;

/// Our profile `default` on the first path alone, and on the second.
const SINGLE: [&str; 2] = ["path-1", "path-2"];

/// The same on the first two of three paths.
const FIRST_TWO: &str = "path-1-2";

/// The flow that the others are compared with beside a Cubic flow.
const CUBIC: &str = "cubic";

/// The ratios of a peer in a cell, from the values that were measured in the same repetition.
pub(super) fn ratios(
    cell: &Cell,
    peer: &str,
    measured: impl Fn(&str, Metric) -> Option<f64>,
) -> Vec<(Metric, f64)> {
    let mut found = Vec::new();
    let mut add = |metric, value: Option<f64>, base: Option<f64>| {
        // A ratio to nothing is undefined.
        if let (Some(value), Some(base)) = (value, base.filter(|base| *base > 0.0)) {
            found.push((metric, value / base));
        }
    };
    if cell.test == Test::Shared && peer != CUBIC {
        // Which of two Cubic flows has more is chance; their mean is not.
        let of_two = measured(CUBIC, Metric::CubicBeside).zip(measured(CUBIC, Metric::Goodput));
        let mean = of_two.map(|(one, other)| f64::midpoint(one, other));
        add(Metric::CubicOfCubic, measured(peer, Metric::CubicBeside), mean);
    } else if cell.has_several_paths() && !SINGLE.contains(&peer) {
        let of_transfer =
            |size| (Metric::Transfer(size), Metric::TransferOfSum(size), Metric::TransferOfBetter(size));
        let of_goodput = (Metric::Goodput, Metric::OfSum, Metric::OfBetter);
        for (metric, of_sum, of_better) in [of_goodput].into_iter().chain(TRANSFERS.map(of_transfer)) {
            let alone = SINGLE.map(|single| measured(single, metric));
            let [Some(first), Some(second)] = alone else { continue };
            add(of_sum, measured(peer, metric), Some(first + second));
            add(of_better, measured(peer, metric), Some(first.max(second)));
        }
        if peer != FIRST_TWO {
            add(Metric::OfFirstTwo, measured(peer, Metric::Goodput), measured(FIRST_TWO, Metric::Goodput));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::cell::Condition;
    use super::*;

    fn cell(test: Test, condition: Condition) -> Cell {
        Cell { test, condition, loss: 0.05 }
    }

    fn table<'t>(values: &'t [(&str, Metric, f64)]) -> impl Fn(&str, Metric) -> Option<f64> + 't {
        |peer, metric| {
            let found = values.iter().find(|(name, of, _)| *name == peer && *of == metric);
            found.map(|(.., value)| *value)
        }
    }

    #[test]
    fn a_download_over_two_paths_is_related_to_our_single_ones() {
        let values = [("default", 0.6), ("path-1", 0.6), ("path-2", 0.2)]
            .map(|(peer, value)| (peer, Metric::Goodput, value));
        let paths = cell(Test::Paths, Condition::UnequalPaths);
        let found = ratios(&paths, "default", table(&values));
        assert!(matches!(found[..], [(Metric::OfSum, sum), (Metric::OfBetter, better)]
            if (sum - 0.75).abs() < 1e-9 && (better - 1.0).abs() < 1e-9));
        assert!(ratios(&paths, "path-1", table(&values)).is_empty());
        assert!(ratios(&paths, "default", table(&values[..2])).is_empty(), "one of them failed");
    }

    #[test]
    fn a_third_path_is_related_to_the_first_two_and_cubic_to_cubic() {
        let values = [("default", Metric::Goodput, 0.49), ("path-1-2", Metric::Goodput, 0.5)];
        let third = cell(Test::Paths, Condition::ThirdPath);
        assert_eq!(ratios(&third, "default", table(&values)), [(Metric::OfFirstTwo, 0.98)]);
        assert!(ratios(&third, "path-1-2", table(&values)).is_empty());
        let values = [
            ("default", Metric::CubicBeside, 0.4),
            ("cubic", Metric::CubicBeside, 0.6),
            ("cubic", Metric::Goodput, 0.4),
        ];
        let shared = cell(Test::Shared, Condition::SharedLink);
        assert_eq!(ratios(&shared, "default", table(&values)), [(Metric::CubicOfCubic, 0.8)]);
        assert!(ratios(&shared, "cubic", table(&values)).is_empty());
    }
}
