//! Networks of several nodes and flows: routing, loss over chains, sharing between flows, and repeatable runs.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::TCP_NC;
use ctcp_netem::{Charge, LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{ClientPolicy, EndpointConfig, Profile, Ratio, SecretKey, TransportConfig};
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::measure::jain;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::node::host::HostConfig;
use ctcp_sim::topology::{Chain, Parallel, Topology};
use ctcp_sim::{Scrutiny, Simulation, Stop};

const SECOND: Duration = Duration::from_secs(1);

fn transport(profile: Profile) -> TransportConfig {
    TransportConfig { profile, ..TransportConfig::default() }
}

fn bernoulli(loss: f64) -> LossModel {
    LossModel::Bernoulli(Probability::new(loss).expect("a probability"))
}

fn way(megabits: u64, delay_millis: u64, packets: u64) -> LinkConfig {
    LinkConfig::default()
        .with_rate(Rate::from_megabits_per_second(megabits))
        .with_delay(Duration::from_millis(delay_millis))
        .with_queue(QueueLimit::Packets(packets))
}

fn violations(simulation: &Simulation) -> Vec<&String> {
    simulation.violations().collect()
}

/// Two hosts with a router between them.
///
/// ```text
/// client === router === server
/// ```
struct Routed {
    simulation: Simulation,
    client: ctcp_sim::node::NodeId,
    router: ctcp_sim::node::NodeId,
    server: ctcp_sim::node::NodeId,
    server_key: ctcp_proto::PublicKey,
}

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 1_000);
const SERVER: ([u8; 4], u16) = ([10, 1, 0, 1], 4_433);

fn routed(script: &Script) -> Routed {
    let mut topology = Topology::new(5);
    let script = Arc::new(script.clone());
    let (client_key, server_key) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
    let public = server_key.public_key();
    let mut host = |name: &str, address: ([u8; 4], u16), endpoint| {
        let (name, address) = (name.to_owned(), SocketAddr::from(address));
        topology.host(HostConfig { name, address, endpoint, script: script.clone(), symbolic: None })
    };
    let client = host("client", CLIENT, EndpointConfig::client(client_key));
    let server = host("server", SERVER, EndpointConfig::server(server_key, ClientPolicy::Any));
    let router = topology.router("router");
    let path = PathConfig::symmetric(way(10, 5, 50));
    topology.link("left", client, router, &path);
    topology.link("right", router, server, &path);
    let simulation = topology.build(&TransportConfig::default());
    Routed { simulation, client, router, server, server_key: public }
}

#[test]
fn a_router_forwards_datagrams_with_a_route_and_drops_the_rest() {
    let mut network = routed(&Script::bulk(100_000));
    let simulation = &mut network.simulation;
    let nobody = SocketAddr::from(([10, 9, 9, 9], 4_433));
    simulation
        .connect(network.client, nobody, network.server_key, TransportConfig::default())
        .expect("a valid configuration");
    assert_eq!(simulation.run_for(SECOND, |_| false), Stop::TimeUp);
    let counts = simulation.router(network.router).counts();
    assert!(counts.forwarded == 0 && counts.unroutable > 0, "{counts:?}");
    let other_socket = SocketAddr::from((CLIENT.0, CLIENT.1 + 1));
    simulation.add_address(network.client, other_socket);
    simulation
        .connect(network.client, SERVER.into(), network.server_key, TransportConfig::default())
        .expect("a valid configuration");
    let stop = simulation.run_for(5 * SECOND, |simulation| simulation.ledger().total_read() == 100_000);
    assert_eq!(stop, Stop::Done, "{:?}", violations(simulation));
    assert!(simulation.router(network.router).counts().forwarded > 100);
}

#[test]
fn a_client_that_moves_behind_a_router_is_reached_at_its_new_address() {
    let mut network = routed(&Script::of_client(vec![StreamPlan::download(Duration::ZERO, 2_000_000)]));
    let simulation = &mut network.simulation;
    simulation
        .connect(network.client, SERVER.into(), network.server_key, TransportConfig::default())
        .expect("a valid configuration");
    simulation.run_for(SECOND, |_| false);
    simulation.set_address(network.client, SocketAddr::from(([10, 0, 77, 1], 2_000)));
    let stop = simulation.run_for(10 * SECOND, |simulation| simulation.ledger().total_read() == 2_000_100);
    assert_eq!(stop, Stop::Done, "{:?}", violations(simulation));
    assert_eq!(simulation.host(network.server).stats().migrations, 1);
}

#[test]
fn several_connections_of_one_host_play_their_own_scripts_over_their_own_sockets() {
    let mut network = routed(&Script::default());
    let simulation = &mut network.simulation;
    let sizes = [10_000, 20_000, 30_000, 40_000];
    for (port, size) in (CLIENT.1..).zip(sizes) {
        simulation.add_address(network.client, SocketAddr::from((CLIENT.0, port)));
        let (to, script) = ((SERVER.into(), network.server_key), Arc::new(Script::bulk(size)));
        simulation
            .connect_with(network.client, to, TransportConfig::default(), Some(script))
            .expect("a valid configuration");
    }
    let stop = simulation.run_for(10 * SECOND, |simulation| simulation.ledger().total_read() == 100_000);
    assert_eq!(stop, Stop::Done, "{:?}", violations(simulation));
    let mut read: Vec<u64> =
        simulation.host(network.server).peers().map(|peer| peer.application.bytes_read()).collect();
    read.sort_unstable();
    assert_eq!(read, sizes);
    let locals: Vec<u16> = simulation.host(network.client).peers().map(|peer| peer.local.port()).collect();
    assert_eq!(locals, [1_000, 1_001, 1_002, 1_003]);
}

#[test]
fn two_equal_flows_share_a_dumbbell_equally() {
    let mut dumbbell = Chain::dumbbell(1, &PathConfig::symmetric(way(10, 10, 17)));
    for _ in 0..2 {
        dumbbell.flow(FlowConfig::new(Script::endless(), &transport(Profile::TCP)));
    }
    let mut network = dumbbell.build();
    assert_eq!(network.run_for(60 * SECOND), Stop::TimeUp, "{:?}", violations(&network.simulation));
    let shares = [0, 1].map(|flow| network.bytes_read(flow) as f64 * 8.0 / 60.0 / 10e6);
    assert!(jain(&shares) > 0.95, "{shares:?}");
    assert!(shares[0] + shares[1] > 0.85, "{shares:?}");
}

#[test]
fn a_chain_of_k_hops_with_loss_p_delivers_a_share_of_1_minus_p_to_the_k() {
    for (hops, loss) in [(1, 0.1), (4, 0.05), (6, 0.02)] {
        for place in [LossPlace::BeforeQueue, LossPlace::BehindQueue] {
            let forward = way(20, 2, 100_000).with_loss(bernoulli(loss)).with_loss_place(place);
            let hop = PathConfig { forward, backward: way(20, 2, 100_000) };
            let mut chain = Chain::new(3, &vec![hop; hops]);
            chain.flow(FlowConfig::new(Script::bulk(3_000_000), &transport(Profile::DEFAULT)));
            let mut network = chain.build();
            assert_eq!(network.run_to_completion(60 * SECOND), Stop::Done);
            let stats =
                |hop: usize| network.simulation.link(network.hops()[hop]).way(Direction::Forward).stats();
            let offered = stats(0).offered as f64;
            let share = stats(hops - 1).delivered as f64 / offered;
            let expected = (1.0 - loss).powi(hops as i32);
            let tolerance = 4.0 * (expected * (1.0 - expected) / offered).sqrt();
            assert!((share - expected).abs() < tolerance, "{hops} hops of {loss}: {share} for {expected}");
        }
    }
}

/// A saturated hop of 1 Mbit/s carries 125 packets of 1000 bytes per second, whatever their actual size, including
/// control packets.
#[test]
fn a_link_that_charges_the_papers_sizes_carries_the_papers_packets() {
    let way = way(1, 20, 50).with_charge(Charge::every(1_000));
    let mut chain = Chain::dumbbell(1, &PathConfig::symmetric(way));
    chain.flow(FlowConfig::new(Script::endless(), &transport(Profile::TCP)));
    let mut network = chain.build();
    let delivered = |network: &Network| {
        network.simulation.link(network.hops()[0]).way(Direction::Forward).stats().delivered
    };
    network.run_for(5 * SECOND);
    let before = delivered(&network);
    network.run_for(20 * SECOND);
    assert_eq!(delivered(&network) - before, 2_500);
}

fn busy_network(seed: u64, scrutiny: Scrutiny) -> Network {
    let lossy = PathConfig::symmetric(way(20, 5, 50).with_loss(bernoulli(0.01)));
    let mut chain = Chain::new(seed, &vec![lossy; 3]);
    let profiles = [Profile::DEFAULT, Profile::TCP, Profile::CTCP];
    for flow in 0..20_u32 {
        let (from, to) = [(0, 3), (1, 2), (3, 1), (2, 3)][flow as usize % 4];
        let config = FlowConfig::new(Script::bulk(300_000), &transport(profiles[flow as usize % 3]))
            .starting_after(Duration::from_millis(u64::from(flow % 7) * 100))
            .over(PathConfig::symmetric(way(50, u64::from(flow % 5), 100)));
        chain.flow_between(from, to, config);
    }
    let mut network = chain.build();
    network.simulation.set_scrutiny(scrutiny);
    assert_eq!(network.run_to_completion(60 * SECOND), Stop::Done, "{:?}", violations(&network.simulation));
    network
}

#[test]
fn runs_of_a_large_network_are_equal_for_equal_seeds_only() {
    let [one, same, other] = [1, 1, 2].map(|seed| busy_network(seed, Scrutiny::FULL));
    assert_eq!(one.simulation.recorder().hash(), same.simulation.recorder().hash());
    assert_eq!(one.simulation.events(), same.simulation.events());
    assert_ne!(one.simulation.recorder().hash(), other.simulation.recorder().hash());
}

#[test]
fn fewer_checks_do_not_change_a_run() {
    let without = Scrutiny { contents: true, ..Scrutiny::LIGHT };
    let [close, light] = [Scrutiny::FULL, without].map(|scrutiny| busy_network(4, scrutiny));
    assert_eq!(close.simulation.now(), light.simulation.now());
    assert_eq!(close.simulation.events(), light.simulation.events());
    for flow in 0..close.flows().len() {
        assert_eq!(close.sender_stats(flow), light.sender_stats(flow), "flow {flow}");
    }
    // Light checks also change the contents, and with them the lengths of a few repairs.
    let light = busy_network(4, Scrutiny::LIGHT);
    for flow in 0..close.flows().len() {
        assert_eq!(light.bytes_read(flow), 300_000);
    }
}

#[test]
fn time_series_add_up_to_the_final_statistics_and_do_not_change_the_run() {
    let run = |keep: bool| {
        let hop = PathConfig::symmetric(way(10, 10, 20).with_loss(bernoulli(0.01)));
        let mut chain = Chain::new(1, &[hop.clone(), hop]);
        for start in [Duration::ZERO, Duration::from_millis(2_050)] {
            let config = FlowConfig::new(Script::bulk(2_000_000), &transport(Profile::DEFAULT));
            chain.flow(config.starting_after(start));
        }
        let mut network = chain.build();
        if keep {
            network.keep_series(Duration::from_millis(100));
        }
        assert_eq!(network.run_for(10 * SECOND), Stop::TimeUp);
        network
    };
    let (network, undisturbed) = (run(true), run(false));
    assert_eq!(network.simulation.recorder().hash(), undisturbed.simulation.recorder().hash());
    assert_eq!(network.simulation.events(), undisturbed.simulation.events());
    let series = network.simulation.series().expect("the series is kept");
    assert_eq!(series.bins(), 100);
    for (flow, ends) in network.flows().iter().enumerate() {
        let goodput = series.goodput_mbps(ends.receiver);
        assert_eq!(goodput.len(), 100);
        let bits: f64 = goodput.iter().sum::<f64>() * 1e5;
        assert!((bits - 16e6).abs() < 1.0, "{bits} bits of flow {flow}");
        let decoded: u64 = series.symbols_decoded(ends.receiver).iter().sum();
        assert_eq!(decoded, network.receiver_stats(flow).symbols_decoded);
        let sender = series.connection(ends.sender);
        assert_eq!(
            sender.last().map(|sample| sample.packets_lost),
            Some(network.sender_stats(flow).packets_lost)
        );
        assert!(sender[30].window > 1.0 && sender[30].rtt > Duration::from_millis(40), "{:?}", sender[30]);
    }
    assert_eq!(series.connection(network.flows()[1].sender)[19].window, 0.0, "it has not begun");
    let queue = series.way(network.hops()[0], Direction::Forward);
    assert!(queue.iter().any(|sample| sample.queued > 2) && queue.iter().all(|sample| sample.queued <= 20));
    let stats = network.simulation.link(network.hops()[0]).way(Direction::Forward).stats();
    assert_eq!(queue.last().map(|sample| (sample.dropped, sample.lost)), Some((stats.dropped, stats.lost)));
}

#[test]
fn flows_begin_at_their_time_even_if_nothing_else_happens() {
    let mut chain = Chain::dumbbell(1, &PathConfig::symmetric(way(10, 10, 50)));
    let at = |seconds| {
        FlowConfig::new(Script::bulk(10_000), &transport(Profile::DEFAULT)).starting_after(seconds * SECOND)
    };
    chain.flow(at(300));
    chain.flow(at(100));
    let mut network = chain.build();
    assert_eq!(network.run_for(99 * SECOND), Stop::Silence);
    assert_eq!([0, 1].map(|flow| network.bytes_read(flow)), [0, 0]);
    assert_eq!(network.run_for(101 * SECOND), Stop::TimeUp);
    assert_eq!([0, 1].map(|flow| network.bytes_read(flow)), [0, 10_000]);
    assert_eq!(network.run_to_completion(200 * SECOND), Stop::Done);
    let end = network.simulation.now() - Simulation::START;
    assert!((300 * SECOND..302 * SECOND).contains(&end), "{end:?}");
}

#[test]
fn requests_run_in_sequence_and_a_constant_rate_is_kept() {
    let mut chain = Chain::dumbbell(1, &PathConfig::symmetric(way(10, 10, 50)));
    let requests = Script::requests(10, 100, 1_000, Duration::from_millis(50));
    let requests = chain.flow(FlowConfig::new(requests, &transport(Profile::DEFAULT)));
    let constant = Script::constant_rate(Rate::from_megabits_per_second(1), 1_000, 10 * SECOND);
    let constant = chain.flow(FlowConfig::new(constant, &transport(Profile::DEFAULT)));
    let mut network = chain.build();
    // The handshake, and ten times a pause and a round trip, take 720 ms plus transmission time.
    network.run_for(SECOND * 7 / 10);
    assert!(!network.is_complete(requests));
    network.run_for(SECOND * 43 / 10);
    assert!(network.is_complete(requests) && !network.is_complete(constant));
    let read = network.bytes_read(constant);
    // One round trip for the handshake and half a round trip in transit are missing.
    assert!((614_000..=625_000).contains(&read), "{read} bytes in 5 s");
    assert_eq!(network.run_to_completion(6 * SECOND), Stop::Done);
    assert_eq!(network.bytes_read(constant), 1_250_000);
}

#[test]
fn flows_on_parallel_paths_each_use_their_own_path() {
    let paths = [(10, 5), (2, 40)].map(|(megabits, delay)| PathConfig::symmetric(way(megabits, delay, 50)));
    let mut parallel = Parallel::new(3, &paths);
    let transport = transport(Profile::DEFAULT);
    let flows = [0, 1].map(|path| parallel.flow_over(path, FlowConfig::new(Script::endless(), &transport)));
    let mut network = parallel.build();
    network.run_for(20 * SECOND);
    assert_eq!(violations(&network.simulation), Vec::<&String>::new());
    let got = flows.map(|flow| network.bytes_read(flow) as f64 * 8e-6 / 20.0);
    assert!((8.0..10.0).contains(&got[0]) && (1.5..2.0).contains(&got[1]), "{got:?}");
}

// Requirement: N5
#[test]
fn a_re_encoding_node_before_the_worst_hop_compensates_its_loss() {
    let lossy = |loss| {
        let there = way(1, 20, 200).with_loss(bernoulli(loss)).with_loss_place(LossPlace::BehindQueue);
        PathConfig { forward: there.with_charge(Charge::every(1_000)), backward: way(1, 20, 200) }
    };
    let run = |recodes: bool| {
        let transport = TransportConfig {
            congestion_window_max: 100,
            coding_window: 65_536,
            symbol_window: 65_536,
            ..transport(TCP_NC)
        };
        let mut chain = Chain::new(4, &[lossy(0.0), lossy(0.3)]);
        chain.flow(FlowConfig::new(Script::bulk(200_000), &transport).symbolic());
        if recodes {
            chain.recode_at(1, 0, Ratio::new(1.5).expect("at least 1"));
        }
        let mut network = chain.build();
        let stop = network.run_to_completion(600 * SECOND);
        // Every byte that the sink delivers is compared with the bytes sent.
        assert_eq!((stop, violations(&network.simulation)), (Stop::Done, Vec::new()));
        let made = network.simulation.router(network.routers()[1]).counts().recoded;
        (network.simulation.now() - Simulation::START, made)
    };
    let ((plain, none), (recoded, made)) = (run(false), run(true));
    assert_eq!(none, 0);
    assert!(made > 50 && recoded < plain.mul_f64(0.7), "{plain:?} {recoded:?}, {made} made");
}
