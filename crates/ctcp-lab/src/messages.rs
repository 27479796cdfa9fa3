//! `ctcp-lab messages`: a UDP tunnel that gives each datagram to [`Connection::send_message`] with a deadline of its own. The testbed
//! measures the library with it. The server serves one client, and the client one program.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ctcp::{ClientConfig, ClientPolicy, Connection, Endpoint, PublicKey, SecretKey, ServerConfig};
use ctcp_cli::error::CliError;
use tokio::net::UdpSocket;

/// Space for any UDP datagram.
const DATAGRAM_MAX: usize = 65_536;

#[derive(Debug, Args)]
pub(crate) struct MessagesArgs {
    /// Messages are dropped this many milliseconds after they were sent
    #[arg(long, value_name = "MS", default_value_t = 100)]
    deadline_ms: u64,
    /// Our private key, as `ctcp keygen` writes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The public key of the other side
    #[arg(long, value_name = "KEY")]
    other: PublicKey,
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Send what the client sends to a target, and its answers back
    Server {
        /// Address for clients
        #[arg(long, value_name = "ADDRESS")]
        listen: SocketAddr,
        /// Where datagrams go
        #[arg(long, value_name = "ADDRESS")]
        target: SocketAddr,
    },
    /// Send what the first program sends to the server, and its answers back
    Client {
        /// Address for the program
        #[arg(long, value_name = "ADDRESS")]
        listen: SocketAddr,
        /// Address of the server
        #[arg(long, value_name = "ADDRESS")]
        server: SocketAddr,
    },
}

pub(crate) fn run(args: &MessagesArgs) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failure)?;
    runtime.block_on(carry(args))
}

async fn carry(args: &MessagesArgs) -> Result<(), CliError> {
    let text = std::fs::read_to_string(&args.key).map_err(failure)?;
    let key: SecretKey = text.trim().parse().map_err(failure)?;
    let deadline = Duration::from_millis(args.deadline_ms);
    match args.role {
        Role::Server { listen, target } => {
            let clients = ClientPolicy::Listed(BTreeSet::from([args.other]));
            let endpoint = Endpoint::server(ServerConfig::new(listen, key, clients)).map_err(failure)?;
            while let Some(connection) = endpoint.accept().await {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.map_err(failure)?;
                socket.connect(target).await.map_err(failure)?;
                join(&connection, &socket, deadline).await;
            }
            Ok(())
        }
        Role::Client { listen, server } => {
            let endpoint = Endpoint::client(ClientConfig::new(key)).map_err(failure)?;
            let connection = endpoint.connect(server, args.other).await.map_err(failure)?;
            let socket = UdpSocket::bind(listen).await.map_err(failure)?;
            let (_, program) = socket.peek_from(&mut [0; DATAGRAM_MAX]).await.map_err(failure)?;
            socket.connect(program).await.map_err(failure)?;
            join(&connection, &socket, deadline).await;
            Err(CliError::failure("the connection has ended"))
        }
    }
}

/// Copies both ways until the connection ends.
async fn join(connection: &Connection, socket: &UdpSocket, deadline: Duration) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        tokio::select! {
            // An error reports that nobody listens at the target yet.
            Ok(length) = socket.recv(&mut buffer) => {
                // A message that is not accepted is lost, as a datagram may be.
                let _ = connection.send_message(&buffer[..length], deadline);
            }
            message = connection.receive_message() => {
                let Ok(message) = message else { return };
                let _ = socket.send(&message).await;
            }
        }
    }
}

fn failure(error: impl std::fmt::Display) -> CliError {
    CliError::failure(error.to_string())
}
