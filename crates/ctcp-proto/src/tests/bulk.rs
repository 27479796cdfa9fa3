//! A download over a lossy link: complete, correct, and as fast as the link.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{Connection, Profile, ProfileName, ReadOutcome, StreamId, TransportConfig, WriteError};

struct Outcome {
    share: f64,
    stats: crate::ConnectionStats,
}

fn pattern(index: usize) -> u8 {
    ((index * 31) ^ (index >> 8) ^ (index >> 16)) as u8
}

fn download(profile: impl Into<Profile>, loss: f64, megabytes: usize, seed: u64) -> Outcome {
    download_with(profile.into(), loss, megabytes, seed, |_, _| {})
}

/// `disturb` may do something to the server's connection; it is told how many bytes have been read.
fn download_with(
    profile: Profile,
    loss: f64,
    megabytes: usize,
    seed: u64,
    disturb: impl FnMut(&mut Connection, usize),
) -> Outcome {
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    download_between(&transport, loss, megabytes, seed, disturb)
}

fn download_between(
    transport: &TransportConfig,
    loss: f64,
    megabytes: usize,
    seed: u64,
    mut disturb: impl FnMut(&mut Connection, usize),
) -> Outcome {
    let rate = Rate::from_megabits_per_second(25);
    let rtt = Duration::from_millis(20);
    let link = LinkConfig {
        rate,
        delay: rtt / 2,
        loss: LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
        queue: QueueLimit::Packets(42),
        overhead: 28,
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(link, transport.clone(), seed);
    let start = pair.now;
    pair.connect(transport.clone());
    let size = megabytes * 1_000_000;
    let (mut written, mut read) = (0, 0);
    let mut stream: Option<StreamId> = None;
    let mut scratch = vec![0; 65_536];
    let mut serving: Option<StreamId> = None;
    let done = pair.run_until(Duration::from_secs(600), |pair| {
        let client = pair.client_connection();
        if stream.is_none() && client.is_connected() {
            let id = client.open().expect("a stream");
            client.write(id, b"GET").expect("room");
            client.finish(id).expect("open");
            stream = Some(id);
        }
        if let Some(server) = pair.server_connection() {
            disturb(server, read);
            if let Some(id) = server.accept() {
                serving = Some(id);
            }
            while let Some(id) = serving.filter(|_| written < size) {
                let end = (written + scratch.len()).min(size);
                let chunk: Vec<u8> = (written..end).map(pattern).collect();
                match server.write(id, &chunk) {
                    Ok(taken) => written += taken,
                    Err(WriteError::Blocked) => break,
                    Err(error) => panic!("{error}"),
                }
                if written == size {
                    server.finish(id).expect("open");
                }
            }
        }
        let client = pair.client_connection();
        while let Some(id) = stream {
            match client.read(id, &mut scratch) {
                Ok(ReadOutcome::Data(count)) => {
                    for (offset, &byte) in scratch[..count].iter().enumerate() {
                        assert_eq!(byte, pattern(read + offset), "at {}", read + offset);
                    }
                    read += count;
                }
                Ok(ReadOutcome::Blocked) => break,
                Ok(ReadOutcome::Finished) => return true,
                Err(error) => panic!("{error}"),
            }
        }
        false
    });
    let stats = pair.server_connection().expect("a connection").stats();
    assert!(done && read == size, "{read} of {size} bytes after {:?}: {stats:?}", pair.now - start);
    let seconds = (pair.now - start).as_secs_f64();
    Outcome { share: size as f64 * 8.0 / seconds / 25e6, stats }
}

#[test]
fn a_download_fills_a_lossy_link() {
    for loss in [0.0, 0.01, 0.05, 0.2] {
        let outcome = download(ProfileName::Default, loss, 10, 1);
        println!("default at {loss}: {:.3} {:?}", outcome.share, outcome.stats);
        assert!(outcome.share > if loss > 0.1 { 0.85 } else { 0.9 }, "{} at loss {loss}", outcome.share);
    }
}

/// Symbols are never cut: those that are on their way when datagrams become smaller need repair all the same.
#[test]
fn a_download_goes_on_when_datagrams_become_smaller_than_its_symbols() {
    for profile in [ProfileName::Default, ProfileName::Tcp] {
        let mut shrinks = 0;
        let outcome = download_with(Profile::named(profile), 0.05, 2, 3, |server, read| {
            if read >= (shrinks + 1) * 200_000 {
                shrinks += 1;
                server.shrink_datagrams();
            }
        });
        assert_eq!(shrinks, 9);
        assert!(outcome.share > 0.1, "{profile}: {}", outcome.share);
    }
}

#[test]
fn the_papers_profiles_and_the_uncoded_one_deliver_too() {
    for profile in [ProfileName::Ctcp, ProfileName::Sparse, ProfileName::Tcp] {
        let outcome = download(profile, 0.05, 2, 2);
        println!("{profile}: {:.3} {:?}", outcome.share, outcome.stats);
    }
}

// Requirement: U2, U6
#[test]
fn the_thesis_gets_several_times_what_tcp_gets_at_five_percent() {
    let (sparse, tcp) = (download(ProfileName::Sparse, 0.05, 8, 1), download(ProfileName::Tcp, 0.05, 1, 1));
    println!("sparse {:.3} {:?}, tcp {:.3}", sparse.share, sparse.stats, tcp.share);
    assert!(sparse.share > 0.6 && sparse.share > 4.0 * tcp.share, "{:.3} {:.3}", sparse.share, tcp.share);
}

/// Below the same TCP, the coding layer is what makes the loss disappear.
#[test]
fn coding_below_vegas_masks_the_loss_that_stops_it() {
    let vegas =
        Profile { congestion: crate::congestion::Algorithm::Vegas, ..Profile::named(ProfileName::Tcp) };
    let fixed = |name| Profile {
        redundancy: crate::Redundancy::Fixed(crate::Ratio::new(1.15).expect("in range")),
        ..Profile::named(name)
    };
    let uncoded = download(vegas, 0.05, 1, 1).share;
    let coded = download(fixed(ProfileName::TcpNc), 0.05, 4, 1).share;
    println!("vegas {uncoded:.3}, coded {coded:.3}");
    assert!(coded > 0.6 && coded > 4.0 * uncoded, "{uncoded:.3} {coded:.3}");
    for profile in [ProfileName::TcpNcEot, ProfileName::TcpNcPb] {
        let outcome = download(profile, 0.05, 2, 2);
        println!("{profile}: {:.3} {:?}", outcome.share, outcome.stats);
    }
}

/// Without coefficients and payload the bytes are the same, and so is the number of packets, nearly.
#[test]
fn symbolic_coding_delivers_the_same_bytes_with_as_many_packets() {
    let redundancy = crate::Redundancy::Fixed(crate::Ratio::new(1.15).expect("in range"));
    let real = TransportConfig {
        profile: Profile { redundancy, ..Profile::named(ProfileName::TcpNc) },
        ..TransportConfig::default()
    };
    let symbolic = TransportConfig { symbolic: Some(crate::SymbolicChannel::default()), ..real.clone() };
    let [real, symbolic] =
        [real, symbolic].map(|transport| download_between(&transport, 0.05, 2, 1, |_, _| {}));
    println!("real {:.3}, symbolic {:.3}", real.share, symbolic.share);
    // What is on the wire is shorter, so that the rate of the link says nothing: packets do.
    let symbols = |outcome: &Outcome| outcome.stats.symbols_sent as f64;
    assert!((symbols(&symbolic) / symbols(&real) - 1.0).abs() < 0.02);
    assert!((symbolic.stats.repairs_sent as f64 / real.stats.repairs_sent as f64 - 1.0).abs() < 0.1);
}

#[test]
fn asking_whether_a_stream_takes_more_does_not_make_a_waiting_writer_deaf() {
    let transport = TransportConfig::default();
    let mut pair = Pair::new(LinkConfig::default(), transport.clone(), 3);
    pair.connect(transport);
    assert!(pair.run_until(Duration::from_secs(1), |pair| pair.client_connection().is_connected()));
    let client = pair.client_connection();
    let id = client.open().expect("a stream");
    let data = vec![7; 64 * 1024];
    while client.write(id, &data).is_ok() {}
    assert_eq!(client.write(id, &[]), Ok(0));
    let is_told = pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.events.iter().any(|(_, event)| *event == crate::Event::Writable(id))
    });
    assert!(is_told, "the writer hears of the room");
}
