//! What the pages of several and of random paths and of drawn networks read from the JSON of a comparison.

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

#[derive(Debug, Deserialize)]
struct Value {
    value: f64,
}

impl Summary {
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// A peer's value in a row.
    pub(super) fn value(&self, row: &Row, peer: &str) -> Option<f64> {
        let place = self.peers.iter().position(|name| name == peer)?;
        row.values.get(place)?.as_ref().map(|value| value.value)
    }

    /// A peer's median of a quantity on a network with this loss.
    pub(super) fn median(&self, quantity: &str, network: &str, loss: f64, peer: &str) -> Option<f64> {
        let row = self
            .rows
            .iter()
            .find(|row| row.is_of(quantity, network) && row.loss == loss && row.statistic == "median")?;
        self.value(row, peer)
    }

    /// How long a download was.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(30)
    }
}

impl Row {
    /// Whether it is that quantity on that network.
    fn is_of(&self, quantity: &str, network: &str) -> bool {
        self.split() == (quantity, network)
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
