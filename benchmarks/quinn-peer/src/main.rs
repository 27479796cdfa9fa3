//! A tunnel over QUIC: one persistent connection with a stream for each TCP connection, or with `--udp` an unreliable
//! datagram (RFC 9221) for each UDP datagram.
//!
//! ```text
//! quinn-peer server --listen ADDR --target ADDR --congestion cubic|bbr --certificate FILE [--udp]
//! quinn-peer client --listen ADDR --server ADDR --congestion cubic|bbr --certificate FILE [--udp]
//! quinn-peer --version
//! ```
//!
//! The server creates a certificate and writes it into the file, which the client trusts. Apart from the flow control
//! windows all settings are defaults, so that the congestion control decides.

#![deny(unsafe_code)]

mod datagrams;
mod options;
mod tunnel;

use std::error::Error;
use std::process::ExitCode;

use options::{Options, Role};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["--version"] {
        println!("quinn {}", quinn_version());
        return Ok(());
    }
    let options = Options::parse(&words)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match options.role {
        Role::Server { target } if options.is_udp => runtime.block_on(datagrams::serve(&options, target)),
        Role::Client { server } if options.is_udp => runtime.block_on(datagrams::forward(&options, server)),
        Role::Server { target } => runtime.block_on(tunnel::serve(&options, target)),
        Role::Client { server } => runtime.block_on(tunnel::forward(&options, server)),
    }
}

/// The version that this program was built with.
fn quinn_version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains("name = \"quinn\"\n"));
    entry.and_then(|entry| entry.split("version = \"").nth(1)?.split('"').next()).unwrap_or("unknown")
}
