//! Compares a figure computed in the simulator with the same figure measured on real sockets, point by point.

use core::fmt::Write;

use serde::Serialize;
use serde_json::Value;

/// The figures whose points have the same series and positions in both.
pub const COMPARED: [&str; 5] = ["ctcp-fig3a", "ctcp-fig3b", "ctcp-fig5", "ctcp-fig6", "ctcp-fig7"];

/// The relative difference above which a point is marked as large.
pub const LARGE: f64 = 0.1;

/// A point that both results have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The figure.
    pub id: String,
    /// The name of its series.
    pub series: String,
    /// The position on the x axis.
    pub x: f64,
    /// The simulated value.
    pub simulated: f64,
    /// The measured value.
    pub measured: f64,
    /// The difference of the measured value relative to the simulated one.
    pub difference: f64,
}

/// Pairs the points of the two `ID.json` of a figure, in the order of the first. Points that are equal to the last
/// digit come from a formula and are left out.
#[must_use]
pub fn pairs(id: &str, simulated: &Value, measured: &Value) -> Vec<Pair> {
    let others = points(measured);
    let pair = |(series, x, simulated): (String, f64, f64)| {
        let (_, _, measured) = others.iter().find(|other| other.0 == series && other.1 == x)?;
        let difference = measured / simulated - 1.0;
        let pair = Pair { id: id.to_owned(), series, x, simulated, measured: *measured, difference };
        (difference != 0.0 && difference.is_finite()).then_some(pair)
    };
    points(simulated).into_iter().filter_map(pair).collect()
}

/// Returns series, position and value of all points.
fn points(figure: &Value) -> Vec<(String, f64, f64)> {
    let point = |point: &Value| {
        let number = |name: &str| point[name].as_f64();
        Some((point["series"].as_str()?.to_owned(), number("x")?, number("y")?))
    };
    figure["points"].as_array().into_iter().flatten().filter_map(point).collect()
}

/// Formats the pairs as a Markdown table, which is also readable in a terminal, and adds how many points agree.
#[must_use]
pub fn table(pairs: &[Pair]) -> String {
    let mut text = String::from(
        "| figure | series | x | simulated | measured | difference |\n|---|---|---|---|---|---|\n",
    );
    for Pair { id, series, x, simulated, measured, difference } in pairs {
        let mark = if difference.abs() > LARGE { " (large)" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {id} | {series} | {x} | {simulated:.4} | {measured:.4} | {:+.1} %{mark} |",
            100.0 * difference
        );
    }
    let near = pairs.iter().filter(|pair| pair.difference.abs() <= LARGE).count();
    let _ = writeln!(text, "\n{near} of {} points are within {} %.", pairs.len(), 100.0 * LARGE);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figure(points: &[(&str, f64, f64)]) -> Value {
        let points: Vec<Value> =
            points.iter().map(|(series, x, y)| json!({ "series": series, "x": x, "y": y })).collect();
        json!({ "points": points })
    }

    #[test]
    fn points_are_paired_by_series_and_position_and_formulas_are_left_out() {
        let simulated = figure(&[("a", 0.01, 2.0), ("a", 0.02, 1.0), ("theory", 1.0, 3.0), ("b", 1.0, 1.0)]);
        let measured = figure(&[("a", 0.02, 1.05), ("theory", 1.0, 3.0), ("a", 0.01, 1.5), ("c", 1.0, 1.0)]);
        let found = pairs("figure", &simulated, &measured);
        let differences: Vec<f64> = found.iter().map(|pair| (pair.difference * 1e6).round() / 1e6).collect();
        assert_eq!(differences, [-0.25, 0.05]);
        let table = table(&found);
        assert!(table.contains("| figure | a | 0.01 | 2.0000 | 1.5000 | -25.0 % (large) |"), "{table}");
        assert!(table.ends_with("\n1 of 2 points are within 10 %.\n"), "{table}");
    }

    #[test]
    fn missing_points_or_values_give_no_pairs() {
        assert!(pairs("figure", &json!({}), &figure(&[("a", 1.0, 1.0)])).is_empty());
        let nothing = json!({ "points": [{ "series": "a", "x": 1.0, "y": null }] });
        assert!(pairs("figure", &nothing, &figure(&[("a", 1.0, 1.0)])).is_empty());
    }
}
