//! The memory that a server uses for clients whose readers stop, and whether it returns it.
//!
//! `CTCP_MEMORY_SCALE=KEYS,CONNECTIONS,STREAMS` scales the test: connections of each key, streams of each connection.
//! `CTCP_MEMORY_BUDGET` is in MiB.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use ctcp::{ClientConfig, Connection, Endpoint, PublicKey, TransportConfig};
use ctcp_proxy::request::{Reply, Request};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::setup::{KEY, Remote, Server, ctcp, hello, key};

/// The server's memory budget for its clients, in MiB.
const BUDGET: u64 = 64;

/// The memory of the program without clients, and what the allocator keeps.
const PROGRAM: u64 = 48 << 20;

/// A target that sends endlessly to every client.
fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open: Vec<std::net::TcpStream> = Vec::new();
        listener.set_nonblocking(true).expect("it can");
        let data = vec![7; 16 << 10];
        loop {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).expect("it can");
                open.push(stream);
            }
            open.retain_mut(|stream| {
                !matches!(stream.write(&data), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock)
            });
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    address
}

/// The resident memory of a process without its files (the program itself), in bytes.
pub(crate) fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux says it");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number")
        << 10
}

fn scale() -> [usize; 3] {
    let text = std::env::var("CTCP_MEMORY_SCALE").unwrap_or_else(|_| "4,25,20".to_owned());
    let numbers: Vec<usize> = text.split(',').map(|number| number.parse().expect("numbers")).collect();
    numbers.try_into().expect("three numbers")
}

/// Opens streams to the target and never reads from them; returns how many the server accepted.
async fn stop_readers(connection: &Connection, target: SocketAddr, count: usize) -> usize {
    let mut accepted = 0;
    for _ in 0..count {
        let opened = tokio::time::timeout(Duration::from_secs(1), connection.open()).await;
        let Ok(Ok(mut stream)) = opened else { break };
        let request = Request::Connect(target.to_string().parse().expect("a target"));
        if request.write(&mut stream).await.is_err() {
            break;
        }
        tokio::spawn(async move {
            let _ = Reply::read(&mut stream).await;
            let mut first = [0; 1];
            let _ = stream.read(&mut first).await;
            core::future::pending::<()>().await;
        });
        accepted += 1;
    }
    accepted
}

/// Connects clients with different keys; returns the connections that the server accepted and the number of their
/// streams.
async fn crowd(remote: &Remote, target: SocketAddr) -> (Vec<Endpoint>, Vec<Connection>, usize) {
    let [keys, connections, streams] = scale();
    let address: SocketAddr = remote.address.parse().expect("an address");
    let key: PublicKey = remote.key.parse().expect("a key");
    let (mut endpoints, mut open, mut readers) = (Vec::new(), Vec::new(), 0);
    for _ in 0..keys {
        let mut config = ClientConfig::new(ctcp::generate_key().expect("entropy"));
        config.bind("127.0.0.1:0".parse().expect("an address"));
        // Small credit, because this side needs memory too.
        let mut transport = TransportConfig::default();
        transport.stream_credit(16 << 10, 16 << 10).connection_credit(256 << 10, 256 << 10);
        config.transport(transport);
        let endpoint = Endpoint::client(config).expect("a socket");
        for _ in 0..connections {
            match endpoint.connect(address, key).await {
                Ok(connection) => {
                    readers += stop_readers(&connection, target, streams).await;
                    open.push(connection);
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("memory") || text.contains("connections"), "{text}");
                    break;
                }
            }
        }
        endpoints.push(endpoint);
    }
    (endpoints, open, readers)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test waits for a process")]
fn a_server_stays_within_its_memory_budget_and_returns_memory() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let budget = std::env::var("CTCP_MEMORY_BUDGET").map_or(BUDGET, |text| text.parse().expect("MiB"));
    let memory = format!("{budget}mib");
    let words = ["server", "-q", "--listen", "127.0.0.1:0", "--key", "server.key", "--any-client"];
    let more = ["--memory", &memory, "--allow-target", "127.0.0.0/8"];
    let running = crate::setup::Running::start(ctcp(at, &[&words[..], &more].concat()));
    let (running, remote) = Server::announced(running);
    let target = endless();
    let before = resident(running.id());

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (endpoints, open, readers) = runtime.block_on(crowd(&remote, target));
    std::thread::sleep(Duration::from_secs(3));
    let full = resident(running.id());
    println!(
        "{} connections with {readers} stopped readers: {} MB before, {} MB with them",
        open.len(),
        before >> 20,
        full >> 20
    );
    assert!(open.len() >= 4, "{} connections", open.len());
    assert!(full <= (budget << 20) + PROGRAM, "{full} bytes");

    // Another client is served in the meantime.
    key(at, KEY);
    let web = hello().to_string();
    let begun = Instant::now();
    let output = ctcp(at, &remote.words("connect", KEY, &[&web])).output().expect("it starts");
    assert_eq!(output.stdout, b"hello", "{}", String::from_utf8_lossy(&output.stderr));
    println!("a new client is served in {:?}", begun.elapsed());

    runtime.block_on(async {
        for endpoint in &endpoints {
            endpoint.close(0, "").await;
        }
    });
    drop((open, endpoints));
    drop(runtime);
    let deadline = Instant::now() + Duration::from_secs(40);
    let mut after = resident(running.id());
    while after > before + (6 << 20) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
        after = resident(running.id());
    }
    let files = std::fs::read_dir(format!("/proc/{}/fd", running.id())).expect("it runs").count();
    println!("{} MB afterwards, {files} files open", after >> 20);
    assert!(after <= before + (6 << 20), "{after} bytes are kept of {full}");
}
