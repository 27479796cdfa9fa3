//! The results of an experiment, with the numbers printed in the paper, and their files.

use serde::{Deserialize, Serialize};

use crate::plot::Plot;
use crate::statistics::Summary;

/// A computed point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The name of its series.
    pub series: String,
    /// Its position on the x axis.
    pub x: f64,
    /// Its value: the mean over the seeds.
    pub y: f64,
    /// Lower bound of a 95 % confidence interval of the mean.
    pub lo: f64,
    /// Upper bound of the interval.
    pub hi: f64,
}

/// A number printed in the text of the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The series with which it is compared.
    pub series: String,
    /// Its position on the x axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
}

/// The condition of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// At most this far from a value.
    Within {
        /// The value.
        of: f64,
        /// The distance allowed.
        margin: f64,
    },
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// The note for results without an interval.
const ONE_SEED: &str =
    "one seed a point: how far it varies is not known, and the bounds are the value itself";

/// The `want` of a check that a quick run, or one with changed parameters, skips.
pub(crate) const SKIPPED: &str = "skipped";

/// A claim that was checked or skipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The claim.
    pub name: String,
    /// The condition in words; `skipped` in a run that is too small for the claim or has changed parameters.
    pub want: String,
    /// The computed value; NaN if the check was skipped, which is null in JSON.
    pub got: f64,
    /// Whether the claim holds; true if it was skipped.
    pub pass: bool,
}

/// All results of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plot.
    pub plot: Plot,
    /// The computed points.
    pub points: Vec<Point>,
    /// The printed numbers.
    pub published: Vec<Published>,
    /// The claims.
    pub checks: Vec<Check>,
    /// Seeds per point.
    pub seeds: u32,
    /// Steps of work done. The meaning of a step depends on the experiment.
    pub events: u64,
    /// Notes that a reader needs for the comparison, one sentence each.
    pub notes: Vec<&'static str>,
    /// Further notes that are known only after the run.
    pub remarks: Vec<String>,
}

/// The format of `ID.json`.
#[derive(Serialize)]
struct Json<'a> {
    id: &'a str,
    paper: &'a str,
    version: &'a str,
    plot: &'a Plot,
    quick: bool,
    seeds: u32,
    points: &'a [Point],
    published: &'a [Published],
    checks: &'a [Check],
    notes: Vec<&'a str>,
    wall_s: f64,
    events: u64,
}

impl Outcome {
    /// Creates an outcome without points.
    #[must_use]
    pub fn new(plot: Plot, seeds: u32) -> Self {
        Self {
            plot,
            points: Vec::new(),
            published: Vec::new(),
            checks: Vec::new(),
            seeds,
            events: 0,
            notes: Vec::new(),
            remarks: if seeds == 1 { vec![ONE_SEED.to_owned()] } else { Vec::new() },
        }
    }

    /// Adds a point that was measured over seeds, unless there was no measurement.
    pub fn point(&mut self, series: &str, x: f64, found: &Summary) {
        if found.mean.is_nan() {
            return;
        }
        let (lo, hi) = (found.mean - found.margin, found.mean + found.margin);
        self.points.push(Point { series: series.to_owned(), x, y: found.mean, lo, hi });
    }

    /// Adds a point given by a formula.
    pub fn exact(&mut self, series: &str, x: f64, y: f64) {
        self.point(series, x, &Summary { mean: y, deviation: 0.0, margin: 0.0 });
    }

    /// Adds a printed number.
    pub fn published(&mut self, series: &str, x: f64, y: f64) {
        self.published.push(Published { series: series.to_owned(), x, y });
    }

    /// Checks a claim.
    pub fn check(&mut self, name: impl Into<String>, want: Want, got: f64) {
        let (pass, want) = match want {
            Want::Within { of, margin } => {
                ((got - of).abs() <= margin, format!("{} within {}", short(of), short(margin)))
            }
            Want::AtMost(most) => (got <= most, format!("at most {}", short(most))),
            Want::AtLeast(least) => (got >= least, format!("at least {}", short(least))),
        };
        self.checks.push(Check { name: name.into(), want, got, pass });
    }

    /// Records that a claim was skipped.
    pub fn skip(&mut self, name: impl Into<String>) {
        self.checks.push(Check { name: name.into(), want: SKIPPED.to_owned(), got: f64::NAN, pass: true });
    }

    /// Skips all claims, which are not about the changed parameters, and adds a remark about the change.
    pub(crate) fn leave_out_claims(&mut self, changes: &str) {
        for check in &mut self.checks {
            *check = Check { want: SKIPPED.to_owned(), got: f64::NAN, pass: true, name: check.name.clone() };
        }
        self.remarks.push(format!("not as in the paper: {changes}; its claims are left out"));
    }

    /// Returns the text of `ID.json`. `version` is that of the program, `wall_s` the duration of the run.
    #[must_use]
    pub fn json(&self, id: &str, paper: &str, version: &str, quick: bool, wall_s: f64) -> String {
        let json = Json {
            id,
            paper,
            version,
            plot: &self.plot,
            quick,
            seeds: self.seeds,
            points: &self.points,
            published: &self.published,
            checks: &self.checks,
            notes: self.all_notes().collect(),
            wall_s,
            events: self.events,
        };
        serde_json::to_string_pretty(&json).expect("numbers and strings")
    }

    /// Returns notes and remarks.
    pub(crate) fn all_notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().copied().chain(self.remarks.iter().map(String::as_str))
    }

    /// Returns the text of `ID.csv`: one line per point. Printed numbers have the source `paper`.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::from("source,series,x,y,lo,hi\n");
        for Point { series, x, y, lo, hi } in &self.points {
            text.push_str(&format!("ours,\"{series}\",{x},{y},{lo},{hi}\n"));
        }
        for Published { series, x, y } in &self.published {
            text.push_str(&format!("paper,\"{series}\",{x},{y},,\n"));
        }
        text
    }
}

/// Formats a value with five significant digits.
fn short(value: f64) -> String {
    format!("{value:.4e}").parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Scale};

    fn outcome() -> Outcome {
        let axis = |label| Axis { label, scale: Scale::Linear };
        let plot = Plot { title: "t", x: axis("x"), y: axis("y"), hidden: &[], dots: &[] };
        let mut outcome = Outcome::new(plot, 2);
        outcome.point("a", 1.0, &Summary { mean: 2.0, deviation: 0.5, margin: 0.25 });
        outcome.exact("a", 2.0, f64::NAN);
        outcome.published("a", 1.0, 2.1);
        outcome.check("near", Want::Within { of: 2.1, margin: 0.05 }, 2.0);
        outcome.check("small", Want::AtMost(2.0), 2.0);
        outcome.check("large", Want::AtLeast(2.5), 2.0);
        outcome
    }

    #[test]
    fn json_and_csv_hold_the_points_with_their_intervals_and_the_papers_numbers() {
        let json: serde_json::Value =
            serde_json::from_str(&outcome().json("i", "p", "v", true, 1.5)).unwrap();
        assert_eq!(json["points"][0]["hi"], 2.25);
        assert_eq!((json["quick"].as_bool(), json["wall_s"].as_f64()), (Some(true), Some(1.5)));
        assert_eq!(
            outcome().csv(),
            "source,series,x,y,lo,hi\nours,\"a\",1,2,1.75,2.25\npaper,\"a\",1,2.1,,\n"
        );
    }

    #[test]
    fn conditions_have_five_digits_and_skipped_checks_are_marked() {
        assert_eq!(
            [0.03, 128.0, 0.0, 0.001_821_507, 2.1].map(short),
            ["0.03", "128", "0", "0.0018215", "2.1"]
        );
        let mut outcome = outcome();
        outcome.skip("large");
        let json: serde_json::Value = serde_json::from_str(&outcome.json("i", "p", "v", true, 1.5)).unwrap();
        let check = &json["checks"][3];
        assert!(check["want"] == "skipped" && check["got"].is_null() && check["pass"] == true, "{check}");
    }

    #[test]
    fn checks_pass_at_their_bounds_and_not_beyond() {
        let passed: Vec<bool> = outcome().checks.iter().map(|check| check.pass).collect();
        assert_eq!(passed, [false, true, false]);
    }
}
