//! Random paths: their properties, and transfers over them.

use core::fmt;
use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};
use ctcp_netem::{IPV4_UDP_OVERHEAD, LossModel, PathConfig, QueueLimit};
use ctcp_proto::TransportConfig;
use ctcp_proto::congestion::ControllerFactory;
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;

use super::oracle::Oracle;

/// A path drawn from a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomPath {
    pub(super) seed: u64,
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    pub(super) loss: f64,
    /// The mean number of packets lost in a row.
    pub(super) burst: f64,
    pub(super) jitter: Duration,
    /// In packets.
    pub(super) queue: u64,
}

impl RandomPath {
    /// Draws a path. Rate 0.5 to 500 Mbit/s and RTT 2 to 600 ms, log-uniform. Loss 0 on a fifth of the paths, else up
    /// to 30 %, in bursts of up to 20 packets on half of them. Jitter up to 30 ms on half. Queue 0.25 to 4
    /// bandwidth-delay products, log-uniform, at least 4 packets.
    pub(super) fn draw(seed: u64) -> Self {
        let mut prng = Prng::new(seed).fork("random path");
        let mut log_uniform = |low: f64, high: f64| low * (high / low).powf(prng.unit());
        let rate = log_uniform(0.5e6, 500e6);
        let rtt = log_uniform(2e-3, 600e-3);
        let products = log_uniform(0.25, 4.0);
        let is_clean = prng.unit() < 0.2;
        let loss = 0.3 * prng.unit();
        let loss = if is_clean { 0.0 } else { loss };
        let is_bursty = prng.unit() < 0.5;
        let burst = 1.0 + 19.0 * prng.unit();
        let is_restless = prng.unit() < 0.5;
        let jitter = 30e-3 * prng.unit();
        let packets = products * rate * rtt / 8.0 / 1_500.0;
        Self {
            seed,
            rate: Rate::from_bits_per_second(rate as u64),
            rtt: Duration::from_secs_f64(rtt),
            loss,
            burst: if is_bursty && !is_clean { burst } else { 1.0 },
            jitter: if is_restless { Duration::from_secs_f64(jitter) } else { Duration::ZERO },
            queue: (packets.ceil() as u64).max(4),
        }
    }

    fn config(&self) -> PathConfig {
        let share = Probability::new(self.loss).expect("below 0.3");
        let single = LossModel::Bernoulli(share);
        let model = if self.loss > 0.0 && self.burst > 1.0 / (1.0 - self.loss) {
            LossModel::bursts(share, self.burst).unwrap_or(single)
        } else {
            single
        };
        let path =
            PathConfig::new(self.rate, self.rtt, model).with_lossless_return().with_jitter(self.jitter);
        let forward = path.forward.with_queue(QueueLimit::Packets(self.queue));
        let backward = path.backward.with_queue(QueueLimit::Packets(self.queue.max(100)));
        PathConfig { forward, backward }
    }

    /// 100 round trips or five seconds, whichever is longer, but limited to about `packets_max` packets.
    pub(super) fn time(&self, packets_max: u64) -> Duration {
        let whole = (self.rtt * 100).max(Duration::from_secs(5));
        let sent =
            self.rate.time_to_send(1_500).saturating_mul(u32::try_from(packets_max).unwrap_or(u32::MAX));
        whole.min(sent.max(self.rtt * 30))
    }

    /// Rate times round trip, in packets.
    pub(super) fn product(&self) -> f64 {
        self.rate.as_bits_per_second() as f64 * self.rtt.as_secs_f64() / 12_000.0
    }

    /// The bytes that the oracle of this path delivers to the reader in that time.
    pub(super) fn oracle_bytes(&self, transport: &TransportConfig, time: Duration) -> u64 {
        let path = *self;
        let controller = ControllerFactory::new(move |datagram| Box::new(Oracle::new(&path, datagram)));
        let transport = TransportConfig { controller: Some(controller), ..transport.clone() };
        let mut pair = self.pair(&transport, u64::MAX / 4);
        pair.connect().expect("a valid configuration");
        let server = pair.server;
        pair.simulation.run_for(time, |_| false);
        pair.simulation.host(server).bytes_read()
    }

    fn pair(&self, transport: &TransportConfig, size: u64) -> Pair {
        let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, size)]);
        let mut pair = Pair::new(self.seed, &self.config(), transport, &script);
        pair.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
        pair
    }

    /// Sends `bytes` with `transport`; stops after three times the oracle's time.
    pub(super) fn transfer(&self, transport: &TransportConfig, bytes: u64, time: Duration) -> Transfer {
        let mut pair = self.pair(transport, bytes);
        pair.connect().expect("a valid configuration");
        let begin = pair.simulation.now();
        let server = pair.server;
        let stop =
            pair.simulation.run_for(time * 3, |simulation| simulation.host(server).bytes_read() >= bytes);
        let taken = pair.simulation.now() - begin;
        let stats = pair.simulation.host(pair.client).stats();
        let link = pair.simulation.link(pair.link).way(Direction::Forward).stats();
        let back = pair.simulation.link(pair.link).way(Direction::Backward).stats();
        let done = pair.simulation.host(server).bytes_read();
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
        let mut pair = self.pair(transport, u64::MAX / 4);
        pair.simulation.keep_series(
            bin,
            vec![pair.client, pair.server],
            vec![(pair.link, Direction::Forward)],
        );
        pair.connect().expect("a valid configuration");
        pair.simulation.run_for(time, |_| false);
        let series = pair.simulation.series().expect("kept");
        let (sender, receiver) = (series.connection(pair.client), series.connection(pair.server));
        let way = series.way(pair.link, Direction::Forward);
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

impl fmt::Display for RandomPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:7.2} Mbit/s {:6.1} ms, {:8.1} packets, queue {:6}, loss {:.3} bursts {:4.1}, jitter {:4.1} ms",
            self.rate.as_bits_per_second() as f64 / 1e6,
            self.rtt.as_secs_f64() * 1e3,
            self.product(),
            self.queue,
            self.loss,
            self.burst,
            self.jitter.as_secs_f64() * 1e3,
        )
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

    #[test]
    fn paths_are_in_their_ranges_and_a_seed_always_gives_the_same_path() {
        for seed in 0..500 {
            let path = RandomPath::draw(seed);
            assert!((500_000..=500_000_000).contains(&path.rate.as_bits_per_second()), "{path}");
            assert!((0.002..=0.6).contains(&path.rtt.as_secs_f64()), "{path}");
            assert!(path.loss <= 0.3 && (1.0..=20.0).contains(&path.burst), "{path}");
            assert!(path.jitter <= Duration::from_millis(30) && path.queue >= 4, "{path}");
            assert_eq!(path.to_string(), RandomPath::draw(seed).to_string());
        }
    }

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
        let bytes = path.oracle_bytes(&transport, time);
        let share = bytes as f64 * 8.0 / time.as_secs_f64() / 10e6;
        assert!(share > 0.9, "{share}");
        let transfer = path.transfer(&transport, bytes, time);
        assert!(transfer.is_done && transfer.share > 0.9 && transfer.excess() < 1.1, "{transfer:?}");
    }
}
