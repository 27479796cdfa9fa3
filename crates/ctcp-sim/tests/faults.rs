//! Faults of real paths, one at a time.

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::SPARSE_PROFILE;
use ctcp_netem::{LossModel, PathConfig, Schedule};
use ctcp_proto::scheme::WindowOf;
use ctcp_proto::{ConnectionError, Profile, Redundancy, TransportConfig};
use ctcp_sim::application::script::{End, FlowPlan, Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;
use ctcp_sim::{Simulation, Stop};

const RTT: Duration = Duration::from_millis(20);

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

fn path() -> PathConfig {
    PathConfig::new(Rate::from_megabits_per_second(25), RTT, LossModel::None)
}

fn transport(profile: Profile) -> TransportConfig {
    TransportConfig { profile, ..TransportConfig::default() }
}

fn download(size: u64) -> Script {
    Script::of_client(vec![StreamPlan::download(Duration::ZERO, size)])
}

/// Returns a pair whose client has begun to connect.
fn connecting(path: &PathConfig, profile: Profile, script: &Script) -> Pair {
    let mut pair = Pair::new(1, path, &transport(profile), script);
    pair.connect().expect("a valid configuration");
    pair
}

fn assert_completes(pair: &mut Pair, limit: Duration, what: &str) {
    let stop = pair.run_to_completion(limit);
    let violations: Vec<&String> = pair.simulation.violations().collect();
    let stats = [pair.client, pair.server].map(|id| pair.simulation.host(id).stats());
    assert_eq!(stop, Stop::Done, "{what}: {violations:?} {stats:#?}");
}

fn bytes_read(pair: &Pair) -> u64 {
    pair.simulation.ledger().total_read()
}

/// Returns whether the profile is classical TCP, which does not give all the guarantees of the others.
fn is_classic(profile: Profile) -> bool {
    profile.code.window() == WindowOf::Symbols
}

/// Returns all profiles of the laboratory.
fn profiles() -> Vec<Profile> {
    ctcp_baselines::catalogue().profiles().to_vec()
}

#[test]
fn a_transfer_resumes_soon_after_a_blackout_of_ten_seconds() {
    for profile in profiles() {
        let mut pair = connecting(&path(), profile, &download(10_000_000));
        let start = pair.simulation.now();
        for direction in [Direction::Forward, Direction::Backward] {
            let schedule =
                Schedule::default().with_blackout(start + Duration::from_secs(1), Duration::from_secs(10));
            pair.simulation.set_schedule(pair.link, direction, schedule);
        }
        pair.simulation.run_for(Duration::from_secs(11), |_| false);
        let before = bytes_read(&pair);
        assert!((1..9_000_000).contains(&before), "{profile}: the blackout is in the middle, {before}");
        let back = pair.simulation.now();
        let stop = pair
            .simulation
            .run_for(Duration::from_secs(10), |simulation| simulation.ledger().total_read() > before);
        let silence = pair.simulation.now() - back;
        assert_eq!(stop, Stop::Done, "{profile}");
        assert_completes(&mut pair, Duration::from_secs(60), profile.name.as_str());
        let rest = pair.simulation.now() - back;
        println!(
            "{profile}: the first byte comes {silence:.2?} after the path is back, the last one {rest:.2?}"
        );
        // Probes are at most a second apart. By then a classical TCP has doubled its time-out to eight seconds.
        let patience = Duration::from_millis(if is_classic(profile) { 8_000 } else { 1_100 });
        assert!(silence <= patience, "{profile}: {silence:?}");
    }
}

#[test]
fn reordering_alone_causes_almost_no_repair() {
    for profile in profiles() {
        let mut path = path();
        path.forward = path.forward.with_reorder(probability(0.05), Duration::from_millis(4));
        path.backward = path.backward.with_reorder(probability(0.05), Duration::from_millis(4));
        // The thesis sends a tenth of what is missing ahead, regardless of losses. That would hide the effect, so it is
        // disabled here.
        let redundancy = if profile == SPARSE_PROFILE { Redundancy::FEEDBACK } else { profile.redundancy };
        let asked = Profile { redundancy, ..profile };
        let mut pair = connecting(&path, asked, &download(5_000_000));
        assert_completes(&mut pair, Duration::from_secs(60), profile.name.as_str());
        let stats = pair.simulation.host(pair.server).stats();
        let link = pair.simulation.link(pair.link).way(Direction::Backward).stats();
        // A packet dropped by the queue is a real loss.
        // Before it knows the path, low-latency assumes that packets are lost: that costs about 50 repairs.
        let at_first = if profile == Profile::LOW_LATENCY { 50 } else { 0 };
        let needless = stats.repairs_sent.saturating_sub(link.dropped + at_first);
        println!(
            "{profile}: {} reordered of {}, {} repairs, {} spurious losses, {} dropped by the queue",
            link.reordered, link.delivered, stats.repairs_sent, stats.spurious_losses, link.dropped
        );
        assert!(link.reordered > 100, "{profile}: {link:?}");
        // Below a coding layer every packet is a repair, and a third duplicate acknowledgement indicates a loss.
        assert!(
            is_classic(profile) || needless * 50 <= stats.symbols_sent,
            "{profile}: {needless} for {} symbols",
            stats.symbols_sent
        );
    }
}

#[test]
fn duplicated_packets_are_harmless() {
    for profile in profiles() {
        let mut path = path();
        path.forward = path.forward.with_duplicate(Probability::ONE);
        path.backward = path.backward.with_duplicate(Probability::ONE);
        let mut pair = connecting(&path, profile, &download(1_000_000));
        assert_completes(&mut pair, Duration::from_secs(20), profile.name.as_str());
        let stats = pair.simulation.host(pair.client).stats();
        println!("{profile}: {} copies dropped of {}", stats.datagrams_dropped, stats.datagrams_received);
        assert!(stats.datagrams_dropped > 500, "{profile}: the link duplicates everything: {stats:?}");
    }
}

#[test]
fn corrupted_packets_count_as_lost() {
    for profile in profiles() {
        let mut path = path();
        path.forward = path.forward.with_corrupt(probability(0.1));
        path.backward = path.backward.with_corrupt(probability(0.1));
        let mut pair = connecting(&path, profile, &download(1_000_000));
        assert_completes(&mut pair, Duration::from_secs(60), profile.name.as_str());
    }
}

#[test]
fn a_client_that_moves_continues_after_path_validation() {
    for (host, port) in [(2, 20_000), (77, 30_000)] {
        let mut pair = connecting(&path(), Profile::DEFAULT, &download(10_000_000));
        pair.simulation.run_for(Duration::from_secs(1), |_| false);
        let address = SocketAddr::from(([192, 0, 2, host], port));
        pair.simulation.set_address(pair.client, address);
        let (moved, before) = (pair.simulation.now(), bytes_read(&pair));
        let client = pair.client;
        // Datagrams in transit to the old address are lost; then the next bytes arrive.
        let stop = pair.simulation.run_for(Duration::from_secs(5), |simulation| {
            simulation.ledger().total_read() > before && simulation.host(client).counts().misaddressed > 0
        });
        assert_eq!(stop, Stop::Done, "to {address}");
        let pause = pair.simulation.now() - moved;
        assert_completes(&mut pair, Duration::from_secs(30), "after the move");
        let stats = pair.simulation.host(pair.server).stats();
        println!("to {address}: the next byte after {pause:.2?}, {} packets lost", stats.packets_lost);
        assert_eq!(stats.migrations, 1);
        assert!(pause < Duration::from_secs(1), "{pause:?}");
    }
}

#[test]
fn the_server_follows_an_uploading_client_that_moves_at_once() {
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, 5_000_000)]);
    let mut pair = connecting(&path(), Profile::DEFAULT, &script);
    pair.simulation.run_for(Duration::from_secs(1), |_| false);
    pair.simulation.set_address(pair.client, SocketAddr::from(([192, 0, 2, 2], 20_000)));
    let server = pair.server;
    let stop = pair.simulation.run_for(4 * RTT, |simulation| simulation.host(server).stats().migrations == 1);
    assert_eq!(stop, Stop::Done);
    assert_completes(&mut pair, Duration::from_secs(10), "after the move");
}

// RFC 9000 section 9.4. The server learns the new address from the client, and the client from the server's answers.
#[test]
fn an_uploading_client_that_moves_does_not_keep_the_window_of_its_old_network() {
    let mut path = path();
    path.forward.delay = 4 * path.forward.delay;
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, 50_000_000)]);
    let mut pair = connecting(&path, Profile::DEFAULT, &script);
    pair.simulation.run_for(Duration::from_secs(3), |_| false);
    let window = |pair: &Pair| pair.simulation.host(pair.client).stats().window;
    let before = window(&pair);
    pair.simulation.set_address(pair.client, SocketAddr::from(([192, 0, 2, 99], 20_000)));
    let (client, limit) = (pair.client, Duration::from_millis(200));
    let is_new = |simulation: &Simulation| simulation.host(client).stats().window < before / 2.0;
    assert_eq!(
        pair.simulation.run_for(limit, is_new),
        Stop::Done,
        "{before} packets before, {} after",
        window(&pair)
    );
}

#[test]
fn a_handshake_succeeds_although_its_first_packets_are_lost() {
    for lost in 0..6 {
        let mut path = path();
        // The first packets of each direction are lost; INITIATE and RESPONSE are retransmitted.
        path.forward.loss = LossModel::Pattern(vec![true; lost]);
        path.backward.loss = LossModel::Pattern(vec![true; lost / 2]);
        let mut pair = connecting(&path, Profile::DEFAULT, &download(10_000));
        let start = pair.simulation.now();
        assert_completes(&mut pair, Duration::from_secs(10), &format!("{lost} lost"));
        println!(
            "{lost} and {} first packets lost: done after {:.2?}",
            lost / 2,
            pair.simulation.now() - start
        );
    }
}

#[test]
fn without_loss_a_small_download_takes_two_round_trips() {
    let mut pair = connecting(&path(), Profile::DEFAULT, &download(5_000));
    let start = pair.simulation.now();
    let (client, server) = (pair.client, pair.server);
    let stop = pair.simulation.run_for(Duration::from_secs(1), |simulation| {
        let _ = (client, server);
        simulation.ledger().total_read() == 5_100
    });
    let time = pair.simulation.now() - start;
    assert_eq!(stop, Stop::Done);
    // One for the handshake, one for the request; the rest is transmission time.
    assert!(time < 2 * RTT + Duration::from_millis(6), "{time:?}");
}

/// Returns why the client's last connection ended and how long it took to detect that.
fn runs_until_closed(pair: &mut Pair, limit: Duration) -> Option<(ConnectionError, Duration)> {
    let start = pair.simulation.now();
    let client = pair.client;
    let error = |simulation: &Simulation| {
        let host = simulation.host(client);
        let alive = host.newest().and_then(|peer| peer.application.closed().cloned());
        alive.or_else(|| host.retired().last().and_then(|application| application.closed().cloned()))
    };
    pair.simulation.run_for(limit, |simulation| error(simulation).is_some());
    error(&pair.simulation).map(|error| (error, pair.simulation.now() - start))
}

#[test]
fn a_client_learns_within_a_second_that_its_server_was_restarted() {
    let hold = |size| FlowPlan { end: End::Finish(Duration::from_secs(1_000)), ..FlowPlan::of(size) };
    let upload = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, 10_000_000)]);
    let waiting = Script::of_client(vec![StreamPlan {
        start: Duration::ZERO,
        request: hold(100),
        response: hold(100),
        in_turn: false,
    }]);
    for (what, script) in [("downloads", download(10_000_000)), ("uploads", upload), ("waits", waiting)] {
        let mut pair = connecting(&path(), Profile::DEFAULT, &script);
        pair.simulation.run_for(Duration::from_secs(1), |_| false);
        let config = Pair::server_config(&pair.transport);
        pair.simulation.restart(pair.server, config);
        let end = runs_until_closed(&mut pair, Duration::from_secs(40));
        println!("a client that {what}: {end:?}");
        let (error, time) = end.expect("an end");
        assert_eq!(error, ConnectionError::Reset, "{what}");
        assert!(time <= Duration::from_secs(1) + 2 * RTT, "{what}: {time:?}");
        // The new server accepts the client again.
        let read = bytes_read(&pair);
        pair.connect().expect("a valid configuration");
        pair.simulation.run_for(Duration::from_secs(1), |_| false);
        assert!(bytes_read(&pair) > read, "{what}");
    }
}

#[test]
fn a_thousand_idle_streams_cause_no_traffic_and_no_delay() {
    let idle = StreamPlan {
        start: Duration::ZERO,
        request: FlowPlan { end: End::Finish(Duration::from_secs(60)), ..FlowPlan::of(10) },
        response: FlowPlan { end: End::Finish(Duration::from_secs(60)), ..FlowPlan::of(10) },
        in_turn: false,
    };
    let mut streams = vec![idle; 1_000];
    streams.push(StreamPlan::download(Duration::from_secs(5), 5_000_000));
    let mut pair = connecting(&path(), Profile::DEFAULT, &Script::of_client(streams));
    pair.simulation.run_for(Duration::from_secs(4), |_| false);
    assert_eq!(bytes_read(&pair), 20_000, "both sides of every stream spoke");
    let (quiet, events) = (pair.simulation.recorder().datagrams(), pair.simulation.events());
    pair.simulation.run_for(Duration::from_millis(900), |_| false);
    assert!(pair.simulation.recorder().datagrams() - quiet < 10, "idle streams are silent");
    assert!(pair.simulation.events() - events < 20, "idle streams cause no wake-ups");
    let stop = pair
        .simulation
        .run_for(Duration::from_secs(3), |simulation| simulation.ledger().total_read() == 20_000 + 5_000_100);
    assert_eq!(stop, Stop::Done, "a download among them is not held up: {}", bytes_read(&pair));
    assert_completes(&mut pair, Duration::from_secs(120), "all streams end");
}

#[test]
fn a_reader_that_stops_reading_stops_only_its_own_writer() {
    let mut slow = StreamPlan::download(Duration::ZERO, 20_000_000);
    slow.response.reading =
        ctcp_sim::application::script::Pace { chunk: 1, pause: Duration::from_secs(3_600) };
    let other = StreamPlan::download(Duration::from_secs(2), 2_000_000);
    let mut pair = connecting(&path(), Profile::DEFAULT, &Script::of_client(vec![slow, other]));
    pair.simulation.run_for(Duration::from_secs(5), |_| false);
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for (name, flow) in pair.simulation.ledger().flows() {
        if name.writer == ctcp_proto::Role::Server {
            read.push(flow.read);
            written.push(flow.written);
        }
    }
    assert_eq!(read, [1, 2_000_000]);
    let held = pair.transport.stream_credit + ctcp_proto::fuzzing::SEND_BUFFER_MAX as u64;
    assert!(written[0] <= held + 1, "{written:?}");
}
