//! Transfers over random paths.

use core::time::Duration;

use ctcp_netem::IPV4_UDP_OVERHEAD;
use ctcp_proto::TransportConfig;
use ctcp_proto::congestion::ControllerFactory;
use ctcp_repro::random_path::RandomPath;
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::node::NodeId;
use ctcp_sim::topology::Pair;

use super::oracle::Oracle;

/// A random path, to compare transports on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) path: RandomPath,
    /// Selects which packets of the path are lost or late.
    pub(super) luck: u64,
    /// A transfer takes at least so many round trips.
    pub(super) rounds: u32,
    /// If set, the server sends, starting this long after the connection is up. Otherwise, the client sends at once.
    pub(super) download_after: Option<Duration>,
}

/// A network with a transfer.
struct Network {
    pair: Pair,
    sender: NodeId,
    reader: NodeId,
    /// The way of the data and that of the acknowledgements.
    ways: [Direction; 2],
}

impl Trial {
    pub(super) fn draw(seed: u64, luck: u64, rounds: u32, download_after: Option<Duration>) -> Self {
        Self { path: RandomPath::draw(seed), luck, rounds, download_after }
    }

    /// That many round trips or five seconds, whichever is longer, but limited to about `packets_max` packets.
    pub(super) fn time(&self, packets_max: u64) -> Duration {
        let whole = (self.path.rtt * self.rounds).max(Duration::from_secs(5));
        let sent =
            self.path.rate.time_to_send(1_500).saturating_mul(u32::try_from(packets_max).unwrap_or(u32::MAX));
        whole.min(sent.max(self.path.rtt * 30))
    }

    /// The bytes that the oracle of this path delivers to the reader in that time.
    pub(super) fn oracle_bytes(&self, transport: &TransportConfig, time: Duration) -> u64 {
        let path = self.path;
        let controller = ControllerFactory::new(move |datagram| Box::new(Oracle::new(&path, datagram)));
        let transport = TransportConfig { controller: Some(controller), ..transport.clone() };
        let Network { mut pair, reader, .. } = self.begin(&transport, u64::MAX / 4);
        pair.simulation.run_for(time, |_| false);
        pair.simulation.host(reader).bytes_read()
    }

    fn network(&self, transport: &TransportConfig, size: u64) -> Network {
        let (path, seed) = (self.path.config(), self.path.seed + (self.luck << 32));
        let pair = |path, plan| Pair::new(seed, &path, transport, &Script::of_client(vec![plan]));
        let [forward, backward] = [Direction::Forward, Direction::Backward];
        let mut network = if let Some(after) = self.download_after {
            let pair = pair(path.reversed(), StreamPlan::download(after, size));
            Network { sender: pair.server, reader: pair.client, pair, ways: [backward, forward] }
        } else {
            let pair = pair(path, StreamPlan::upload(Duration::ZERO, size));
            Network { sender: pair.client, reader: pair.server, pair, ways: [forward, backward] }
        };
        network.pair.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
        network
    }

    /// A network whose client has begun to connect: now, or so long ago as the download is to wait. What is left of the handshake is part of
    /// the transfer.
    fn begin(&self, transport: &TransportConfig, size: u64) -> Network {
        let mut network = self.network(transport, size);
        network.pair.connect().expect("a valid configuration");
        if let Some(after) = self.download_after {
            network.pair.simulation.run_for(after, |_| false);
        }
        network
    }

    /// Sends `bytes` with `transport`; stops after three times the oracle's time.
    pub(super) fn transfer(&self, transport: &TransportConfig, bytes: u64, time: Duration) -> Transfer {
        let Network { mut pair, sender, reader, ways } = self.begin(transport, bytes);
        let begin = pair.simulation.now();
        let stop =
            pair.simulation.run_for(time * 3, |simulation| simulation.host(reader).bytes_read() >= bytes);
        let taken = pair.simulation.now() - begin;
        let stats = pair.simulation.host(sender).stats();
        let [link, back] = ways.map(|way| pair.simulation.link(pair.link).way(way).stats());
        let done = pair.simulation.host(reader).bytes_read();
        Transfer {
            share: time.as_secs_f64() / taken.as_secs_f64() * done as f64 / bytes as f64,
            is_done: stop == Stop::Done,
            lost: link.lost as f64 / link.offered.max(1) as f64,
            dropped: link.dropped as f64 / link.offered.max(1) as f64,
            sent_per_byte: link.bytes_offered as f64 / done.max(1) as f64,
            acks: (back.bytes_offered + IPV4_UDP_OVERHEAD * back.offered) as f64
                / (link.bytes_delivered + IPV4_UDP_OVERHEAD * link.delivered).max(1) as f64,
            redundant: stats.repairs_sent as f64 / stats.symbols_sent.max(1) as f64,
            spurious: stats.spurious_losses,
            stalls: stats.window_stalls,
        }
    }

    /// Prints the progress of a transfer, one line per bin.
    pub(super) fn trace(&self, transport: &TransportConfig, time: Duration, bin: Duration) {
        let Network { mut pair, sender, reader, ways: [way, _] } = self.network(transport, u64::MAX / 4);
        pair.simulation.keep_series(bin, vec![sender, reader], vec![(pair.link, way)]);
        pair.connect().expect("a valid configuration");
        pair.simulation.run_for(time + self.download_after.unwrap_or_default(), |_| false);
        let series = pair.simulation.series().expect("kept");
        let (sender, receiver) = (series.connection(sender), series.connection(reader));
        let way = series.way(pair.link, way);
        let mut before = (0, 0, 0, 0);
        for (index, (sent, way)) in sender.iter().zip(way).enumerate() {
            let read = receiver.get(index).map_or(0, |sample| sample.bytes_read);
            println!(
                "{:8.3} s  window {:8.1} in flight {:6} rtt {:7.1} ms p {:.3}  read {:7.3} Mbit/s  queued {:5} dropped {:5} lost {:5} delivered {:6}",
                bin.as_secs_f64() * (index + 1) as f64,
                sent.window,
                sent.in_flight,
                sent.rtt.as_secs_f64() * 1e3,
                sent.loss,
                (read - before.0) as f64 * 8e-6 / bin.as_secs_f64(),
                way.queued,
                way.dropped - before.1,
                way.lost - before.2,
                way.delivered - before.3,
            );
            before = (read, way.dropped, way.lost, way.delivered);
        }
    }
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// As a share of the oracle's goodput.
    pub(super) share: f64,
    pub(super) is_done: bool,
    /// The share of packets that the path lost.
    pub(super) lost: f64,
    /// The share of packets that the queue dropped.
    pub(super) dropped: f64,
    /// Bytes sent per byte that was read.
    pub(super) sent_per_byte: f64,
    /// Bytes on the return path per byte sent forward.
    pub(super) acks: f64,
    pub(super) redundant: f64,
    pub(super) spurious: u64,
    pub(super) stalls: u64,
}

impl Transfer {
    /// Bytes sent relative to the minimum that the path's loss requires.
    pub(super) fn excess(&self) -> f64 {
        self.sent_per_byte * (1.0 - self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Rate;

    #[test]
    fn the_oracle_fills_an_ordinary_path_and_transfers_are_compared_with_it() {
        let path = RandomPath {
            seed: 1,
            rate: Rate::from_megabits_per_second(10),
            rtt: Duration::from_millis(20),
            loss: 0.05,
            burst: 1.0,
            jitter: Duration::ZERO,
            queue: 17,
        };
        let transport = super::super::transport("default").expect("it exists");
        let time = Duration::from_secs(3);
        for download_after in [None, Some(Duration::from_millis(300))] {
            let trial = Trial { path, luck: 0, rounds: 100, download_after };
            let bytes = trial.oracle_bytes(&transport, time);
            let share = bytes as f64 * 8.0 / time.as_secs_f64() / 10e6;
            assert!(share > 0.9, "{share}");
            let transfer = trial.transfer(&transport, bytes, time);
            assert!(transfer.is_done && transfer.share > 0.9 && transfer.excess() < 1.1, "{transfer:?}");
        }
    }
}
