//! A request after a pause, compared with one without a pause before it and with one on a new connection.

use core::fmt;
use core::time::Duration;

use ctcp_netem::PathConfig;
use ctcp_proto::TransportConfig;
use ctcp_repro::control::bottleneck;
use ctcp_sim::Simulation;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::topology::Pair;

/// The bytes that the connection carries before the pause take so long at the rate of the link.
const BEFORE: Duration = Duration::from_secs(4);

/// Gives up after this time.
const LIMIT: Duration = Duration::from_secs(200);

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    megabits: u64,
    rtt: Duration,
    loss: f64,
    /// Bytes of the request.
    size: u64,
}

/// Every cell.
pub(super) fn cells() -> Vec<Pause> {
    let mut cells = Vec::new();
    for (megabits, rtt) in [(25, 20), (100, 100)] {
        for loss in [0.0, 0.05] {
            for size in [10_000, 100_000, 1_000_000] {
                cells.push(Pause { megabits, rtt: Duration::from_millis(rtt), loss, size });
            }
        }
    }
    cells
}

impl fmt::Display for Pause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { megabits, rtt, loss, size } = self;
        write!(formatter, "/{megabits} Mbit/s {} ms loss {loss} {} kB", rtt.as_millis(), size / 1_000)
    }
}

/// How long a request takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// On a connection that was never idle, after pauses of 1, 10 and 60 s, and on a new connection that is established.
    pub(super) times: [Duration; 5],
}

impl Pause {
    /// Runs with `seed`; `None` if a request does not end.
    pub(super) fn run(&self, seed: u64, transport: &TransportConfig) -> Option<Times> {
        let path = bottleneck(self.megabits, self.rtt, 1.0, self.loss);
        let before = path.forward.rate.bytes_in(BEFORE);
        let ends = end(seed, &path, transport, &[(Duration::ZERO, before)])?;
        let after = |pause: Duration| {
            let start = ends + pause;
            let plans = [(Duration::ZERO, before), (start, self.size)];
            Some(end(seed, &path, transport, &plans)?.saturating_sub(start))
        };
        let [never, one, ten, sixty] = [0, 1, 10, 60].map(Duration::from_secs).map(after);
        let new = end(seed, &path, transport, &[(Duration::ZERO, self.size)]);
        Some(Times { times: [never?, one?, ten?, sixty?, new?] })
    }
}

/// When all bytes of streams with these starts and sizes have been read, from the establishment of the connection on.
fn end(
    seed: u64,
    path: &PathConfig,
    transport: &TransportConfig,
    plans: &[(Duration, u64)],
) -> Option<Duration> {
    let streams = plans.iter().map(|&(start, size)| StreamPlan::upload(start, size)).collect();
    let mut pair = Pair::new(seed, path, transport, &Script::of_client(streams));
    pair.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
    pair.connect().expect("a valid configuration");
    let (client, server) = (pair.client, pair.server);
    let connected = |simulation: &Simulation| {
        simulation.host(client).newest().and_then(|peer| peer.application.connected_at())
    };
    pair.simulation.run_for(LIMIT, |simulation| connected(simulation).is_some());
    let begin = connected(&pair.simulation)?;
    let all: u64 = plans.iter().map(|&(_, size)| size).sum();
    let stop = pair.simulation.run_for(LIMIT, |simulation| simulation.host(server).bytes_read() >= all);
    (stop == ctcp_sim::Stop::Done).then(|| pair.simulation.now() - begin)
}

/// The medians of several runs.
pub(super) fn medians(runs: &[Times]) -> Times {
    let median = |index: usize| {
        let mut times: Vec<Duration> = runs.iter().map(|run| run.times[index]).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Times { times: [0, 1, 2, 3, 4].map(median) }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [never, one, ten, sixty, new] = self.times.map(|time| time.as_secs_f64() * 1e3);
        write!(
            formatter,
            "never idle {never:.0} ms, idle for 1 s {one:.0}, 10 s {ten:.0}, 60 s {sixty:.0}, new {new:.0}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_at_least_half_a_round_trip_whether_idle_or_new() {
        let cell = Pause { megabits: 25, rtt: Duration::from_millis(20), loss: 0.0, size: 10_000 };
        let transport = super::super::transport("default").expect("it exists");
        let times = cell.run(1, &transport).expect("it ends");
        let least = Duration::from_millis(10);
        assert!(times.times.iter().all(|&time| (least..2 * least).contains(&time)), "{times}");
        assert_eq!(medians(&[times]).times, times.times);
    }
}
