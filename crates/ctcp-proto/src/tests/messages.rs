//! Messages with deadlines between two endpoints.

use core::time::Duration;

use ctcp_base::{Instant, Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{ConnectionStats, Event, MessageError, TransportConfig};

const DEADLINE: Duration = Duration::from_millis(100);

fn link(loss: f64) -> LinkConfig {
    LinkConfig {
        rate: Rate::from_megabits_per_second(25),
        delay: Duration::from_millis(25),
        loss: LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
        queue: QueueLimit::Packets(100),
        overhead: 28,
        ..LinkConfig::default()
    }
}

fn connected(loss: f64, seed: u64) -> Pair {
    let mut pair = Pair::new(link(loss), TransportConfig::default(), seed);
    pair.connect(TransportConfig::default());
    let is_up = |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == Event::Connected);
    assert!(pair.run_until(Duration::from_secs(10), is_up));
    pair
}

/// What became of a flow of messages.
struct Flow {
    sent: u64,
    in_time: u64,
    stats: ConnectionStats,
    client: ConnectionStats,
}

impl Flow {
    /// Messages that were lost or late, of all.
    fn missed(&self) -> f64 {
        (self.sent - self.in_time) as f64 / self.sent as f64
    }

    /// Symbols and repairs per message.
    fn packets(&self) -> f64 {
        (self.client.symbols_sent + self.client.repairs_sent) as f64 / self.sent as f64
    }
}

/// The client sends a message of `size` bytes every `interval` for `time`.
fn flow(loss: f64, size: usize, interval: Duration, time: Duration, seed: u64) -> Flow {
    let mut pair = connected(loss, seed);
    let (start, mut sent, mut in_time) = (pair.now, 0, 0);
    // The time since the start at which messages are sent.
    let mut times = Vec::new();
    let mut read = |pair: &mut Pair, times: &[Instant]| {
        let now = pair.now;
        while let Some(message) = pair.server_connection().expect("it is up").receive_message() {
            assert_eq!(message.len(), size);
            let number = u64::from_be_bytes(message[..8].try_into().expect("8 bytes"));
            in_time += u64::from(now - times[number as usize] <= DEADLINE);
        }
        false
    };
    while pair.now < start + time {
        let mut data = vec![7; size];
        data[..8].copy_from_slice(&(sent as u64).to_be_bytes());
        let now = pair.now;
        times.push(now);
        pair.client_connection().send_message(now, &data, DEADLINE).expect("it is queued");
        sent += 1;
        let wait = start + interval * sent - now;
        pair.run_until(wait, |pair| read(pair, &times));
    }
    pair.run_until(Duration::from_secs(1), |pair| read(pair, &times));
    let client = pair.client_connection().stats();
    let stats = pair.server_connection().expect("it is up").stats();
    Flow { sent: u64::from(sent), in_time, stats, client }
}

#[test]
fn messages_on_a_clean_path_arrive_after_one_path_delay_without_repairs() {
    let flow = flow(0.0, 200, Duration::from_millis(2), Duration::from_secs(5), 1);
    assert_eq!(flow.missed(), 0.0);
    assert_eq!((flow.client.messages.sent, flow.stats.messages.received), (flow.sent, flow.sent));
    assert_eq!((flow.stats.messages.lost, flow.stats.messages.repaired), (0, 0));
    assert!(flow.packets() < 1.02, "{} packets per message", flow.packets());
}

/// At most 0.3 % lost or late within the budget of packets, with a margin for a run of one minute.
#[test]
fn few_messages_miss_their_deadline_at_five_and_ten_per_cent_loss() {
    let cases = [(20, 200, 2.0), (2, 200, 1.5), (3, 1_100, 1.5)];
    for loss in [0.05, 0.1] {
        for (millis, size, packets) in cases {
            let interval = Duration::from_millis(millis);
            let flow = flow(loss, size, interval, Duration::from_secs(60), 7);
            eprintln!(
                "loss {loss}, every {millis} ms, {size} bytes: {:.3} % missed, {:.3} packets per message, {:?}",
                100.0 * flow.missed(),
                flow.packets(),
                flow.stats.messages
            );
            assert!(flow.missed() <= 0.003, "{} % missed", 100.0 * flow.missed());
            assert!(flow.packets() <= packets / (1.0 - loss), "{} packets per message", flow.packets());
        }
    }
}

#[test]
fn the_longest_message_arrives_whole_in_spite_of_losses() {
    let mut pair = connected(0.1, 3);
    let data: Vec<u8> = (0..crate::wire::MESSAGE_SIZE_MAX).map(|index| (index ^ index >> 8) as u8).collect();
    let now = pair.now;
    let client = pair.client_connection();
    assert_eq!(client.message_size_max(), Some(data.len()));
    client.send_message(now, &data, Duration::from_secs(2)).expect("it is queued");
    assert_eq!(client.send_message(now, &[0; 65_536], DEADLINE), Err(MessageError::TooLong));
    let mut received = None;
    let arrives = |pair: &mut Pair| {
        received = pair.server_connection().expect("it is up").receive_message();
        received.is_some()
    };
    assert!(pair.run_until(Duration::from_secs(2), arrives));
    assert_eq!(received, Some(data));
}

#[test]
fn messages_that_arrived_can_be_read_after_the_peer_has_closed() {
    let mut pair = connected(0.0, 5);
    let now = pair.now;
    for number in 0..10 {
        pair.client_connection().send_message(now, &[number], DEADLINE).expect("it is queued");
    }
    pair.run_until(DEADLINE, |_| false);
    let now = pair.now;
    pair.client_connection().close(now, 0, "done");
    let is_closed =
        |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| matches!(event, Event::Closed(_)));
    assert!(pair.run_until(DEADLINE, is_closed));
    let server = pair.server_connection().expect("it is kept");
    let received: Vec<u8> = core::iter::from_fn(|| server.receive_message()).flatten().collect();
    assert_eq!(received, (0..10).collect::<Vec<u8>>());
}

#[test]
fn messages_flow_again_after_an_outage_longer_than_the_window() {
    let mut pair = connected(0.0, 4);
    let interval = Duration::from_millis(1);
    let send = |pair: &mut Pair, count: u32| {
        for _ in 0..count {
            let now = pair.now;
            let result = pair.client_connection().send_message(now, &[9; 100], DEADLINE);
            assert!(matches!(result, Ok(()) | Err(MessageError::QueueFull)));
            pair.run_until(interval, |_| false);
        }
    };
    send(&mut pair, 100);
    pair.drops = Some((true, |_| true));
    // The window has 1024 symbols.
    send(&mut pair, 4_000);
    pair.drops = None;
    send(&mut pair, 3_000);
    let server = pair.server_connection().expect("it is up");
    while server.receive_message().is_some() {}
    let before = server.stats().messages.received;
    send(&mut pair, 500);
    let after = pair.server_connection().expect("it is up").stats().messages.received;
    assert!(after - before >= 490, "{} messages", after - before);
}

#[test]
fn a_peer_that_grants_no_window_gets_no_messages() {
    let mut pair = connected(0.0, 5);
    let transport = TransportConfig { extra_contexts: false, ..TransportConfig::default() };
    pair.connect(transport);
    pair.run_until(Duration::from_secs(1), |_| false);
    let now = pair.now;
    let answers: Vec<_> =
        pair.server.connections.values_mut().map(|server| server.send_message(now, b"x", DEADLINE)).collect();
    assert!(answers.contains(&Err(MessageError::Unsupported)), "{answers:?}");
    assert!(answers.contains(&Ok(())), "{answers:?}");
}

#[test]
fn a_side_that_grants_no_window_sends_as_much_as_others() {
    let mut pair = Pair::new(link(0.0), TransportConfig::default(), 8);
    pair.connect(TransportConfig { extra_contexts: false, ..TransportConfig::default() });
    let is_up = |pair: &mut Pair| pair.server.events.iter().any(|(_, event)| *event == Event::Connected);
    assert!(pair.run_until(Duration::from_secs(10), is_up));
    let now = pair.now;
    for _ in 0..50 {
        pair.client_connection()
            .send_message(now, &[1; 1_000], Duration::from_millis(500))
            .expect("it is queued");
    }
    let mut received = 0;
    pair.run_until(Duration::from_millis(500), |pair| {
        let server = pair.server_connection().expect("it is up");
        received += core::iter::from_fn(|| server.receive_message()).count();
        received == 50
    });
    assert_eq!(received, 50);
}

#[test]
fn bulk_data_and_messages_share_the_link() {
    let mut pair = connected(0.0, 6);
    let id = pair.client_connection().open().expect("a stream");
    let start = pair.now;
    let (mut read, mut next) = (0, start);
    let mut scratch = vec![0; 65_536];
    let mut worst = Duration::ZERO;
    while pair.now < start + Duration::from_secs(5) {
        let now = pair.now;
        let client = pair.client_connection();
        while client.write(now, id, &[5; 16_384]).is_ok() {}
        if now >= next {
            client.send_message(now, &now.as_nanos().to_be_bytes(), DEADLINE).expect("it is queued");
            next += Duration::from_millis(5);
        }
        pair.run_until(Duration::from_millis(1), |pair| {
            let now = pair.now;
            let server = pair.server_connection().expect("it is up");
            while server.accept().is_some() {}
            while let Ok(crate::ReadOutcome::Data(count)) = server.read(id, &mut scratch) {
                read += count;
            }
            while let Some(message) = server.receive_message() {
                let sent = Instant::from_nanos(u64::from_be_bytes(message.try_into().expect("8 bytes")));
                worst = worst.max(now - sent);
            }
            false
        });
    }
    let share = read as f64 * 8.0 / (now_since(&pair, start) * 25e6);
    assert!(share > 0.85, "bulk has {share} of the link");
    assert!(worst < Duration::from_millis(80), "the slowest message took {worst:?}");
}

fn now_since(pair: &Pair, start: Instant) -> f64 {
    (pair.now - start).as_secs_f64()
}
