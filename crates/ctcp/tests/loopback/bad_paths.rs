//! How connections survive the faults of networks: loss, silence, new addresses, restarted servers.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ctcp::{ClientPolicy, Connection, ConnectionError, Endpoint, ServerConfig, TransportConfig};
use ctcp_base::Probability;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::relay::{self, Path};
use super::setup::{check_echo, client, content, echo, in_time, localhost, server};

const LOSSLESS: Probability = Probability::ZERO;

/// A connection through a relay to a server that echoes, with both of its ends.
async fn echo_through(loss: Probability) -> (Endpoint, Connection, Connection, std::sync::Arc<Path>) {
    let (server, server_key) = server(TransportConfig::default());
    let (address, path) = relay::start(server.local_addr().unwrap(), loss).await;
    let client = client(TransportConfig::default());
    let (connection, accepted) =
        in_time(async { tokio::join!(client.connect(address, server_key), server.accept()) }).await;
    let accepted = accepted.unwrap();
    tokio::spawn(echo(accepted.clone()));
    (client, connection.unwrap(), accepted, path)
}

/// Waits until the path has carried this many datagrams.
async fn until_carried(path: &Path, number: usize) {
    while path.carried.load(Ordering::Relaxed) < number {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn lost_datagrams_are_repaired() {
    let loss = Probability::new(0.1).unwrap();
    let (_client, connection, _accepted, _path) = echo_through(loss).await;
    in_time(check_echo(&connection, &content(1, 2 << 20))).await;
    assert!(connection.stats().packets_lost > 0, "the path loses datagrams");
}

#[tokio::test]
async fn a_transfer_survives_a_dead_path() {
    let (_client, connection, _accepted, path) = echo_through(LOSSLESS).await;
    let bytes = content(2, 2 << 20);
    let outage = async {
        until_carried(&path, 500).await;
        path.is_dead.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        path.is_dead.store(false, Ordering::Relaxed);
    };
    in_time(async { tokio::join!(check_echo(&connection, &bytes), outage) }).await;
}

#[tokio::test]
async fn a_transfer_survives_a_new_address_that_the_client_does_not_know_of() {
    let (_client, connection, accepted, path) = echo_through(LOSSLESS).await;
    let before = accepted.remote_address();
    let bytes = content(3, 2 << 20);
    let change = async {
        until_carried(&path, 500).await;
        path.moves.store(true, Ordering::Relaxed);
    };
    in_time(async { tokio::join!(check_echo(&connection, &bytes), change) }).await;
    assert_ne!(accepted.remote_address(), before);
}

/// A download during which the client moves to the address `to`, although it has nothing to send itself.
async fn download_while_moving(to: SocketAddr) {
    // The server's socket must reach more than one address of this machine.
    let key = ctcp::generate_key().unwrap();
    let name = key.public_key();
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let server = Endpoint::server(ServerConfig::new(any, key, ClientPolicy::Any)).unwrap();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.local_addr().unwrap().port());
    let client = client(TransportConfig::default());
    let (connection, accepted) =
        in_time(async { tokio::join!(client.connect(address, name), server.accept()) }).await;
    let (connection, accepted) = (connection.unwrap(), accepted.unwrap());
    let bytes = content(4, 4 << 20);
    let mut stream = in_time(connection.open()).await.unwrap();
    stream.finish().unwrap();
    let serve = async {
        let mut stream = accepted.accept().await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        stream.finish().unwrap();
    };
    let download = async {
        let mut read = vec![0; 1 << 20];
        stream.read_exact(&mut read).await.unwrap();
        client.rebind(to).unwrap();
        stream.read_to_end(&mut read).await.unwrap();
        read
    };
    let ((), read) = in_time(async { tokio::join!(serve, download) }).await;
    assert!(read == bytes);
    assert_eq!(accepted.remote_address(), client.local_addr().unwrap());
}

#[tokio::test]
async fn a_download_survives_a_new_port() {
    download_while_moving(localhost()).await;
}

#[tokio::test]
async fn a_download_survives_a_new_host() {
    let other = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), 0);
    if UdpSocket::bind(other).is_ok() {
        download_while_moving(other).await;
    }
}

#[tokio::test]
async fn a_restarted_server_is_distinguished_from_a_dead_path() {
    let key = ctcp::generate_key().unwrap();
    let name = key.public_key();
    let config = |listen| ServerConfig::new(listen, key.clone(), ClientPolicy::Any);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let old = {
        let _guard = runtime.enter();
        Endpoint::server(config(localhost())).unwrap()
    };
    let address = old.local_addr().unwrap();
    let client = client(TransportConfig::default());
    let connection = in_time(client.connect(address, name)).await.unwrap();
    let mut stream = in_time(connection.open()).await.unwrap();
    stream.write_all(b"hello").await.unwrap();

    // The old server dies without closing its connections, and another one with the same key takes its place.
    runtime.shutdown_background();
    let new = in_time(async {
        loop {
            match Endpoint::server(config(address)) {
                Ok(server) => break server,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    stream.write_all(b"are you there?").await.unwrap();
    let error = in_time(connection.closed()).await;
    assert_eq!(error, ConnectionError::Reset);
    let (again, _) = in_time(async { tokio::join!(client.connect(address, name), new.accept()) }).await;
    again.unwrap();
}
