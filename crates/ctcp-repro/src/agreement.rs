//! A figure computed in the simulator beside the same one measured on real sockets: the points that both have, and how far apart they are.

use core::fmt::Write;

use serde::Serialize;
use serde_json::Value;

/// The figures whose points have the same names and places in both.
pub const COMPARED: [&str; 5] = ["ctcp-fig3a", "ctcp-fig3b", "ctcp-fig5", "ctcp-fig6", "ctcp-fig7"];

/// From here on a difference wants to be explained.
pub const LARGE: f64 = 0.1;

/// A point that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The figure.
    pub id: String,
    /// The line in it.
    pub series: String,
    /// The place.
    pub x: f64,
    /// What was computed.
    pub simulated: f64,
    /// What was measured.
    pub measured: f64,
    /// By how much more was measured, as a share of what was computed.
    pub difference: f64,
}

/// Pairs the points of a figure's two `ID.json`, in the order of the first. What is the same to the last digit is a formula's.
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

/// Series, place and value of all points.
fn points(figure: &Value) -> Vec<(String, f64, f64)> {
    let point = |point: &Value| {
        let number = |name: &str| point[name].as_f64();
        Some((point["series"].as_str()?.to_owned(), number("x")?, number("y")?))
    };
    figure["points"].as_array().into_iter().flatten().filter_map(point).collect()
}

/// The pairs as a table in Markdown, which a terminal shows as well, and a line of how many are near.
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
    fn points_are_paired_by_series_and_place_and_formulas_are_left_out() {
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
    fn what_has_no_points_or_no_value_has_no_pairs() {
        assert!(pairs("figure", &json!({}), &figure(&[("a", 1.0, 1.0)])).is_empty());
        let nothing = json!({ "points": [{ "series": "a", "x": 1.0, "y": null }] });
        assert!(pairs("figure", &nothing, &figure(&[("a", 1.0, 1.0)])).is_empty());
    }
}
