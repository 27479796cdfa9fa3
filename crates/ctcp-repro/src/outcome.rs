//! What an experiment found, beside what the paper prints, and its files.

use serde::{Deserialize, Serialize};

use crate::plot::Plot;
use crate::statistics::Summary;

/// A point that was computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which line it belongs to.
    pub series: String,
    /// Its place.
    pub x: f64,
    /// Its value: the mean over the seeds.
    pub y: f64,
    /// Bounds of a 95 % confidence interval of the mean.
    pub lo: f64,
    /// The upper one.
    pub hi: f64,
}

/// A number that the paper's text prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The series of ours that it is to be compared with.
    pub series: String,
    /// Its place.
    pub x: f64,
    /// Its value.
    pub y: f64,
}

/// What a check asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    /// At most this far from a value.
    Within {
        /// The value.
        of: f64,
        /// How far.
        margin: f64,
    },
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// Where there is no interval.
const ONE_SEED: &str =
    "one seed a point: how far it varies is not known, and the bounds are the value itself";

/// Stands for what is wanted where a quick run, or one with changed numbers, does not look.
pub(crate) const SKIPPED: &str = "skipped";

/// A claim that was put to the test, or that a quick run skipped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is claimed.
    pub name: String,
    /// What is asked for, in words; `skipped` in a run that is too small for it, or about something else.
    pub want: String,
    /// What came out; not a number, in JSON null, where it was skipped.
    pub got: f64,
    /// Whether it holds; true where it was skipped.
    pub pass: bool,
}

/// Everything an experiment found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How to draw it.
    pub plot: Plot,
    /// What was computed.
    pub points: Vec<Point>,
    /// What was printed.
    pub published: Vec<Published>,
    /// What was claimed.
    pub checks: Vec<Check>,
    /// Seeds a point.
    pub seeds: u32,
    /// Steps of work done, whatever a step is there.
    pub events: u64,
    /// What a reader must know to compare, a sentence each.
    pub notes: Vec<&'static str>,
    /// The same, as far as it is known only afterwards.
    pub remarks: Vec<String>,
}

/// The contract of `ID.json`.
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
    /// An outcome without anything in it.
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

    /// Adds a point that was measured over seeds; none where nothing was.
    pub fn point(&mut self, series: &str, x: f64, found: &Summary) {
        if found.mean.is_nan() {
            return;
        }
        let (lo, hi) = (found.mean - found.margin, found.mean + found.margin);
        self.points.push(Point { series: series.to_owned(), x, y: found.mean, lo, hi });
    }

    /// Adds a point that a formula gives.
    pub fn exact(&mut self, series: &str, x: f64, y: f64) {
        self.point(series, x, &Summary { mean: y, deviation: 0.0, margin: 0.0 });
    }

    /// Adds a printed number.
    pub fn published(&mut self, series: &str, x: f64, y: f64) {
        self.published.push(Published { series: series.to_owned(), x, y });
    }

    /// Puts a claim to the test.
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

    /// Names a claim that a quick run leaves out.
    pub fn skip(&mut self, name: impl Into<String>) {
        self.checks.push(Check { name: name.into(), want: SKIPPED.to_owned(), got: f64::NAN, pass: true });
    }

    /// Leaves out all claims, which are not about what was computed, and says what was changed.
    pub(crate) fn leave_out_claims(&mut self, changes: &str) {
        for check in &mut self.checks {
            *check = Check { want: SKIPPED.to_owned(), got: f64::NAN, pass: true, name: check.name.clone() };
        }
        self.remarks.push(format!("not as in the paper: {changes}; its claims are left out"));
    }

    /// The text of `ID.json`. `version`: of the program; `wall_s`: how long it took.
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

    /// Notes and remarks.
    pub(crate) fn all_notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().copied().chain(self.remarks.iter().map(String::as_str))
    }

    /// The text of `ID.csv`: one line a point, published ones with the source `paper`.
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

/// Five digits are enough to say what is wanted.
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
    fn what_is_wanted_is_said_in_five_digits_and_what_is_skipped_is_said_to_be() {
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
