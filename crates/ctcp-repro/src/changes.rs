//! Parameters that differ from the paper: another link, another loss, a longer run.
//!
//! An experiment lists the parameters that can be changed ([`Experiment::takes`](crate::Experiment)). If any is
//! changed, the points are computed as usual. The paper's claims are about its own numbers and are skipped.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A parameter of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Rate of the link.
    Rate,
    /// Round-trip time of the empty path.
    Rtt,
    /// Share of packets lost on each link.
    Loss,
    /// Duration of a run in virtual time.
    Time,
}

impl Parameter {
    /// Returns its command-line option.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Rate => "--rate",
            Self::Rtt => "--rtt",
            Self::Loss => "--loss",
            Self::Time => "--time",
        }
    }
}

/// The changed parameters; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Rate in Mbit/s.
    pub megabits: Option<u64>,
    /// Round-trip time in milliseconds.
    pub rtt_millis: Option<u64>,
    /// Share of packets lost on each link.
    pub loss: Option<f64>,
    /// Duration of a run in virtual seconds.
    pub seconds: Option<u64>,
}

impl Changes {
    /// Returns whether everything is as in the paper.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the changed parameters.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        [
            self.megabits.map(|_| Parameter::Rate),
            self.rtt_millis.map(|_| Parameter::Rtt),
            self.loss.map(|_| Parameter::Loss),
            self.seconds.map(|_| Parameter::Time),
        ]
        .into_iter()
        .flatten()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.megabits.map(|megabits| format!("rate {megabits} Mbit/s")),
            self.rtt_millis.map(|millis| format!("RTT {millis} ms")),
            self.loss.map(|loss| format!("loss {loss}")),
            self.seconds.map(|seconds| format!("time {seconds} s")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        formatter.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use super::*;
    use crate::{Experiment, Outcome, Point, Settings};

    #[test]
    fn a_higher_loss_lowers_the_throughput_and_skips_the_papers_claims() {
        let experiment = Experiment::named("tcpnc-fig6").expect("there is one");
        let run = |loss| {
            let changes = Changes { loss, seconds: Some(60), ..Changes::default() };
            experiment.run(&Settings { quick: true, seeds: Some(1), changes }, NonZeroUsize::MIN)
        };
        let (paper, changed) = (run(None), run(Some(0.2)));
        let coded = |outcome: &Outcome| {
            let is_there = |point: &&Point| point.series == "TCP/NC mean" && point.x == 1.5;
            outcome.points.iter().find(is_there).expect("it is measured").y
        };
        assert!(coded(&changed) < coded(&paper) / 2.0, "{} {}", coded(&changed), coded(&paper));
        assert!(changed.checks.iter().all(|check| check.got.is_nan() && check.pass));
        assert!(changed.remarks.iter().any(|remark| remark.contains("loss 0.2, time 60 s")));
    }

    #[test]
    fn every_experiment_uses_the_parameters_that_it_takes() {
        for experiment in crate::EXPERIMENTS {
            let plain = Settings { quick: true, ..Settings::default() };
            for &parameter in experiment.takes {
                let mut changes = Changes::default();
                match parameter {
                    Parameter::Rate => changes.megabits = Some(3),
                    Parameter::Rtt => changes.rtt_millis = Some(34),
                    Parameter::Loss => changes.loss = Some(0.031),
                    Parameter::Time => changes.seconds = Some(17),
                }
                let changed = Settings { changes, ..plain };
                // The names of cells contain their parameters.
                assert_ne!(
                    experiment.plan(&plain).cells(),
                    experiment.plan(&changed).cells(),
                    "{} {parameter:?}",
                    experiment.id
                );
            }
        }
    }
}
