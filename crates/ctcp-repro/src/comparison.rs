//! The comparison of transports, read from its JSON file: a page of tables, and a plot of one scenario.

use core::fmt::Write;
use core::time::Duration;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::outcome::{Outcome, Point};
use crate::plot::{Axis, Plot, Scale};

/// The mean number of packets in a burst of losses.
pub const BURST: f64 = 5.0;

/// The maximum additional delay each way of paths with jitter.
pub const JITTER: Duration = Duration::from_millis(5);

/// The name of profile `default` among the peers.
const OURS: &str = "default";

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
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Run {
    load: f64,
    emulator: Emulator,
}

#[derive(Debug, Deserialize)]
struct Emulator {
    lateness: Lateness,
}

#[derive(Debug, Deserialize)]
struct Lateness {
    p99_ms: f64,
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
        let mut comparison: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        comparison.summary.iter_mut().for_each(Row::show_percent);
        Ok(comparison)
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
             within 1 % of it. `in 3`: only so many repetitions have a value. `>`: cut off by the time limit. `-`: did not take part, or failed.\n",
            self.version, self.repetitions
        )?;
        let load =
            self.testbed.runs.iter().map(|run| run.load).sum::<f64>() / self.testbed.runs.len().max(1) as f64;
        let lateness = self.testbed.runs.iter().map(|run| run.emulator.lateness.p99_ms).fold(0.0, f64::max);
        writeln!(
            text,
            "Load average {load:.1}; the emulator's 99th percentile of lateness was at most {lateness:.2} ms in a run. CPU is that of \
             programs, both ends together and relays, and not what the kernel does for packets between its calls.\n"
        )?;
        writeln!(
            text,
            "Packets are lost before the bottleneck, so a lost packet uses no capacity and a full link is possible at any loss. Bursts have a mean \
             of {BURST} packets; jitter is up to {} ms each way.\n",
            JITTER.as_millis()
        )?;
        let mut tables: Vec<Vec<&Row>> = Vec::new();
        for row in &self.summary {
            match tables.iter_mut().find(|rows| rows[0].is_beside(row)) {
                Some(rows) => rows.push(row),
                None => tables.push(vec![row]),
            }
        }
        self.write_losses(text, &tables)?;
        tables.iter().try_for_each(|rows| self.write_table(text, rows))?;
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
    /// Writes the rows in which another peer is better than ctcp.
    fn write_losses(&self, text: &mut String, tables: &[Vec<&Row>]) -> core::fmt::Result {
        let Some(ours) = self.peers.iter().position(|peer| peer == OURS) else { return Ok(()) };
        writeln!(text, "## Where another transport is better\n")?;
        writeln!(text, "| scenario | loss | best | its value | ctcp | unit |\n|---|---|---|---|---|---|")?;
        for row in tables.iter().flatten().filter(|row| row.values[ours].is_some()) {
            let best = row.best.iter().find_map(|name| self.peers.iter().position(|peer| peer == name));
            let Some(best) = best.filter(|_| row.best.iter().all(|name| name != OURS)) else { continue };
            writeln!(
                text,
                "| {} | {} % | {} | {} | {} | {} |",
                row.scenario,
                percent(row.loss),
                named(&self.peers[best]),
                shown(row.values[best].as_ref(), false, self.repetitions),
                shown(row.values[ours].as_ref(), false, self.repetitions),
                row.unit
            )?;
        }
        Ok(())
    }

    /// Writes one scenario on one path: a row for each loss, a column for each peer that took part.
    fn write_table(&self, text: &mut String, rows: &[&Row]) -> core::fmt::Result {
        let megabits = rows[0].rate_bps as f64 / 1e6;
        writeln!(text, "\n## {}, {megabits} Mbit/s, {} ms\n", rows[0].scenario, rows[0].rtt_ms)?;
        let peers: Vec<usize> =
            (0..self.peers.len()).filter(|&peer| rows.iter().any(|row| row.values[peer].is_some())).collect();
        write!(text, "| loss | statistic | unit |")?;
        peers.iter().try_for_each(|&peer| write!(text, " {} |", named(&self.peers[peer])))?;
        writeln!(text, "\n|---|---|---|{}", "---|".repeat(peers.len()))?;
        for row in rows {
            write!(text, "| {} % | {} | {} |", percent(row.loss), row.statistic, row.unit)?;
            for &peer in &peers {
                let is_best = row.best.contains(&self.peers[peer]);
                write!(text, " {} |", shown(row.values[peer].as_ref(), is_best, self.repetitions))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

impl Row {
    /// Shows a share of messages in per cent, because few are lost after repair.
    fn show_percent(&mut self) {
        if self.unit == "share" {
            self.unit = "%".to_owned();
            for value in self.values.iter_mut().flatten() {
                [&mut value.value, &mut value.least, &mut value.most]
                    .into_iter()
                    .for_each(|one| *one *= 100.0);
            }
        }
    }

    /// Returns whether both rows belong to the same table.
    fn is_beside(&self, other: &Self) -> bool {
        (&self.scenario, self.rate_bps, self.rtt_ms) == (&other.scenario, other.rate_bps, other.rtt_ms)
    }
}

/// Returns the display name of a transport.
fn named(peer: &str) -> String {
    match peer {
        "default" => "ctcp".to_owned(),
        "low-latency" => "ctcp, profile low-latency".to_owned(),
        "low-latency-forward" => "ctcp, --forward low-latency:".to_owned(),
        "messages" => "ctcp's library".to_owned(),
        "ctcp" => "ctcp, profile ctcp (2013)".to_owned(),
        "tcp" => "ctcp, profile tcp".to_owned(),
        "reno" => "TCP Reno".to_owned(),
        "cubic" => "TCP Cubic".to_owned(),
        "bbr" => "TCP BBR".to_owned(),
        "quinn-cubic" => "QUIC, Cubic".to_owned(),
        "quinn-bbr" => "QUIC, BBR".to_owned(),
        "mptcp-cubic" => "MPTCP Cubic".to_owned(),
        "mptcp-bbr" => "MPTCP BBR".to_owned(),
        "udp" => "UDP".to_owned(),
        "fec-10-3" => "FEC 10:3 (model)".to_owned(),
        "fec-10-10" => "FEC 10:10 (model)".to_owned(),
        other => other.to_owned(),
    }
}

/// A share as a percentage with at most two decimals.
fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 1e2
}

fn shown(value: Option<&Value>, is_best: bool, repetitions: u32) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let cut = if value.is_cut_off { "> " } else { "" };
    let mut text = format!("{cut}{}", number(value.value));
    if is_best {
        text = format!("**{text}**");
    }
    if value.repetitions > 1 {
        text += &format!(" ({} to {})", number(value.least), number(value.most));
    }
    // In the other repetitions the peer failed or did not get far enough.
    if value.repetitions < repetitions {
        text += &format!(" in {}", value.repetitions);
    }
    text
}

/// Formats a measured value with about three significant digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 3,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_shows_its_spread_and_whether_it_is_the_best_or_was_cut_off() {
        let value = || Value { value: 0.9512, least: 0.94, most: 0.96, repetitions: 5, is_cut_off: false };
        assert_eq!(shown(Some(&value()), true, 5), "**0.951** (0.940 to 0.960)");
        assert_eq!(shown(Some(&value()), false, 6), "0.951 (0.940 to 0.960) in 5");
        let value = Value { value: 8_000.0, repetitions: 1, is_cut_off: true, ..value() };
        assert_eq!(shown(Some(&value), false, 1), "> 8000");
        assert_eq!(shown(None, false, 1), "-");
    }

    #[test]
    fn a_share_of_messages_is_shown_in_per_cent() {
        let text = r#"{"scenario": "lost", "statistic": "median", "unit": "share", "loss": 0.1, "rate_bps": 1, "rtt_ms": 1, "best": [],
            "values": [null, {"value": 0.0005, "least": 0, "most": 0.003, "repetitions": 2, "is_cut_off": false}]}"#;
        let mut row: Row = serde_json::from_str(text).expect("a row");
        row.show_percent();
        assert_eq!(
            (row.unit.as_str(), shown(row.values[1].as_ref(), false, 2).as_str()),
            ("%", "0.050 (0.000 to 0.300)")
        );
    }
}
