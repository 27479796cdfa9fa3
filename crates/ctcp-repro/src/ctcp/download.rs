//! A file fetched over a path by one request on its own connection, as by wget or rsync.
//!
//! ```text
//!   client  -- handshake, request -->          backward direction, without loss
//!           <-- response, `size` bytes --      forward direction, with rate, queue and losses              server
//! ```

use core::time::Duration;

use ctcp_netem::{PathConfig, Trace};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::application::Application;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;
use ctcp_sim::{Scrutiny, Simulation};

/// A download in progress.
pub(super) struct Download {
    pair: Pair,
}

impl Download {
    /// Creates a client that has just begun to connect and will request `size` bytes. Data flows in the direction
    /// `path.forward`.
    pub(super) fn new(seed: u64, path: &PathConfig, profile: Profile, size: u64) -> Self {
        // As patient as TCP: a path that carries nothing for half a minute does not end the connection.
        let idle_timeout = Duration::from_secs(3_600);
        let transport = TransportConfig { profile, idle_timeout, ..TransportConfig::default() };
        let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, size)]);
        // The client is at the first end of a pair's path.
        let path = PathConfig { forward: path.backward.clone(), backward: path.forward.clone() };
        let mut pair = Pair::new(seed, &path, &transport, &script);
        pair.simulation.set_scrutiny(Scrutiny::LIGHT);
        pair.connect().expect("a first connection is always possible");
        Self { pair }
    }

    /// Changes the direction of the data by `trace`, from the beginning on.
    pub(super) fn changing(mut self, trace: &Trace) -> Self {
        let schedule = trace.schedule(Simulation::START);
        self.pair.simulation.set_schedule(self.pair.link, Direction::Backward, schedule);
        self
    }

    /// Returns the seconds from the beginning until the client has read `bytes`, or `limit` if it has not by then.
    pub(super) fn seconds_until(&mut self, bytes: u64, limit: Duration) -> f64 {
        let client = self.pair.client;
        let has_read = |simulation: &Simulation| {
            let peer = simulation.host(client).newest();
            peer.map(|peer| &peer.application).map_or(0, Application::bytes_read) >= bytes
        };
        let simulation = &mut self.pair.simulation;
        simulation.run_for((Simulation::START + limit) - simulation.now(), has_read);
        let time = if has_read(simulation) { simulation.now() - Simulation::START } else { limit };
        time.as_secs_f64()
    }

    /// Returns the number of simulation events so far.
    pub(super) fn events(&self) -> u64 {
        self.pair.simulation.events()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctcp::contender::Contender;
    use crate::ctcp::fig7::LINK;

    // Requirement: C10
    #[test]
    fn a_download_without_loss_takes_little_more_than_two_round_trips_and_the_transmission_time() {
        for contender in [Contender::Ctcp, Contender::Default, Contender::Cubic] {
            let mut download = Download::new(1, &LINK.path(), contender.profile(), 1_000_000);
            let half = download.seconds_until(500_000, Duration::from_secs(60));
            let all = download.seconds_until(1_000_000, Duration::from_secs(60));
            let best = 0.02 + 8e6 / 25e6 / 0.951;
            assert!((best..1.25 * best).contains(&all) && half < 0.6 * all, "{contender:?}: {half} {all}");
            // The time of bytes that never arrive is the limit.
            assert_eq!(download.seconds_until(1_000_001, Duration::from_secs(90)), 90.0);
        }
    }
}
