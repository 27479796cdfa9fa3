//! Going on with an interrupted comparison.

use serde::{Deserialize, Serialize};

use super::contestant::PEER_NAMES;
use super::{Cell, Comparison, Metric, sample};
use crate::error::TestbedError;

/// What an interrupted comparison has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was compared, and by which version of the program. Another comparison cannot go on with these values.
    subject: String,
    /// Completed turns: each is a cell in a repetition.
    turns: usize,
    values: Vec<KeptValue>,
    failures: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptValue {
    peer: String,
    cell: usize,
    seed: u64,
    metric: Metric,
    value: f64,
    is_cut_off: bool,
}

impl Comparison {
    /// What `version` of the program has measured so far, after a whole turn.
    #[must_use]
    pub fn kept(&self, version: &str) -> Kept {
        let values = self.samples.iter().map(|sample| KeptValue {
            peer: sample.peer.to_owned(),
            cell: sample.cell,
            seed: sample.seed,
            metric: sample.metric,
            value: sample.value,
            is_cut_off: sample.is_cut_off,
        });
        Kept {
            subject: self.subject(version),
            turns: self.turns,
            values: values.collect(),
            failures: self.failures.clone(),
        }
    }

    /// Takes over what `version` of the program measured before it was interrupted.
    pub(super) fn take(&mut self, kept: Kept, version: &str) -> Result<(), TestbedError> {
        if kept.subject != self.subject(version) {
            return Err(TestbedError::failed(
                "the unfinished comparison has another version, other peers, tests or options",
            ));
        }
        for kept in kept.values {
            let peer = PEER_NAMES.into_iter().find(|name| *name == kept.peer);
            let (Some(peer), Some(cell)) = (peer, self.cells.get(kept.cell)) else {
                return Err(TestbedError::failed(
                    "the unfinished comparison has values of unknown peers or cells",
                ));
            };
            let found = (kept.metric, kept.value, kept.is_cut_off);
            self.samples.push(sample(peer, cell, (kept.cell, kept.seed), found));
        }
        (self.turns, self.failures) = (kept.turns, kept.failures);
        Ok(())
    }

    fn subject(&self, version: &str) -> String {
        let cells: Vec<String> = self.cells.iter().map(Cell::label).collect();
        format!("{version}, {:?}, {:?} s, quick: {}, {cells:?}", self.peers, self.seconds, self.is_quick)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Selection, Test};
    use super::*;

    /// A comparison of two peers by these tests.
    fn comparison(tests: &[Test]) -> Comparison {
        let cells = Cell::all(true, &Selection { tests: tests.to_vec(), ..Selection::default() });
        Comparison { cells, peers: vec!["default", "bbr"], ..Comparison::default() }
    }

    #[test]
    fn a_comparison_goes_on_where_it_was_interrupted() {
        let mut interrupted = comparison(&[Test::Goodput]);
        interrupted.turns = 1;
        interrupted.failures.push("bbr: no network".to_owned());
        for (metric, value) in [(Metric::Goodput, 0.1 + 0.2), (Metric::FirstRequest(10_000), 5.0)] {
            let found = (metric, value, value > 1.0);
            let one = sample("bbr", &interrupted.cells[0], (0, 0), found);
            interrupted.samples.push(one);
        }
        let text = serde_json::to_string(&interrupted.kept("1")).expect("JSON");
        let kept: Kept = serde_json::from_str(&text).expect("the same");
        let mut resumed = comparison(&[Test::Goodput]);
        resumed.take(kept.clone(), "1").expect("the same comparison");
        assert_eq!(resumed.samples, interrupted.samples);
        assert_eq!((resumed.turns, &resumed.failures), (1, &interrupted.failures));
        assert!(comparison(&[Test::Goodput]).take(kept.clone(), "2").is_err(), "another version");
        assert!(comparison(&[Test::Long]).take(kept.clone(), "1").is_err(), "another test");
        let mut other = comparison(&[Test::Goodput]);
        other.peers.pop();
        assert!(other.take(kept, "1").is_err(), "other peers");
    }

    #[test]
    fn values_of_an_unknown_cell_are_refused() {
        let mut kept = comparison(&[Test::Goodput]).kept("1");
        let value = |peer: &str, cell| KeptValue {
            peer: peer.to_owned(),
            cell,
            seed: 0,
            metric: Metric::Goodput,
            value: 0.5,
            is_cut_off: false,
        };
        for (value, is_known) in [(value("bbr", 0), true), (value("bbr", 99), false), (value("x", 0), false)]
        {
            kept.values = vec![value];
            assert_eq!(comparison(&[Test::Goodput]).take(kept.clone(), "1").is_ok(), is_known);
        }
    }
}
