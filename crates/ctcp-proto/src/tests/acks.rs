//! Acknowledgements in bulk, at the end of a transfer, and behind a pause.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{ConnectionStats, ProfileName, ReadOutcome, StreamId, TransportConfig};

/// Bytes of IP and UDP around a datagram.
const AROUND: u64 = 28;

struct Upload {
    pair: Pair,
    stream: StreamId,
}

impl Upload {
    fn new(profile: ProfileName, megabits: u64, rtt: Duration, loss: f64) -> Self {
        let transport = TransportConfig { profile: profile.into(), ..TransportConfig::default() };
        let rate = Rate::from_megabits_per_second(megabits);
        let link = LinkConfig {
            rate,
            delay: rtt / 2,
            loss: LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
            queue: QueueLimit::Packets(200),
            overhead: AROUND,
            ..LinkConfig::default()
        };
        let mut pair = Pair::new(link, transport.clone(), 7);
        pair.connect(transport);
        assert!(pair.run_until(Duration::from_secs(5), |pair| pair.client_connection().is_connected()));
        let stream = pair.client_connection().open().expect("a stream");
        Self { pair, stream }
    }

    /// Writes so many bytes and waits until the server has read them; how long it took.
    fn send(&mut self, size: usize) -> Duration {
        let (mut written, mut read) = (0, 0);
        let (stream, data) = (self.stream, vec![7; 65_536]);
        let mut scratch = vec![0; 65_536];
        let begin = self.pair.now;
        let done = self.pair.run_until(Duration::from_secs(600), |pair| {
            let client = pair.client_connection();
            while written < size {
                match client.write(stream, &data[..data.len().min(size - written)]) {
                    Ok(taken) => written += taken,
                    Err(_) => break,
                }
            }
            let Some(server) = pair.server_connection() else { return false };
            server.accept();
            while let Ok(ReadOutcome::Data(count)) = server.read(stream, &mut scratch) {
                read += count;
            }
            read == size
        });
        assert!(done, "{read} of {size} bytes");
        self.pair.now - begin
    }

    fn pause(&mut self, time: Duration) {
        let end = self.pair.now + time;
        self.pair.run_until(time, |pair| pair.now >= end);
    }

    fn client(&mut self) -> ConnectionStats {
        self.pair.client_connection().stats()
    }

    fn server(&mut self) -> ConnectionStats {
        self.pair.server_connection().expect("connected").stats()
    }
}

fn bytes(stats: &ConnectionStats) -> u64 {
    stats.bytes_sent + AROUND * stats.datagrams_sent
}

#[test]
fn in_bulk_the_bytes_of_acks_are_at_most_a_hundredth_and_a_half_of_what_they_acknowledge() {
    for (megabits, millis, loss) in [(25, 20, 0.0), (25, 20, 0.05), (25, 100, 0.1), (100, 100, 0.2)] {
        let mut upload = Upload::new(ProfileName::Default, megabits, Duration::from_millis(millis), loss);
        upload.send(8_000_000);
        let (there, back) = (upload.client(), upload.server());
        let share = bytes(&back) as f64 / bytes(&there) as f64 / (1.0 - loss);
        println!("{megabits} Mbit/s, {millis} ms, loss {loss}: {share:.4}");
        assert!(share <= 0.015, "{megabits} Mbit/s, {millis} ms, loss {loss}: {share:.4}");
    }
}

// Requirement: C6
#[test]
fn the_papers_receiver_acknowledges_every_packet_in_bulk_too() {
    let mut upload = Upload::new(ProfileName::Ctcp, 25, Duration::from_millis(20), 0.0);
    upload.send(2_000_000);
    let (there, back) = (upload.client(), upload.server());
    assert!(back.datagrams_sent as f64 > 0.9 * there.datagrams_sent as f64, "{there:?} {back:?}");
}

/// The sender hears of the last packets soon, and behind a pause of the first: nothing is left of the rarer ACKs.
#[test]
fn the_end_of_bulk_and_requests_behind_it_are_acknowledged_as_soon_as_ever() {
    let rtt = Duration::from_millis(100);
    let mut upload = Upload::new(ProfileName::Default, 25, rtt, 0.0);
    upload.send(4_000_000);
    for size in [1_000, 2_000, 100] {
        let begin = upload.pair.now;
        let heard =
            upload.pair.run_until(rtt, |pair| pair.client_connection().stats().symbols_outstanding == 0);
        let waited = upload.pair.now - begin;
        assert!(heard && waited < rtt / 2 + Duration::from_millis(8), "{waited:?}");
        upload.pause(Duration::from_secs(1));
        upload.send(size);
    }
}

#[test]
fn the_window_grows_on_the_first_flight_behind_a_pause() {
    let rtt = Duration::from_millis(100);
    let mut upload = Upload::new(ProfileName::Tcp, 100, rtt, 0.0);
    upload.send(100);
    upload.pause(Duration::from_secs(2));
    let before = upload.client().window;
    upload.send(20_000 + 1_100 * before as usize);
    let after = upload.client().window;
    assert!(after > 1.5 * before, "{before} packets before the flight, {after} behind it");
}
