//! An outcome as a table for a terminal: printed numbers next to computed ones, and the checks.

use core::fmt::{self, Write};

use crate::outcome::{Outcome, SKIPPED};

impl Outcome {
    /// Formats the table, with notes and checks below it.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        self.write_table(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write_table(&self, text: &mut String) -> fmt::Result {
        let width = self.points.iter().map(|point| point.series.chars().count()).max().unwrap_or(6).max(6);
        writeln!(text, "{:width$}  {:>10}  {:>11}  {:>11}  {:>9}", "series", "x", "printed", "ours", "+-")?;
        for point in &self.points {
            let printed =
                self.published.iter().find(|other| other.series == point.series && other.x == point.x);
            let printed = printed.map_or_else(String::new, |printed| number(printed.y));
            let (ours, margin) = (number(point.y), number(point.hi - point.y));
            writeln!(
                text,
                "{:width$}  {:>10}  {printed:>11}  {ours:>11}  {margin:>9}",
                point.series,
                number(point.x)
            )?;
        }
        for note in self.all_notes() {
            writeln!(text, "note: {note}")?;
        }
        for check in &self.checks {
            if check.want == SKIPPED {
                writeln!(text, "{}: skipped", check.name)?;
                continue;
            }
            let verdict = if check.pass { "holds" } else { "DOES NOT HOLD" };
            writeln!(text, "{}: wanted {}, got {}: {verdict}", check.name, check.want, number(check.got))?;
        }
        Ok(())
    }
}

/// Formats a number with a readable number of digits.
fn number(value: f64) -> String {
    if value.abs() >= 1e4 {
        format!("{value:.3e}")
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.81, 128.0, 12_345.0, -0.5].map(number), ["0", "0.81", "128", "1.234e4", "-0.5"]);
    }
}
