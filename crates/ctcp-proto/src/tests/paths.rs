//! Connections over several paths.

use core::time::Duration;

use super::several::{Conditions, Several};
use crate::wire::Frame;
use crate::{Event, PathError, PathId, TransportConfig};

const fn path(megabits: f64, rtt_ms: u64, loss: f64) -> Conditions {
    Conditions::new(megabits, rtt_ms, loss)
}

/// The rate of a download over these paths in Mbit/s, after the first second.
fn rate(conditions: &[Conditions], seed: u64) -> f64 {
    let mut several = Several::with_all_paths(conditions, seed);
    several.request(u64::MAX);
    several.run(Duration::from_secs(3), |_| false);
    let before = several.bytes_read();
    several.run(Duration::from_secs(10), |_| false);
    (several.bytes_read() - before) as f64 * 8e-6 / 10.0
}

#[test]
fn unequal_paths_add_up() {
    for case in [
        [path(5.0, 20, 0.0), path(5.0, 20, 0.0)],
        [path(10.0, 20, 0.05), path(2.5, 120, 0.05)],
        [path(15.0, 30, 0.0), path(5.0, 200, 0.1)],
        [path(2.0, 10, 0.2), path(15.0, 80, 0.2)],
    ] {
        let alone = case.map(|path| rate(&[path], 1));
        let both = rate(&case, 1);
        let share = both / (alone[0] + alone[1]);
        assert!(share > 0.93, "{alone:?} alone, {both} together: {share}");
    }
}

#[test]
fn a_path_that_hardly_carries_anything_does_no_harm() {
    let good = [path(10.0, 20, 0.0), path(5.0, 40, 0.0)];
    let with_a_bad_one = [good[0], good[1], path(0.3, 800, 0.3)];
    let (two, three) = (rate(&good, 1), rate(&with_a_bad_one, 1));
    assert!(three > 0.98 * two, "{two} Mbit/s without it, {three} with it");
}

#[test]
fn requests_over_two_paths_take_no_longer_than_over_the_better_one() {
    let conditions = [path(10.0, 20, 0.01), path(5.0, 150, 0.02)];
    let times = |conditions: &[Conditions]| {
        let mut several = Several::with_all_paths(conditions, 3);
        several.run(Duration::from_secs(1), |_| false);
        // A warm connection.
        several.download(500_000);
        let mut times: Vec<Duration> = (0..20).map(|_| several.download(100_000)).collect();
        times.sort_unstable();
        (times[10], times[18])
    };
    let (alone, both) = (times(&conditions[..1]), times(&conditions));
    let is_close = |both: Duration, alone: Duration| both < alone.mul_f64(1.05) + Duration::from_millis(1);
    assert!(is_close(both.0, alone.0) && is_close(both.1, alone.1), "{alone:?} alone, {both:?} with both");
}

#[test]
fn a_path_that_dies_stalls_the_transfer_only_briefly_and_is_used_again_when_it_returns() {
    for dead in [0, 1] {
        let mut several = Several::with_all_paths(&[path(10.0, 20, 0.0), path(10.0, 60, 0.0)], 4);
        several.request(u64::MAX);
        several.run(Duration::from_secs(3), |_| false);
        several.lines[dead].is_cut = true;
        let stall = several.longest_stall(Duration::from_secs(10));
        assert!(stall < Duration::from_millis(320), "path {dead}: {stall:?}");
        several.lines[dead].is_cut = false;
        several.run(Duration::from_secs(3), |_| false);
        let before = several.bytes_read();
        several.run(Duration::from_secs(2), |_| false);
        let rate = (several.bytes_read() - before) as f64 * 8e-6 / 2.0;
        assert!(rate > 15.0, "path {dead} came back, but the rate is {rate} Mbit/s");
    }
}

#[test]
fn the_reset_of_a_restarted_server_is_recognised_while_the_oldest_path_does_not_work() {
    let mut several = Several::with_all_paths(&[path(10.0, 20, 0.0), path(10.0, 60, 0.0)], 4);
    several.request(u64::MAX);
    several.run(Duration::from_secs(1), |_| false);
    several.lines[0].is_cut = true;
    several.run(Duration::from_secs(4), |_| false);
    several.restart_server();
    let is_reset =
        |several: &mut Several| several.client_events.contains(&Event::Closed(crate::ConnectionError::Reset));
    assert!(several.run(Duration::from_secs(3), is_reset), "{:?}", several.client_events);
}

#[test]
fn a_lossy_path_is_used_as_soon_as_it_works_for_one_side() {
    // Of two answers to the challenges of a new path, one is often lost.
    for seed in 1..9 {
        let mut several = Several::with_all_paths(&[path(30.0, 30, 0.2), path(10.0, 200, 0.28)], seed);
        several.request(u64::MAX);
        several.run(Duration::from_secs(4), |_| false);
        let before = several.client.paths()[1].bytes_received;
        several.run(Duration::from_secs(4), |_| false);
        let rate = (several.client.paths()[1].bytes_received - before) as f64 * 8e-6 / 4.0;
        assert!(rate > 7.0, "seed {seed}: {rate} Mbit/s on the second path");
    }
}

#[test]
fn every_second_packet_may_overtake_many_of_the_other_path() {
    // The same rate, but one path takes five times as long: half of all packets arrive 40 ms later than those sent at the same time.
    let alone = rate(&[path(20.0, 20, 0.02)], 9);
    let both = rate(&[path(20.0, 20, 0.02), path(20.0, 100, 0.02)], 9);
    assert!(both > 1.8 * alone, "{both} Mbit/s with both, {alone} with one");
}

#[test]
fn a_path_is_announced_when_it_works_and_when_it_is_closed() {
    let mut several = Several::new(&[path(10.0, 20, 0.0), path(10.0, 20, 0.0), path(10.0, 20, 0.0)], 5);
    assert_eq!(several.add_path(1), Err(PathError::NotNow));
    assert!(several.run(Duration::from_secs(5), |several| several.client.is_connected()));
    assert_eq!(several.client.abandon_path(PathId(0)), Err(PathError::OnlyOne));
    assert_eq!(several.client.abandon_path(PathId(7)), Err(PathError::Unknown));
    let added = several.add_path(1).expect("room");
    let is_open = |several: &mut Several| several.client_events.contains(&Event::PathOpened(added));
    assert!(several.run(Duration::from_secs(1), is_open));
    // The path over which the connection began is not special.
    assert_eq!(several.client.abandon_path(PathId(0)), Ok(()));
    several.lines[0].is_cut = true;
    several.download(1_000_000);
    assert!(several.client_events.contains(&Event::PathClosed(PathId(0))));
    let of_server = several.server.as_ref().map(|server| server.paths().len());
    assert_eq!((several.client.paths().len(), of_server), (1, Some(1)));
    // One on which nothing answers is given up.
    several.lines[2].is_cut = true;
    let dead = several.add_path(2).expect("room");
    let is_closed = |several: &mut Several| several.client_events.contains(&Event::PathClosed(dead));
    assert!(several.run(Duration::from_secs(60), is_closed));
}

#[test]
fn a_server_keeps_no_more_paths_than_it_allows_and_needs_no_client_to_keep_to_it() {
    let mut several = Several::new(&[path(10.0, 20, 0.0)], 6);
    assert!(several.run(Duration::from_secs(5), |several| several.server.is_some()));
    several.run(Duration::from_secs(1), |_| false);
    let allowed = (0..10).take_while(|_| several.add_path(0).is_ok()).count();
    assert_eq!((allowed, several.add_path(0)), (3, Err(PathError::TooMany)));
    several.run(Duration::from_secs(1), |_| false);
    // A client that opens paths regardless.
    for id in 10..200 {
        let datagram = several.client.forge_on(PathId(id), &[Frame::Ping]);
        several.receive_at_server(0, several.lines[0].client, datagram);
    }
    several.run(Duration::from_secs(1), |_| false);
    assert_eq!(several.server.as_ref().map(|server| server.paths().len()), Some(4));
    several.download(100_000);
}

#[test]
fn a_new_path_replaces_closed_ones_even_if_it_is_the_only_one_that_works() {
    let mut several = Several::with_all_paths(&[path(10.0, 20, 0.0); 4], 7);
    several.download(100_000);
    several.lines.iter_mut().for_each(|line| line.is_cut = true);
    for id in 1..4 {
        assert_eq!(several.client.abandon_path(PathId(id)), Ok(()));
    }
    // The server still has four paths, and what says that three of them are closed does not arrive.
    several.run(Duration::from_secs(1), |_| false);
    several.lines[3].is_cut = false;
    let added = several.add_path(3).expect("room");
    let is_open = |several: &mut Several| several.client_events.contains(&Event::PathOpened(added));
    assert!(several.run(Duration::from_secs(1), is_open));
    several.download(100_000);
}

#[test]
fn a_packet_that_closes_its_own_path_opens_none() {
    let mut several = Several::new(&[path(10.0, 20, 0.0)], 8);
    assert!(several.run(Duration::from_secs(5), |several| several.server.is_some()));
    several.run(Duration::from_secs(1), |_| false);
    (0..3).for_each(|_| assert!(several.add_path(0).is_ok()));
    several.run(Duration::from_secs(1), |_| false);
    let frames = [Frame::PathAbandon(PathId(1)), Frame::PathAbandon(PathId(9))];
    let datagram = several.client.forge_on(PathId(9), &frames);
    several.receive_at_server(0, several.lines[0].client, datagram);
    assert_eq!(several.server.as_ref().map(|server| server.paths().len()), Some(3));
    several.download(100_000);
}

#[test]
fn a_packet_that_opens_a_path_and_closes_it_may_go_on_without_harm() {
    let mut several = Several::new(&[path(10.0, 20, 0.0)], 9);
    assert!(several.run(Duration::from_secs(5), |several| several.server.is_some()));
    several.run(Duration::from_secs(1), |_| false);
    let id = PathId(9);
    let frames = [
        Frame::PathChallenge([1; 8]),
        Frame::PathAbandon(id),
        Frame::PathChallenge([2; 8]),
        Frame::PathResponse([3; 8]),
        Frame::PathPreference(1),
    ];
    let datagram = several.client.forge_on(id, &frames);
    several.receive_at_server(0, several.lines[0].client, datagram);
    assert_eq!(several.server.as_ref().map(|server| server.paths().len()), Some(1));
    several.download(100_000);
}

#[test]
fn what_arrives_on_a_far_path_is_told_on_the_near_one() {
    let (near, far) = (path(20.0, 20, 0.0), path(20.0, 200, 0.0));
    let mut several = Several::new(&[near, far], 10);
    assert!(several.run(Duration::from_secs(5), |several| several.server.is_some()));
    several.run(Duration::from_secs(1), |_| false);
    let id = several.add_path(1).expect("room");
    several.run(Duration::from_secs(1), |_| false);
    several.request(4_000_000);
    let begun = several.now;
    let counted = |several: &mut Several| several.server.as_ref().and_then(|server| server.counted(id));
    // The first packet on the far path takes 100 ms, and its acknowledgement as long; the near path takes 10 ms.
    assert!(several.run(Duration::from_millis(160), |several| counted(several) > Some(begun)));
    assert!(several.now - begun > Duration::from_millis(100), "{:?}", several.now - begun);
}

#[test]
fn two_paths_that_fail_together_get_few_packets() {
    let mut several = Several::new(&[path(20.0, 20, 0.0), path(20.0, 40, 0.0)], 11);
    assert!(several.run(Duration::from_secs(5), |several| several.server.is_some()));
    several.run(Duration::from_secs(1), |_| false);
    assert!(several.add_path(1).is_ok());
    several.run(Duration::from_secs(1), |_| false);
    several.request(20_000_000);
    several.run(Duration::from_secs(2), |_| false);
    several.lines.iter_mut().for_each(|line| line.is_cut = true);
    several.run(Duration::from_secs(1), |_| false);
    let sent = |several: &Several| several.server.as_ref().map_or(0, |server| server.stats().datagrams_sent);
    let before = sent(&several);
    several.run(Duration::from_secs(5), |_| false);
    let more = sent(&several) - before;
    assert!(more < 200, "{more} datagrams in five seconds without an answer");
}

#[test]
fn a_path_that_is_dead_for_hours_costs_the_others_little() {
    let config = TransportConfig { keep_alive: Some(Duration::from_secs(10)), ..TransportConfig::default() };
    let paths = [path(20.0, 20, 0.0), path(20.0, 40, 0.0)];
    let mut several = Several::with_all_paths_of(&paths, 12, config);
    several.request(5_000_000);
    several.run(Duration::from_millis(500), |_| false);
    several.lines[1].is_cut = true;
    assert!(several.run(Duration::from_secs(20), |several| several.is_done()));
    several.run(Duration::from_secs(10), |_| false);
    let sent = |several: &Several| {
        let server = several.server.as_ref().expect("a connection");
        several.client.paths()[0].bytes_sent + server.paths()[0].bytes_sent
    };
    let before = sent(&several);
    several.run(Duration::from_secs(60), |_| false);
    let bytes = sent(&several) - before;
    assert!(bytes < 2_000, "{bytes} bytes in a minute on the path that works");
    several.run(Duration::from_secs(3_600), |_| false);
    let probes = |several: &Several| several.client.paths()[1].bytes_sent;
    let before = probes(&several);
    several.run(Duration::from_secs(600), |_| false);
    let bytes = probes(&several) - before;
    assert!(bytes < 20_000, "{bytes} bytes in ten minutes on the path that is dead");
    several.download(100_000);
    several.lines[1].is_cut = false;
    several.run(Duration::from_secs(6), |_| false);
    assert!(several.client.paths().iter().all(|path| !path.is_avoided), "it is used again");
}
