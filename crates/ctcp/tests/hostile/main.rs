//! How much a client with a valid key that breaks all conventions disturbs other clients, over real sockets of this
//! machine and in real time.
//!
//! `cargo test --release -p ctcp --test hostile -- --nocapture --test-threads 1` prints the figures.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed unwrap fails the test; it prints its measurements"
)]

mod attacker;
mod costs;

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attacker::{Attack, Attacker};
use ctcp::{ClientConfig, ClientPolicy, Connection, ConnectionError, Endpoint, PublicKey, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// The rate of the download in bytes a second: 25 Mbit/s.
const RATE: usize = 25_000_000 / 8;

/// How long an undisturbed download takes.
const DOWNLOAD: Duration = Duration::from_secs(2);

/// How long the attack has run when the download starts.
const HEAD_START: Duration = Duration::from_millis(1_500);

/// Bytes of a download without a rate limit.
const FAST: usize = 64 << 20;

fn localhost() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Returns a server, its key, and the number of connections it has closed for a fault of the peer.
fn server() -> (Endpoint, PublicKey, Arc<AtomicUsize>) {
    let key = ctcp::generate_key().unwrap();
    let public = key.public_key();
    let server = Endpoint::server(ServerConfig::new(localhost(), key, ClientPolicy::Any)).unwrap();
    let (accepting, faults) = (server.clone(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&faults);
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                serve(&connection).await;
                let is_fault = matches!(connection.closed().await, ConnectionError::PeerFault(_));
                counted.fetch_add(usize::from(is_fault), Ordering::Relaxed);
            });
        }
    });
    (server, public, faults)
}

/// Serves streams: each requests a number of bytes and a rate in bytes per second; zero means as fast as possible.
async fn serve(connection: &Connection) -> Option<()> {
    loop {
        let mut stream = connection.accept().await.ok()?;
        tokio::spawn(async move {
            let size = stream.read_u32().await.ok()? as usize;
            let rate = stream.read_u32().await.ok()?;
            let (begun, mut sent) = (Instant::now(), 0);
            let chunk = [7; 16 << 10];
            while sent < size {
                let length = chunk.len().min(size - sent);
                stream.write_all(&chunk[..length]).await.ok()?;
                sent += length;
                if rate > 0 {
                    let due = begun + Duration::from_secs_f64(sent as f64 / f64::from(rate));
                    tokio::time::sleep_until(due).await;
                }
            }
            stream.finish().ok()
        });
    }
}

/// How long an honest client waits for its bytes.
async fn download(server: SocketAddr, key: PublicKey, size: usize, rate: usize) -> Duration {
    let mut config = ClientConfig::new(ctcp::generate_key().unwrap());
    config.bind(localhost());
    let client = Endpoint::client(config).unwrap();
    let connection = client.connect(server, key).await.unwrap();
    let begun = Instant::now();
    let mut stream = connection.open().await.unwrap();
    stream.write_u32(size as u32).await.unwrap();
    stream.write_u32(rate as u32).await.unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut received = 0;
    while received < size {
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(length > 0, "the stream ends after {received} bytes");
        received += length;
    }
    begun.elapsed()
}

struct Figures {
    paced: Duration,
    fast: Duration,
}

async fn measure(attack: Option<Attack>) -> Figures {
    let (server, key, faults) = server();
    let address = server.local_addr().unwrap();
    let attacker = attack.map(|attack| Attacker::start(address, key, 77, attack));
    tokio::time::sleep(HEAD_START).await;
    let size = RATE * DOWNLOAD.as_secs() as usize;
    let paced = download(address, key, size, RATE).await;
    let fast = download(address, key, FAST, 0).await;
    if let Some(attacker) = &attacker {
        let before = attacker.packets();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(attacker.packets() > before, "the attack runs until the end");
    }
    assert_eq!(faults.load(Ordering::Relaxed), 0, "the attack stays within the rules of the wire");
    Figures { paced, fast }
}

fn check(name: &str, attack: Attack) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (quiet, attacked) = runtime.block_on(async { (measure(None).await, measure(Some(attack)).await) });
    let slower = attacked.paced.as_secs_f64() / quiet.paced.as_secs_f64() - 1.0;
    let megabits = |time: Duration| FAST as f64 * 8e-6 / time.as_secs_f64();
    println!(
        "{name}: 25 Mbit/s in {:.3} s, attacked {:.3} s ({:+.1} %); unlimited {:.0} Mbit/s, attacked {:.0}",
        quiet.paced.as_secs_f64(),
        attacked.paced.as_secs_f64(),
        slower * 100.0,
        megabits(quiet.fast),
        megabits(attacked.fast),
    );
    assert!(slower < 0.05, "{name}: the download takes {:.1} % longer", slower * 100.0);
}

#[test]
fn reports_about_crafted_rows_slow_no_other_client() {
    check("reports", attacker::reports);
}

#[test]
fn combinations_of_all_missing_symbols_slow_no_other_client() {
    check("eliminations", attacker::eliminations);
}

#[test]
fn symbols_beyond_all_rows_slow_no_other_client() {
    check("tails", attacker::tails);
}

#[test]
fn blocks_sent_only_as_combinations_slow_no_other_client() {
    check("solutions", attacker::solutions);
}
