//! A file fetched over a path by one request, on a connection of its own: what wget or rsync does.
//!
//! ```text
//!   client  -- handshake, request -->          lossless way back of the path
//!           <-- response, `size` bytes --      the way with the rate, the queue and the losses   server
//! ```

use core::time::Duration;

use ctcp_netem::PathConfig;
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::application::Application;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::topology::Pair;
use ctcp_sim::{Scrutiny, Simulation};

/// A download under way.
pub(super) struct Download {
    pair: Pair,
}

impl Download {
    /// The client has just begun to connect; it will ask for `size` bytes. Data goes `path.forward`.
    pub(super) fn new(seed: u64, path: &PathConfig, profile: Profile, size: u64) -> Self {
        let transport = TransportConfig { profile, ..TransportConfig::default() };
        let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, size)]);
        // The client is at the first end of a pair's path.
        let path = PathConfig { forward: path.backward.clone(), backward: path.forward.clone() };
        let mut pair = Pair::new(seed, &path, &transport, &script);
        pair.simulation.set_scrutiny(Scrutiny::LIGHT);
        pair.connect().expect("nothing is in the way of a first connection");
        Self { pair }
    }

    /// Seconds from the beginning until the client has read `bytes`, or `limit` if it has not by then.
    pub(super) fn seconds_until(&mut self, bytes: u64, limit: Duration) -> f64 {
        let client = self.pair.client;
        let rest = (Simulation::START + limit) - self.pair.simulation.now();
        self.pair.simulation.run_for(rest, |simulation| {
            let peer = simulation.host(client).newest();
            peer.map(|peer| &peer.application).map_or(0, Application::bytes_read) >= bytes
        });
        (self.pair.simulation.now() - Simulation::START).as_secs_f64().min(limit.as_secs_f64())
    }

    /// The work it was so far.
    pub(super) fn events(&self) -> u64 {
        self.pair.simulation.events()
    }
}
