//! A download over a lossy link: complete, correct, and as fast as the link.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, QueueLimit};

use super::pair::Pair;
use crate::{Connection, Profile, ReadOutcome, StreamId, TransportConfig, WriteError};

struct Outcome {
    share: f64,
    stats: crate::ConnectionStats,
}

fn pattern(index: usize) -> u8 {
    ((index * 31) ^ (index >> 8) ^ (index >> 16)) as u8
}

fn download(profile: Profile, loss: f64, megabytes: usize, seed: u64) -> Outcome {
    download_with(profile, loss, megabytes, seed, |_, _| {})
}

/// Runs a download. `disturb` may act on the server's connection; it is given the number of bytes read so far.
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
        let now = pair.now;
        let client = pair.client_connection();
        if stream.is_none() && client.is_connected() {
            let id = client.open().expect("a stream");
            client.write(now, id, b"GET").expect("room");
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
                match server.write(now, id, &chunk) {
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
        let outcome = download(Profile::DEFAULT, loss, 10, 1);
        println!("default at {loss}: {:.3} {:?}", outcome.share, outcome.stats);
        assert!(outcome.share > if loss > 0.1 { 0.85 } else { 0.9 }, "{} at loss {loss}", outcome.share);
    }
}

/// Symbols are never cut: those in flight when datagrams become smaller still need repair.
#[test]
fn a_download_continues_when_datagrams_become_smaller_than_its_symbols() {
    for profile in [Profile::DEFAULT, Profile::TCP] {
        let mut shrinks = 0;
        let outcome = download_with(profile, 0.05, 2, 3, |server, read| {
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
fn the_ctcp_and_the_uncoded_profile_also_deliver() {
    for profile in [Profile::CTCP, Profile::TCP] {
        let outcome = download(profile, 0.05, 2, 2);
        println!("{profile}: {:.3} {:?}", outcome.share, outcome.stats);
    }
}

#[test]
fn an_empty_write_does_not_cancel_the_event_of_a_waiting_writer() {
    let transport = TransportConfig::default();
    let mut pair = Pair::new(LinkConfig::default(), transport.clone(), 3);
    pair.connect(transport);
    assert!(pair.run_until(Duration::from_secs(1), |pair| pair.client_connection().is_connected()));
    let now = pair.now;
    let client = pair.client_connection();
    let id = client.open().expect("a stream");
    let data = vec![7; 64 * 1024];
    while client.write(now, id, &data).is_ok() {}
    assert_eq!(client.write(now, id, &[]), Ok(0));
    let is_told = pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.events.iter().any(|(_, event)| *event == crate::Event::Writable(id))
    });
    assert!(is_told, "the writer is notified of the room");
}
