//! A figure read from its JSON file, from which pages and plots are drawn again.

use core::fmt::Write;

use serde::Deserialize;

use crate::outcome::{Check, Outcome, Point, Published, SKIPPED};
use crate::plot::{Axis, Plot, Scale};

/// The contents of `ID.json`.
#[derive(Debug, Deserialize)]
pub struct Recorded {
    /// The id of the figure.
    pub id: String,
    paper: String,
    version: String,
    plot: RecordedPlot,
    quick: bool,
    seeds: u32,
    points: Vec<Point>,
    published: Vec<Published>,
    checks: Vec<RecordedCheck>,
    notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RecordedPlot {
    title: String,
    x: RecordedAxis,
    y: RecordedAxis,
    hidden: Vec<String>,
    dots: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RecordedAxis {
    label: String,
    scale: Scale,
}

#[derive(Debug, Deserialize)]
struct RecordedCheck {
    name: String,
    want: String,
    /// `None` if the check was skipped, which is null in JSON.
    got: Option<f64>,
    pass: bool,
}

impl Recorded {
    /// Parses a figure from JSON.
    ///
    /// # Errors
    /// Returns an error that says what is missing or invalid.
    pub fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// Draws the plot again.
    ///
    /// # Errors
    /// Returns an error if it cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        self.outcome().svg()
    }

    fn outcome(&self) -> Outcome {
        // Elsewhere titles and labels are constants. Here they are leaked, once per figure.
        let constant = |text: &String| -> &'static str { text.clone().leak() };
        let constants = |texts: &[String]| -> &'static [&'static str] {
            texts.iter().map(constant).collect::<Vec<_>>().leak()
        };
        let axis = |axis: &RecordedAxis| Axis { label: constant(&axis.label), scale: axis.scale };
        let plot = Plot {
            title: constant(&self.plot.title),
            x: axis(&self.plot.x),
            y: axis(&self.plot.y),
            hidden: constants(&self.plot.hidden),
            dots: constants(&self.plot.dots),
        };
        let mut outcome = Outcome::new(plot, self.seeds);
        outcome.points.clone_from(&self.points);
        outcome.published.clone_from(&self.published);
        let checks = self.checks.iter().map(|check| Check {
            name: check.name.clone(),
            want: check.want.clone(),
            got: check.got.unwrap_or(f64::NAN),
            pass: check.pass,
        });
        outcome.checks.extend(checks);
        outcome.remarks.clone_from(&self.notes);
        outcome
    }

    /// Formats a section of a page: title, plot in `folder`, checks, printed numbers next to ours, notes.
    #[must_use]
    pub fn markdown(&self, folder: &str) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_section(&mut text, folder);
        text
    }

    fn write_section(&self, text: &mut String, folder: &str) -> core::fmt::Result {
        let quick = if self.quick { ", a quick run" } else { "" };
        writeln!(text, "## {}: {}\n", self.id, self.plot.title)?;
        writeln!(
            text,
            "{}. Made by {}{quick}; seeds per point: {}.\n",
            self.paper, self.version, self.seeds
        )?;
        writeln!(text, "![{}]({folder}/{}.svg)\n", self.plot.title, self.id)?;
        if !self.checks.is_empty() {
            writeln!(text, "| check | wanted | got | |\n|---|---|---|---|")?;
            for check in &self.checks {
                let verdict = match (check.want == SKIPPED, check.pass) {
                    (true, _) => "skipped",
                    (false, true) => "holds",
                    (false, false) => "**fails**",
                };
                let got = check.got.map_or_else(String::new, four_digits);
                writeln!(text, "| {} | {} | {got} | {verdict} |", check.name, check.want)?;
            }
            writeln!(text)?;
        }
        if !self.published.is_empty() {
            writeln!(
                text,
                "| printed in the paper | {} | printed | ours |\n|---|---|---|---|",
                self.plot.x.label
            )?;
            for Published { series, x, y } in &self.published {
                let ours = self.points.iter().find(|point| point.series == *series && point.x == *x);
                let ours = ours.map_or_else(String::new, |point| {
                    let margin = (point.hi - point.lo) / 2.0;
                    if margin > 0.0 {
                        format!("{} ± {}", four_digits(point.y), four_digits(margin))
                    } else {
                        four_digits(point.y)
                    }
                });
                writeln!(text, "| {series} | {} | {} | {ours} |", four_digits(*x), four_digits(*y))?;
            }
            writeln!(text)?;
        }
        for note in &self.notes {
            writeln!(text, "- {note}")?;
        }
        if !self.notes.is_empty() {
            writeln!(text)?;
        }
        Ok(())
    }
}

/// Formats a value with four significant digits.
fn four_digits(value: f64) -> String {
    format!("{value:.3e}").parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Want;
    use crate::statistics::summary;

    #[test]
    fn a_figure_read_from_json_is_drawn_as_before() {
        let axis = |label| Axis { label, scale: Scale::LogarithmicPercent };
        let plot = Plot { title: "A title", x: axis("loss"), y: axis("share"), hidden: &["gone"], dots: &[] };
        let mut outcome = Outcome::new(plot, 2);
        outcome.point("a", 0.1, &summary(&[0.5, 0.6]));
        outcome.point("a gone", 0.1, &summary(&[0.5]));
        outcome.published("a", 0.1, 0.57);
        outcome.check("near", Want::AtMost(0.6), 0.55);
        outcome.skip("later");
        let json = outcome.json("fig", "a paper, Fig. 1", "1.0 (abc)", true, 1.0);
        let recorded = Recorded::parse(&json).expect("it was just written");
        assert_eq!(recorded.svg(), outcome.svg());
        let page = recorded.markdown("simulated");
        for expected in [
            "## fig: A title",
            "a paper, Fig. 1. Made by 1.0 (abc), a quick run; seeds per point: 2.",
            "![A title](simulated/fig.svg)",
            "| near | at most 0.6 | 0.55 | holds |",
            "| later | skipped |  | skipped |",
            "| a | 0.1 | 0.57 | 0.55 ± ",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        assert!(Recorded::parse("{}").is_err());
    }
}
