//! The ways to use several paths.

use core::time::Duration;

use super::several::{Conditions, Several};
use crate::{PathMode, ReadOutcome, TransportConfig};

fn several(conditions: &[Conditions], mode: PathMode) -> Several {
    let config = TransportConfig { path_mode: mode, ..TransportConfig::default() };
    Several::with_all_paths_of(conditions, 2, config)
}

/// Bytes that have arrived at the client on each path.
fn received(several: &Several) -> Vec<u64> {
    several.client.paths().iter().map(|path| path.bytes_received).collect()
}

#[test]
fn a_backup_carries_nothing_until_the_first_path_fails_and_nothing_after_its_return() {
    // The backup is the faster one, and still only a backup.
    let conditions = [Conditions::new(10.0, 60, 0.01), Conditions::new(20.0, 20, 0.0)];
    let mut several = several(&conditions, PathMode::Backup);
    several.request(u64::MAX);
    several.run(Duration::from_secs(3), |_| false);
    let before = received(&several);
    assert!(before[0] > 2_000_000, "{before:?}");
    assert!(before[1] < 20_000, "the backup carries only what keeps it open: {before:?}");

    several.lines[0].is_cut = true;
    let stall = several.longest_stall(Duration::from_secs(10));
    assert!(stall < Duration::from_millis(2 * 60 + 200), "{stall:?}");
    assert!(received(&several)[1] > 10_000_000, "{:?}", received(&several));

    several.lines[0].is_cut = false;
    several.run(Duration::from_secs(3), |_| false);
    let (before, read) = (received(&several), several.bytes_read());
    several.run(Duration::from_secs(3), |_| false);
    let after = received(&several);
    assert!(after[1] - before[1] < 20_000, "{before:?} {after:?}");
    let read = several.bytes_read() - read;
    assert!(read > 3_000_000, "the first path carries {read} bytes again: {before:?} {after:?}");
}

/// The delays of 1,200-byte writes by the server every 3.2 ms on a stream of low latency, in milliseconds and ascending, and the bytes that
/// arrived for each of theirs.
fn delays(several: &mut Several, writes: usize) -> (Vec<f64>, f64) {
    let interval = Duration::from_micros(3_200);
    let stream = several.client.open().expect("a stream");
    several.client.set_low_latency(stream, true).expect("open");
    several.client.write(several.now, stream, b"GET").expect("room");
    assert!(several.run(Duration::from_secs(5), |several| several.has_accepted(stream)));
    several.server.as_mut().expect("it is up").set_low_latency(stream, true).expect("open");
    let before: u64 = received(several).iter().sum();
    let (start, mut written, mut taken, mut read, mut delays) = (several.now, 0, 0, 0, Vec::new());
    while delays.len() < writes {
        while written < writes && several.now >= start + interval * written as u32 {
            let server = several.server.as_mut().expect("it is up");
            // What finds no room is written later, and late.
            let rest = (written + 1) * 1_200 - taken;
            taken += server.write(several.now, stream, &[7; 1_200][..rest]).unwrap_or(0);
            if taken < (written + 1) * 1_200 {
                break;
            }
            written += 1;
        }
        let next = start + interval * written as u32;
        several.run(next.saturating_since(several.now).max(Duration::from_micros(100)), |several| {
            let mut scratch = [0; 65_536];
            while let Ok(ReadOutcome::Data(count)) = several.client.read(stream, &mut scratch) {
                read += count;
            }
            let now = several.now;
            delays.extend(
                (delays.len()..read / 1_200)
                    .map(|write| (now - (start + interval * write as u32)).as_secs_f64() * 1e3),
            );
            false
        });
        assert!(several.now - start < Duration::from_secs(300));
    }
    let sent = received(several).iter().sum::<u64>() - before;
    delays.sort_unstable_by(f64::total_cmp);
    (delays, sent as f64 / (writes * 1_200) as f64)
}

#[test]
fn redundant_paths_deliver_sooner_than_those_that_add_up() {
    let bursts = Conditions { burst: 12.0, ..Conditions::new(25.0, 40, 0.1) };
    let conditions = [bursts, Conditions::new(25.0, 80, 0.02)];
    let percentile = |delays: &[f64], share: f64| delays[(delays.len() as f64 * share) as usize];
    let (alone, _) = delays(&mut several(&conditions[..1], PathMode::Aggregate), 10_000);
    let (aggregate, _) = delays(&mut several(&conditions, PathMode::Aggregate), 10_000);
    let (redundant, sent) = delays(&mut several(&conditions, PathMode::Redundant), 10_000);
    let [alone, aggregate, redundant] =
        [alone, aggregate, redundant].map(|delays| (percentile(&delays, 0.5), percentile(&delays, 0.99)));
    eprintln!(
        "p50 and p99: alone {alone:.1?} ms, aggregate {aggregate:.1?}, redundant {redundant:.1?}; {sent:.2} bytes per byte"
    );
    // 10 ms more than the one-way delay of the slower path. A symbol that both paths lose waits for a combination, and all after it.
    assert!(redundant.1 < 50.0, "{redundant:?} ms");
    assert!(redundant.0 < 25.0, "the faster path decides when it does not fail: {redundant:?}");
    assert!(sent < 2.9, "{sent} bytes per byte");
}

#[test]
fn what_must_arrive_soon_leaves_a_path_of_bursts_for_a_slower_one() {
    let bursts = Conditions { burst: 12.0, ..Conditions::new(25.0, 50, 0.1) };
    for conditions in [[bursts, Conditions::new(25.0, 80, 0.02)], [Conditions::new(25.0, 80, 0.02), bursts]] {
        let (delays, sent) = delays(&mut several(&conditions, PathMode::Aggregate), 20_000);
        let late = delays[delays.len() * 99 / 100];
        assert!(late < 50.0, "p99 is {late} ms where the slower path takes 40");
        assert!(sent < 1.5, "{sent} bytes per byte");
    }
}

#[test]
fn what_must_arrive_soon_stays_on_a_path_of_single_losses() {
    let conditions = [Conditions::new(25.0, 20, 0.01), Conditions::new(25.0, 120, 0.0)];
    let (delays, _) = delays(&mut several(&conditions, PathMode::Aggregate), 10_000);
    let late = delays[delays.len() * 99 / 100];
    assert!(late < 20.0, "p99 is {late} ms where the faster path takes 10");
}
