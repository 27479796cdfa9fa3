//! A UDP tunnel with Reed-Solomon parity for fixed groups of datagrams. It is a model of how tunnels with such a code are
//! set (`-f 10:3 --mode 1 --timeout 8` of UDPspeeder, the shards of kcptun), neither of those programs: nothing is
//! encrypted or sent again.
//!
//! ```text
//! fec-peer server --listen ADDR --target ADDR --data 10 --parity 3 --flush-ms 8
//! fec-peer client --listen ADDR --server ADDR --data 10 --parity 3 --flush-ms 8
//! fec-peer --version
//! ```
//!
//! A datagram is sent at once. A group ends with its last datagram or a time after its first one; then its parity
//! follows, which is as much for a group that is not full, as in UDPspeeder.

#![deny(unsafe_code)]

mod group;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use group::{Decoder, Encoder};

type Failure = Box<dyn Error + Send + Sync>;

/// Space for a packet of the testbed.
const PACKET_MAX: usize = 2_048;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fec-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["--version"] {
        println!("fec-peer {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tunnel(&words))
}

async fn tunnel(words: &[String]) -> Result<(), Failure> {
    let value = |name: &str| {
        let place = words.iter().position(|word| word == name);
        place.and_then(|place| words.get(place + 1)).ok_or_else(|| format!("`{name}` is missing"))
    };
    let listen: SocketAddr = value("--listen")?.parse()?;
    let encoder = Encoder::new(value("--data")?.parse()?, value("--parity")?.parse()?);
    let flush = Duration::from_millis(value("--flush-ms")?.parse()?);
    let (listening, connected) =
        (UdpSocket::bind(listen).await?, UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?);
    let (program, link) = match words.first().map(String::as_str) {
        Some("server") => {
            connected.connect(value("--target")?.parse::<SocketAddr>()?).await?;
            (connected, listening)
        }
        Some("client") => {
            connected.connect(value("--server")?.parse::<SocketAddr>()?).await?;
            (listening, connected)
        }
        _ => return Err("the first word is `server` or `client`".into()),
    };
    Tunnel { program: Side::new(program), link: Side::new(link), encoder, decoder: Decoder::default(), flush }
        .run()
        .await
}

/// A socket, and where it sends to: the last address that it heard from.
struct Side {
    socket: UdpSocket,
    other: Option<SocketAddr>,
}

impl Side {
    fn new(socket: UdpSocket) -> Self {
        let other = socket.peer_addr().ok();
        Self { socket, other }
    }

    /// Sends a packet. One that cannot be sent is lost, as it may be with UDP.
    async fn send(&self, packet: &[u8]) {
        let Some(other) = self.other else { return };
        let _ = match self.socket.peer_addr() {
            Ok(_) => self.socket.send(packet).await,
            Err(_) => self.socket.send_to(packet, other).await,
        };
    }
}

struct Tunnel {
    program: Side,
    link: Side,
    encoder: Encoder,
    decoder: Decoder,
    flush: Duration,
}

impl Tunnel {
    async fn run(mut self) -> Result<(), Failure> {
        let (mut from_program, mut from_link) = ([0; PACKET_MAX], [0; PACKET_MAX]);
        let mut due: Option<Instant> = None;
        loop {
            let flush = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
            tokio::select! {
                received = self.program.socket.recv_from(&mut from_program) => {
                    // An error reports that nobody listens at the target yet.
                    let Ok((length, from)) = received else { continue };
                    self.program.other = Some(from);
                    let packet = self.encoder.encode(&from_program[..length]);
                    self.link.send(&packet).await;
                    due = due.or(Some(Instant::now() + self.flush));
                    if self.encoder.is_full() {
                        self.end_group().await;
                        due = None;
                    }
                }
                received = self.link.socket.recv_from(&mut from_link) => {
                    let Ok((length, from)) = received else { continue };
                    self.link.other = Some(from);
                    for datagram in self.decoder.decode(&from_link[..length]) {
                        self.program.send(&datagram).await;
                    }
                }
                () = sleep_until(flush) => {
                    self.end_group().await;
                    due = None;
                }
            }
        }
    }

    async fn end_group(&mut self) {
        for packet in self.encoder.end_group() {
            self.link.send(&packet).await;
        }
    }
}
