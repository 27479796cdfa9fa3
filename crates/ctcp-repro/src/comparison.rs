//! The comparison of transports, read from its JSON file: a page of tables, and a plot of one scenario.

use core::fmt::Write;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::outcome::{Outcome, Point};
use crate::plot::{Axis, Plot, Scale};

/// The scenario of the plot.
const PICTURED: &str = "goodput, independent loss";

/// The contents of `compare.json`.
#[derive(Debug, Deserialize)]
pub struct RecordedComparison {
    version: String,
    quick: bool,
    repetitions: u32,
    /// The columns, in the order of their turns.
    peers: Vec<String>,
    summary: Vec<Row>,
    missing: BTreeMap<String, String>,
    failures: Vec<String>,
    testbed: Testbed,
}

#[derive(Debug, Deserialize)]
struct Row {
    scenario: String,
    statistic: String,
    unit: String,
    loss: f64,
    rate_bps: u64,
    rtt_ms: f64,
    best: Vec<String>,
    values: Vec<Option<Value>>,
}

#[derive(Debug, Deserialize)]
struct Value {
    value: f64,
    least: f64,
    most: f64,
    repetitions: u32,
    is_cut_off: bool,
}

#[derive(Debug, Deserialize)]
struct Testbed {
    machine: Machine,
    peers: BTreeMap<String, Description>,
}

#[derive(Debug, Deserialize)]
struct Machine {
    cpu: String,
    cores: u32,
    linux: String,
}

#[derive(Debug, Deserialize)]
struct Description {
    version: String,
    settings: String,
}

impl RecordedComparison {
    /// Parses the comparison from JSON.
    ///
    /// # Errors
    /// Returns an error that says what is missing or invalid.
    pub fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// Plots goodput against loss, with a line for each transport.
    ///
    /// # Errors
    /// Returns an error if it cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let axis = |label| Axis { label, scale: Scale::Percent };
        let plot = Plot {
            title: "A download over 25 Mbit/s and 20 ms: how much of the link is used",
            x: axis("packets lost at random"),
            y: axis("goodput, of the link's rate"),
            hidden: &[],
            dots: &[],
        };
        let mut outcome = Outcome::new(plot, self.repetitions);
        for row in self.summary.iter().filter(|row| row.scenario == PICTURED && row.statistic == "median") {
            for (peer, value) in self.peers.iter().zip(&row.values) {
                let Some(value) = value else { continue };
                let series = named(peer);
                outcome.points.push(Point {
                    series,
                    x: row.loss,
                    y: value.value,
                    lo: value.least,
                    hi: value.most,
                });
            }
        }
        outcome.points.sort_by(|one, other| one.x.total_cmp(&other.x));
        outcome.svg()
    }

    /// Formats the page.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_page(&mut text);
        text
    }

    fn write_page(&self, text: &mut String) -> core::fmt::Result {
        let Machine { cpu, cores, linux } = &self.testbed.machine;
        let quick = if self.quick { ", a quick run" } else { "" };
        writeln!(
            text,
            "Made by {}{quick}. Repetitions: {}, peers in turn; {cpu}, {cores} cores, Linux {linux}.\n\n\
             Each value is the median of the repetitions, with the least and the greatest in brackets. **Bold** is the best value of a row and what is \
             within 1 % of it. `>`: cut off by the time limit. `-`: did not take part, or failed.\n",
            self.version, self.repetitions
        )?;
        let mut scenarios: Vec<&str> = Vec::new();
        for row in &self.summary {
            if !scenarios.contains(&row.scenario.as_str()) {
                scenarios.push(&row.scenario);
            }
        }
        for scenario in scenarios {
            let rows: Vec<&Row> = self.summary.iter().filter(|row| row.scenario == scenario).collect();
            self.write_table(text, scenario, &rows)?;
        }
        writeln!(text, "\n## Peers\n")?;
        for (peer, Description { version, settings }) in &self.testbed.peers {
            writeln!(text, "- {peer}: {version}; {settings}")?;
        }
        for (peer, reason) in &self.missing {
            writeln!(text, "- left out: {peer}: {reason}")?;
        }
        for failure in &self.failures {
            writeln!(text, "- failed: {failure}")?;
        }
        Ok(())
    }
}

impl RecordedComparison {
    fn write_table(&self, text: &mut String, scenario: &str, rows: &[&Row]) -> core::fmt::Result {
        let Some(first) = rows.first() else { return Ok(()) };
        let megabits = first.rate_bps as f64 / 1e6;
        writeln!(text, "\n## {scenario}, {megabits} Mbit/s, {} ms\n", first.rtt_ms)?;
        write!(text, "| loss | statistic | unit |")?;
        self.peers.iter().try_for_each(|peer| write!(text, " {} |", named(peer)))?;
        writeln!(text, "\n|---|---|---|{}", "---|".repeat(self.peers.len()))?;
        for row in rows {
            write!(text, "| {} % | {} | {} |", (row.loss * 1e4).round() / 1e2, row.statistic, row.unit)?;
            for (peer, value) in self.peers.iter().zip(&row.values) {
                write!(text, " {} |", shown(value.as_ref(), row.best.contains(peer)))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

/// Returns the display name of a transport.
fn named(peer: &str) -> String {
    match peer {
        "default" => "ctcp".to_owned(),
        "ctcp" => "ctcp, profile ctcp (2013)".to_owned(),
        "tcp" => "ctcp, profile tcp".to_owned(),
        "reno" => "TCP Reno".to_owned(),
        "cubic" => "TCP Cubic".to_owned(),
        "bbr" => "TCP BBR".to_owned(),
        "quinn-cubic" => "QUIC, Cubic".to_owned(),
        "quinn-bbr" => "QUIC, BBR".to_owned(),
        "mptcp-cubic" => "MPTCP Cubic".to_owned(),
        "mptcp-bbr" => "MPTCP BBR".to_owned(),
        other => other.to_owned(),
    }
}

fn shown(value: Option<&Value>, is_best: bool) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let cut = if value.is_cut_off { "> " } else { "" };
    let mut text = format!("{cut}{}", number(value.value));
    if is_best {
        text = format!("**{text}**");
    }
    if value.repetitions > 1 {
        text += &format!(" ({} to {})", number(value.least), number(value.most));
    }
    text
}

/// Formats a measured value with about three significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 3,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}
