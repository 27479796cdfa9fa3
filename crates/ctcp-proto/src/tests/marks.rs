//! ECN from end to end: which packets are ECN-capable, what the peer reports, and paths that clear, drop or change codepoints.

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_netem::{LinkConfig, QueueLimit};

use super::pair::Pair;
use crate::congestion::Algorithm;
use crate::{ConnectionStats, Ecn, Profile, ReadOutcome, TransportConfig};

struct Outcome {
    client: ConnectionStats,
    /// Datagrams of the client: not capable, ECT(0), others.
    sent: [u64; 3],
}

/// The client sends this many bytes over 25 Mbit/s and 20 ms.
fn upload(profile: Profile, size: usize, recoding: fn(u64, Ecn) -> Option<Ecn>) -> Outcome {
    let link = LinkConfig {
        rate: Rate::from_megabits_per_second(25),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(100),
        ..LinkConfig::default()
    };
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let mut pair = Pair::new(link, transport.clone(), 1);
    pair.recoding = recoding;
    pair.connect(transport);
    let (mut stream, mut written, mut serving, mut read) = (None, 0, None, 0);
    let data = vec![7; 65_536];
    let mut scratch = vec![0; 65_536];
    let done = pair.run_until(Duration::from_secs(60), |pair| {
        let now = pair.now;
        let client = pair.client_connection();
        if stream.is_none() && client.is_connected() {
            stream = Some(client.open().expect("a stream"));
        }
        if let Some(id) = stream.filter(|_| written < size) {
            written += client.write(now, id, &data[..data.len().min(size - written)]).unwrap_or(0);
        }
        let Some(server) = pair.server_connection() else { return false };
        serving = serving.or_else(|| server.accept());
        while let Some(id) = serving {
            match server.read(id, &mut scratch) {
                Ok(ReadOutcome::Data(bytes)) => read += bytes,
                _ => break,
            }
        }
        read == size
    });
    assert!(done, "{read} of {size} bytes arrived: {:?}", pair.client_connection().stats());
    Outcome { client: pair.client_connection().stats(), sent: pair.sent }
}

#[test]
fn data_leaves_as_capable_after_the_test() {
    for profile in [Profile::DEFAULT, Profile::TCP] {
        let Outcome { client, sent: [without, capable, others] } =
            upload(profile, 2_000_000, |_, ecn| Some(ecn));
        assert!(client.is_ecn_capable && client.congestion_marks == 0, "{profile}: {client:?}");
        // Packets of the first round trip after the ten test packets are not ECN-capable.
        assert!(capable > 1_300 && without < 80 && others == 0, "{profile}: {capable} of {without}");
    }
}

#[test]
fn a_controller_that_ignores_marks_sends_no_capable_packet() {
    let outcome = upload(Profile::CTCP, 100_000, |_, ecn| Some(ecn));
    assert_eq!(outcome.sent[1..], [0, 0]);
    assert!(!outcome.client.is_ecn_capable);
}

#[test]
fn a_path_that_clears_the_codepoint_gets_only_test_packets() {
    let outcome = upload(Profile::default(), 500_000, |_, _| Some(Ecn::NotCapable));
    assert!(!outcome.client.is_ecn_capable);
    assert_eq!(outcome.sent[1..], [10, 0]);
}

#[test]
fn a_path_that_starts_to_clear_the_codepoint_is_detected() {
    let outcome = upload(Profile::default(), 2_000_000, |number, ecn| {
        Some(if number > 500 { Ecn::NotCapable } else { ecn })
    });
    assert!(!outcome.client.is_ecn_capable);
    let capable = outcome.sent[1];
    assert!((400..700).contains(&capable), "{capable}");
}

#[test]
fn a_path_that_changes_the_codepoint_is_detected() {
    let outcome =
        upload(Profile::default(), 500_000, |_, ecn| Some(if ecn == Ecn::Ect0 { Ecn::Ect1 } else { ecn }));
    assert!(!outcome.client.is_ecn_capable);
    assert_eq!(outcome.sent[1..], [10, 0]);
}

#[test]
fn a_path_that_drops_capable_packets_costs_only_the_test() {
    for size in [500_000, 2_000] {
        let outcome = upload(Profile::default(), size, |_, ecn| (ecn != Ecn::Ect0).then_some(ecn));
        assert!(!outcome.client.is_ecn_capable);
        assert!(outcome.sent[1] <= 10, "{:?}", outcome.sent);
    }
}

#[test]
fn marks_count_as_congestion_but_not_as_loss() {
    for congestion in [Algorithm::DEFAULT, Algorithm::RENO, Algorithm::CUBIC, Algorithm::CTCP] {
        let profile = Profile { congestion, ..Profile::default() };
        let free = upload(profile, 3_000_000, |_, ecn| Some(ecn)).client;
        let marked = upload(profile, 3_000_000, |number, ecn| {
            Some(if ecn == Ecn::Ect0 && number % 20 == 0 { Ecn::Ce } else { ecn })
        })
        .client;
        assert!(marked.is_ecn_capable && marked.congestion_marks > 50, "{congestion}: {marked:?}");
        assert_eq!(marked.packets_lost, 0, "{congestion}");
        // With a mark in every round trip the window must shrink.
        assert!(marked.window < free.window / 2.0, "{congestion}: {} {}", marked.window, free.window);
    }
}
