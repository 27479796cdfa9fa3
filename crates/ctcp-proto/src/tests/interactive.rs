//! Streams that need low latency alongside bulk data on one connection.

use core::time::Duration;

use ctcp_base::{Instant, Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{Event, ReadOutcome, StreamId, TransportConfig};

/// What the client sends for a while over 25 Mbit/s and 50 ms.
#[derive(Clone, Copy)]
struct Load {
    loss: f64,
    /// Both sides have the context of interactive streams.
    has_context: bool,
    /// A stream of these: bytes of each write, and the time between two.
    writes: Option<(usize, Duration)>,
    is_low_latency: bool,
    has_bulk: bool,
    time: Duration,
}

/// What became of it.
struct Outcome {
    /// The time from each write until all of it was read, in ms, ascending.
    delays: Vec<f64>,
    /// Bulk data read, as a share of the link.
    bulk: f64,
    /// Symbols and repairs sent per symbol.
    packets: f64,
}

impl Outcome {
    fn percentile(&self, share: f64) -> f64 {
        self.delays[((self.delays.len() as f64 * share) as usize).min(self.delays.len() - 1)]
    }
}

/// Reads all there is of a stream and returns the number of bytes.
fn read_all(pair: &mut Pair, id: StreamId) -> u64 {
    let mut scratch = [0; 2_048];
    let server = pair.server_connection().expect("it is up");
    let mut total = 0;
    while let Ok(ReadOutcome::Data(count)) = server.read(id, &mut scratch) {
        total += count as u64;
    }
    total
}

fn run(load: Load, seed: u64) -> Outcome {
    let rate = Rate::from_megabits_per_second(25);
    let link = LinkConfig {
        rate,
        delay: Duration::from_millis(25),
        loss: LossModel::Bernoulli(Probability::new(load.loss).expect("a probability")),
        queue: QueueLimit::Packets(104),
        overhead: 28,
        ..LinkConfig::default()
    };
    let transport = TransportConfig { extra_contexts: load.has_context, ..TransportConfig::default() };
    let mut pair = Pair::new(link, transport.clone(), seed);
    pair.connect(transport);
    let is_up = |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == Event::Connected);
    assert!(pair.run_until(Duration::from_secs(10), is_up));
    let [thin, bulk] = [(); 2].map(|()| pair.client_connection().open().expect("streams are allowed"));
    pair.client_connection().set_low_latency(thin, load.is_low_latency).expect("it exists");
    let start = pair.now;
    let (mut written, mut read, mut bulk_read) = (0, 0, 0);
    let (mut times, mut delays): (Vec<Instant>, Vec<f64>) = (Vec::new(), Vec::new());
    let (size, interval) = load.writes.unwrap_or((1, load.time));
    while pair.now < start + load.time {
        let now = pair.now;
        let client = pair.client_connection();
        if load.writes.is_some() && now >= start + interval * times.len() as u32 {
            written += client.write(now, thin, &vec![7; size]).unwrap_or(0) as u64;
            times.push(now);
            assert_eq!(written, (times.len() * size) as u64, "the buffer is large enough");
        }
        while load.has_bulk && client.write(now, bulk, &[5; 16_384]).is_ok() {}
        let most = Duration::from_millis(2);
        let until_next = (start + interval * times.len() as u32).saturating_since(now);
        let step =
            if load.writes.is_some() { until_next.clamp(Duration::from_micros(1), most) } else { most };
        pair.run_until(step, |pair| {
            bulk_read += read_all(pair, bulk);
            read += read_all(pair, thin);
            let done = (read / size as u64) as usize;
            let now = pair.now;
            delays.extend(times[delays.len()..done].iter().map(|&since| (now - since).as_secs_f64() * 1e3));
            false
        });
    }
    delays.sort_unstable_by(f64::total_cmp);
    let stats = pair.client_connection().stats();
    Outcome {
        delays,
        bulk: bulk_read as f64 * 8.0 / (25e6 * load.time.as_secs_f64()),
        packets: (stats.symbols_sent + stats.repairs_sent) as f64 / stats.symbols_sent as f64,
    }
}

const QUIET: Load = Load {
    loss: 0.05,
    has_context: true,
    writes: Some((1_200, Duration::from_micros(3_200))),
    is_low_latency: true,
    has_bulk: false,
    time: Duration::from_secs(20),
};

/// The p99 of the stream grows by at most 30 %, in the mean of four runs, and the bulk data loses no more than the stream takes. Each run
/// takes a minute, so that slow start of the bulk data, which fills the queue for a quarter of a second, is less than a hundredth of it.
#[test]
fn a_stream_of_low_latency_and_bulk_data_hardly_disturb_each_other() {
    let load = Load { time: Duration::from_secs(60), ..QUIET };
    let mut growth = Vec::new();
    for seed in 1..=4 {
        let alone = run(load, seed);
        let bulk = run(Load { writes: None, has_bulk: true, ..load }, seed);
        let both = run(Load { has_bulk: true, ..load }, seed);
        let (p99, quiet) = (both.percentile(0.99), alone.percentile(0.99));
        eprintln!(
            "p99 {quiet:.1} ms alone, {p99:.1} beside bulk (p50 {:.1}, {:.1}); bulk {:.3} of the link alone, {:.3}; packets {:.3}, {:.3}",
            alone.percentile(0.5),
            both.percentile(0.5),
            bulk.bulk,
            both.bulk,
            alone.packets,
            both.packets
        );
        assert!(quiet <= 36.0, "p99 {quiet} ms alone");
        growth.push(p99 / quiet);
        // The stream takes 3 Mbit/s and its repairs of the 25.
        assert!(both.bulk >= 0.9 * (bulk.bulk - 3.0 * 1.45 / 0.95 / 25.0), "{} and {}", both.bulk, bulk.bulk);
    }
    assert!(growth.iter().sum::<f64>() <= 1.3 * growth.len() as f64, "{growth:?}");
}

#[test]
fn messages_and_a_stream_of_low_latency_together_do_not_starve_bulk_data() {
    let link = LinkConfig {
        rate: Rate::from_megabits_per_second(25),
        delay: Duration::from_millis(25),
        queue: QueueLimit::Packets(104),
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(link, TransportConfig::default(), 1);
    pair.connect(TransportConfig::default());
    let is_up = |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == Event::Connected);
    assert!(pair.run_until(Duration::from_secs(10), is_up));
    let [bulk, thin] = [(); 2].map(|()| pair.client_connection().open().expect("streams are allowed"));
    pair.client_connection().set_low_latency(thin, true).expect("it exists");
    let (mut read, mut messages) = ([0; 2], 0);
    for _ in 0..1_000 {
        let now = pair.now;
        let client = pair.client_connection();
        for id in [bulk, thin] {
            while client.write(now, id, &[5; 16_384]).is_ok() {}
        }
        while client.send_message(now, &[1; 1_000], Duration::from_millis(500)).is_ok() {}
        pair.run_until(Duration::from_millis(1), |pair| {
            for (id, read) in [bulk, thin].into_iter().zip(&mut read) {
                *read += read_all(pair, id);
            }
            let server = pair.server_connection().expect("it is up");
            messages += core::iter::from_fn(|| server.receive_message())
                .map(|message| message.len() as u64)
                .sum::<u64>();
            false
        });
    }
    let total = read[0] + read[1] + messages;
    assert!(
        total > 0 && [read[0], read[1], messages].iter().all(|&part| part > total / 5),
        "{read:?}, {messages}"
    );
}

#[test]
fn small_writes_have_low_latency_without_asking_and_large_ones_do_not() {
    let small = Load {
        writes: Some((200, Duration::from_millis(20))),
        is_low_latency: false,
        has_bulk: false,
        ..QUIET
    };
    let automatic = run(small, 2);
    let without = run(Load { has_context: false, ..small }, 2);
    let (p99, before) = (automatic.percentile(0.99), without.percentile(0.99));
    eprintln!(
        "p99 {p99:.1} ms, without {before:.1}; packets {:.3}, {:.3}",
        automatic.packets, without.packets
    );
    assert!(p99 < 45.0 && before > 60.0, "p99 {p99} ms, without {before}");
    let bulk = run(Load { writes: None, is_low_latency: false, has_bulk: true, ..QUIET }, 2);
    eprintln!("bulk {:.3}, packets {:.3}", bulk.bulk, bulk.packets);
    assert!(bulk.packets < 1.15, "{} packets per symbol", bulk.packets);
}
