//! The memory that a relay uses for many clients, and whether it returns it.
//!
//! `CTCP_RELAY_SCALE=KEYS,WAYS` scales the test: how many clients there are, and how many connections each has carried.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ctcp::{ClientConfig, ClientPolicy, Connection, Endpoint, HopRepair, PublicKey, SecretKey, ServerConfig};
use ctcp_proxy::request::{Carry, Granted, Reply, Request, Stop};
use tempfile::TempDir;

use crate::memory::resident;
use crate::setup::{Running, ctcp, key};

/// Bytes of memory for a way that is open and idle.
const IDLE: u64 = 160 << 10;

/// What the allocator may keep.
const KEPT: u64 = 16 << 20;

fn scale() -> [usize; 2] {
    let text = std::env::var("CTCP_RELAY_SCALE").unwrap_or_else(|_| "4,25".to_owned());
    let numbers: Vec<usize> = text.split(',').map(|number| number.parse().expect("numbers")).collect();
    numbers.try_into().expect("two numbers")
}

/// A server that lets relays carry, and accepts what they carry.
async fn serve(endpoint: Endpoint) {
    let mut kept = Vec::new();
    while let Some(connection) = endpoint.accept().await {
        kept.push(connection.clone());
        tokio::spawn(async move {
            let Ok(mut stream) = connection.accept().await else { return };
            if let Ok(Request::Carry(carry)) = Request::read(&mut stream).await {
                connection.carry(carry.repair).expect("it can");
                Carry::reply(Granted::Repair(HopRepair::default())).write(&mut stream).await.expect("open");
            }
            connection.closed().await;
        });
    }
}

/// Opens a way through the relay, and a connection over it.
async fn board(
    endpoint: &Endpoint,
    relay: (SocketAddr, PublicKey),
    server: &Stop,
) -> (Connection, Connection) {
    let hop = endpoint.connect(relay.0, relay.1).await.expect("the relay is there");
    let mut stream = hop.open().await.expect("a stream");
    let carry = Carry { repair: HopRepair::default(), stops: vec![server.clone()] };
    Request::Carry(carry).write(&mut stream).await.expect("open");
    let reply = Reply::read(&mut stream).await.expect("an answer");
    assert!(reply.is_success(), "{reply}");
    // The way lasts as long as the stream.
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    });
    let address = hop.carry(HopRepair::default()).expect("it can");
    let carried = endpoint.connect(address, server.key).await.expect("the server is behind it");
    (hop, carried)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test waits for a process")]
fn a_relay_needs_little_memory_for_each_client_and_returns_it() {
    let [keys, ways] = scale();
    let directory = TempDir::new().expect("a directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let loopback: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let relay_key = key(directory.path(), "relay.key").parse().expect("a key");
    let mut config = ServerConfig::new(loopback, SecretKey::from_bytes([7; 32]), ClientPolicy::Any);
    config.relays([relay_key]);
    let server = Endpoint::server(config).expect("a socket");
    let address = server.local_addr().expect("an address");
    let stop: Stop =
        format!("{address}={}", SecretKey::from_bytes([7; 32]).public_key()).parse().expect("a stop");
    runtime.spawn(serve(server));

    let clients: Vec<SecretKey> = (0..keys).map(|_| ctcp::generate_key().expect("entropy")).collect();
    let listed: Vec<String> = clients.iter().map(|key| key.public_key().to_string()).collect();
    let to = stop.to_string();
    let mut words = vec!["relay", "-q", "--listen", "127.0.0.1:0", "--key", "relay.key", "--to", &to];
    words.extend(listed.iter().flat_map(|key| ["--client", key]));
    let relay = Running::start(ctcp(directory.path(), &words));
    relay.line();
    let line = relay.line();
    let (_, way) = line.split_once("--via ").expect("the relay says how to use it");
    let way: Stop = way.parse().expect("a stop");
    let at = (way.address.to_string().parse().expect("an address"), way.key);

    let before = resident(relay.id());
    let (endpoints, open) = runtime.block_on(async {
        let (mut endpoints, mut open) = (Vec::new(), Vec::new());
        for key in clients {
            let mut config = ClientConfig::new(key);
            config.bind(loopback);
            let endpoint = Endpoint::client(config).expect("a socket");
            for _ in 0..ways {
                open.push(board(&endpoint, at, &stop).await);
            }
            endpoints.push(endpoint);
        }
        (endpoints, open)
    });
    std::thread::sleep(Duration::from_secs(1));
    let full = resident(relay.id());
    let each = full.saturating_sub(before) / open.len() as u64;
    println!(
        "{} ways: {} MB before, {} MB with them, {} KB each",
        open.len(),
        before >> 20,
        full >> 20,
        each >> 10
    );
    assert!(each < IDLE, "{each} bytes each");
    assert!(open.iter().all(|(_, carried)| !carried.is_closed()));

    drop(open);
    runtime.block_on(async {
        for endpoint in &endpoints {
            endpoint.close(0, "").await;
        }
    });
    let deadline = Instant::now() + Duration::from_secs(40);
    while resident(relay.id()) > before + KEPT && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
    }
    let after = resident(relay.id());
    println!("{} MB afterwards", after >> 20);
    assert!(after <= before + KEPT, "{after} bytes are kept of {full}");
}
