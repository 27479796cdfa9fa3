//! What the pages of several and of random paths and of drawn networks read from the JSON of a comparison.

use core::fmt::Write;

use serde::Deserialize;

/// The contents of `compare-NAME.json`, as far as they are needed here.
#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    pub(super) version: String,
    pub(super) repetitions: u32,
    /// Seconds of each download, if they were not the tests' own.
    #[serde(default)]
    pub(super) seconds: Option<u64>,
    pub(super) peers: Vec<String>,
    #[serde(rename = "summary")]
    pub(super) rows: Vec<Row>,
    #[serde(default)]
    pub(super) failures: Vec<String>,
    #[serde(default)]
    pub(super) profiles: Vec<super::profiles::Facts>,
    #[serde(default)]
    pub(super) random: Vec<ctcp_repro::random_path::Facts>,
}

/// A quantity in a cell, for all peers.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) scenario: String,
    pub(super) statistic: String,
    pub(super) loss: f64,
    #[serde(default)]
    pub(super) rate_bps: f64,
    #[serde(default)]
    pub(super) rtt_ms: f64,
    values: Vec<Option<Value>>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Value {
    value: f64,
    /// Whether the value is only a bound.
    #[serde(default)]
    is_cut_off: bool,
}

impl Summary {
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// A peer's value in a row.
    pub(super) fn value(&self, row: &Row, peer: &str) -> Option<f64> {
        self.entry(row, peer).map(|value| value.value)
    }

    /// Whether that value is only a bound, because the time limit was reached.
    pub(super) fn is_cut_off(&self, row: &Row, peer: &str) -> bool {
        self.entry(row, peer).is_some_and(|value| value.is_cut_off)
    }

    fn entry<'s>(&self, row: &'s Row, peer: &str) -> Option<&'s Value> {
        let place = self.peers.iter().position(|name| name == peer)?;
        row.values.get(place)?.as_ref()
    }

    /// A peer's median of a quantity on a network with this loss.
    pub(super) fn median(&self, quantity: &str, network: &str, loss: f64, peer: &str) -> Option<f64> {
        let row = self
            .rows
            .iter()
            .find(|row| row.is_of(quantity, network) && row.loss == loss && row.statistic == "median")?;
        self.value(row, peer)
    }

    /// The head of a table with a column for each peer between others.
    pub(super) fn head(&self, before: &[&str], after: &[&str]) -> String {
        let peers = self.peers.iter().map(String::as_str);
        let columns: Vec<&str> = before.iter().copied().chain(peers).chain(after.iter().copied()).collect();
        format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
    }

    /// A line for each measurement that failed.
    pub(super) fn failed(&self) -> String {
        self.failures.iter().fold(String::new(), |mut text, failure| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n- failed: {failure}");
            text
        })
    }

    /// How long a download was.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(30)
    }
}

/// A cell of a table: a value, bold if it is the best one.
pub(super) fn shown(value: Option<f64>, best: Option<f64>) -> String {
    match value {
        Some(value) if Some(value) == best => format!(" **{value:.3}** |"),
        Some(value) => format!(" {value:.3} |"),
        None => " - |".to_owned(),
    }
}

impl Row {
    /// Whether it is that quantity on that network.
    fn is_of(&self, quantity: &str, network: &str) -> bool {
        self.split() == (quantity, network)
    }

    /// Whether both rows have the same values.
    pub(super) fn has_values_of(&self, other: &Self) -> bool {
        self.values == other.values
    }

    /// Whether it is another quantity on the same network.
    pub(super) fn is_on_network_of(&self, other: &Self) -> bool {
        let place = |row: &Self| (row.rate_bps, row.rtt_ms, row.loss);
        self.split().1 == other.split().1 && place(self) == place(other)
    }

    /// The quantity and the network. A percentile belongs to the quantity: `delivery, p99`.
    pub(super) fn split(&self) -> (&str, &str) {
        let is_percentile = |rest: &str| {
            rest.strip_prefix('p').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        let mut commas = self.scenario.match_indices(", ").map(|(place, _)| place);
        match commas.find(|place| !is_percentile(&self.scenario[place + 2..])) {
            Some(place) => (&self.scenario[..place], &self.scenario[place + 2..]),
            None => (&self.scenario, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_differs_in_its_rate_its_round_trip_its_loss_or_its_name() {
        let of = |quantity: &str, name: &str, (loss, rate_bps, rtt_ms): (f64, f64, f64)| Row {
            scenario: format!("{quantity}, {name}"),
            statistic: "median".to_owned(),
            loss,
            rate_bps,
            rtt_ms,
            values: Vec::new(),
        };
        let goodput = of("goodput", "far", (0.1, 1e6, 20.0));
        let is_there = |name, place| of("sent", name, place).is_on_network_of(&goodput);
        assert!(is_there("far", (0.1, 1e6, 20.0)));
        for (name, place) in [
            ("near", (0.1, 1e6, 20.0)),
            ("far", (0.2, 1e6, 20.0)),
            ("far", (0.1, 2e6, 20.0)),
            ("far", (0.1, 1e6, 30.0)),
        ] {
            assert!(!is_there(name, place), "{name} {place:?}");
        }
    }

    #[test]
    fn a_percentile_belongs_to_the_quantity() {
        let of = |scenario: &str| Row {
            scenario: scenario.to_owned(),
            statistic: "median".to_owned(),
            loss: 0.0,
            rate_bps: 0.0,
            rtt_ms: 0.0,
            values: Vec::new(),
        };
        assert_eq!(of("delivery, p99, 1 + 2 Mbit/s, 3 ms").split(), ("delivery, p99", "1 + 2 Mbit/s, 3 ms"));
        assert_eq!(of("goodput, far").split(), ("goodput", "far"));
        assert_eq!(of("goodput, path 4").split(), ("goodput", "path 4"));
        assert_eq!(of("goodput").split(), ("goodput", ""));
    }
}
