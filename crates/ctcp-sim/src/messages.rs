//! The delay of messages: from the time when one is written to the time when all of it is read.

use core::time::Duration;

use ctcp_base::{Instant, Rate};
use ctcp_netem::PathConfig;
use ctcp_proto::{ConnectionStats, Role, TransportConfig};

use crate::application::script::Script;
use crate::link::Direction;
use crate::network::Network;
use crate::topology::Pair;
use crate::{Scrutiny, Simulation};

/// The maximum delay of the last message.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// A stream of messages from the client to the server.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Bytes of a message.
    pub bytes: u64,
    /// Rate of the messages' bytes.
    pub rate: Rate,
    /// The duration.
    pub time: Duration,
}

/// What became of the messages.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The delay of each message that was read, ascending.
    delays: Vec<Duration>,
    /// The number of messages.
    count: usize,
    /// Bytes of IP packets in the direction of the messages per byte of a message.
    pub sent_per_byte: f64,
    /// The statistics of the sender.
    pub sender: ConnectionStats,
}

impl Messages {
    /// Sends them over `path`, with the profile and limits of `transport` at both ends.
    ///
    /// # Panics
    /// Panics if `transport` is invalid or a checker finds a violation.
    #[must_use]
    pub fn run(self, seed: u64, path: &PathConfig, transport: &TransportConfig) -> Delivery {
        let script = self.script();
        let count = script.size() / self.bytes;
        let mut pair = Pair::new(seed, path, transport, &script);
        pair.simulation.set_scrutiny(Scrutiny::LIGHT);
        pair.connect().expect("a valid configuration");
        let mut clock = Clock::new(self.bytes, count);
        pair.simulation.run_for(self.time + AFTERWARDS, |simulation| clock.on_event(simulation));
        assert_eq!(pair.simulation.violations().next(), None);
        let sent = pair.simulation.link(pair.link).way(Direction::Forward).stats();
        let bytes = sent.bytes_offered + sent.offered * path.forward.overhead;
        Delivery {
            delays: clock.into_delays(),
            count: count as usize,
            sent_per_byte: bytes as f64 / (count * self.bytes) as f64,
            sender: pair.simulation.host(pair.client).stats(),
        }
    }

    /// Returns the script of the client that sends them.
    #[must_use]
    pub fn script(&self) -> Script {
        Script::constant_rate(self.rate, self.bytes, self.time)
    }

    /// Runs a network whose only flow sends them. Returns the delays in milliseconds that these shares of the messages did
    /// not exceed.
    ///
    /// # Panics
    /// Panics if a checker finds a violation.
    #[must_use]
    pub fn delays_in<const N: usize>(self, network: &mut Network, shares: [f64; N]) -> [f64; N] {
        let count = self.script().size() / self.bytes;
        let mut clock = Clock::new(self.bytes, count);
        network.run_until(self.time + AFTERWARDS, |simulation| clock.on_event(simulation));
        assert_eq!(network.simulation.violations().next(), None);
        let delays = clock.into_delays();
        shares.map(|share| percentile(&delays, count as usize, share))
    }
}

/// When messages were written and read.
struct Clock {
    bytes: u64,
    count: u64,
    written: Vec<Instant>,
    delays: Vec<Duration>,
}

impl Clock {
    fn new(bytes: u64, count: u64) -> Self {
        Self { bytes, count, written: Vec::new(), delays: Vec::new() }
    }

    /// Returns whether all messages were read.
    fn on_event(&mut self, simulation: &Simulation) -> bool {
        let (bytes_written, bytes_read) = progress(simulation);
        let now = simulation.now();
        self.written.resize((bytes_written / self.bytes) as usize, now);
        let read = (bytes_read / self.bytes) as usize;
        self.delays.extend(self.written[self.delays.len()..read].iter().map(|&since| now - since));
        read as u64 == self.count
    }

    /// Returns the delays, ascending.
    fn into_delays(self) -> Vec<Duration> {
        let mut delays = self.delays;
        delays.sort_unstable();
        delays
    }
}

/// Returns the delay in milliseconds that this share of `count` messages did not exceed, infinite if fewer were read.
fn percentile(delays: &[Duration], count: usize, share: f64) -> f64 {
    let place = ((count as f64 * share).ceil() as usize).max(1) - 1;
    delays.get(place).map_or(f64::INFINITY, |delay| delay.as_secs_f64() * 1e3)
}

/// Returns the bytes that the client has written and the server has read.
fn progress(simulation: &Simulation) -> (u64, u64) {
    let flow = simulation.ledger().flows().find(|(name, _)| name.writer == Role::Client);
    flow.map_or((0, 0), |(_, flow)| (flow.written, flow.read))
}

impl Delivery {
    /// Returns the delay in milliseconds that this share of the messages did not exceed. It is infinite if fewer were read.
    #[must_use]
    pub fn percentile(&self, share: f64) -> f64 {
        percentile(&self.delays, self.count, share)
    }

    /// Returns the repairs sent per symbol.
    #[must_use]
    pub fn repairs_per_symbol(&self) -> f64 {
        self.sender.repairs_sent as f64 / self.sender.symbols_sent.max(1) as f64
    }
}
