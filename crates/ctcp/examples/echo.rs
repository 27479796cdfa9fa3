//! A server and a client in one process: keys, a connection, a stream, an echo.
//!
//! Run it with `cargo run -p ctcp --example echo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeSet;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use ctcp::{ClientConfig, ClientPolicy, Connection, Endpoint, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Each side has a private key and knows the public key of the other.
    let (server_key, client_key) = (ctcp::generate_key()?, ctcp::generate_key()?);
    let server_name = server_key.public_key();
    let clients = ClientPolicy::Listed(BTreeSet::from([client_key.public_key()]));

    // Port 0 lets the system choose a port.
    let any_port = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let server = Endpoint::server(ServerConfig::new(any_port, server_key, clients))?;
    let server_address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });

    let client = Endpoint::client(ClientConfig::new(client_key))?;
    let connection = client.connect(server_address, server_name).await?;

    let mut stream = connection.open().await?;
    stream.write_all(b"hello over coded packets").await?;
    stream.finish()?; // Closes our direction only; the server can still send.

    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");

    client.close(0, "done").await;
    Ok(())
}

/// Echoes every stream of the connection.
async fn echo(connection: Connection) {
    while let Ok(stream) = connection.accept().await {
        tokio::spawn(async move {
            let (mut recv, mut send) = stream.into_split();
            tokio::io::copy(&mut recv, &mut send).await?;
            send.finish()?;
            std::io::Result::Ok(())
        });
    }
}
