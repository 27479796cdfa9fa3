//! Helpers that the tests share.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ctcp::{
    ClientConfig, ClientPolicy, Connection, Endpoint, PublicKey, ServerConfig, Stream, TransportConfig,
};
use ctcp_base::Prng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A test that takes longer is considered stuck.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn localhost() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("no result in time")
}

/// A server that accepts any client, and its public key.
pub(crate) fn server(transport: TransportConfig) -> (Endpoint, PublicKey) {
    let key = ctcp::generate_key().unwrap();
    let public = key.public_key();
    let mut config = ServerConfig::new(localhost(), key, ClientPolicy::Any);
    config.transport(transport);
    (Endpoint::server(config).unwrap(), public)
}

pub(crate) fn client(transport: TransportConfig) -> Endpoint {
    let key = ctcp::generate_key().unwrap();
    let mut config = ClientConfig::new(key);
    config.bind(localhost()).transport(transport);
    Endpoint::client(config).unwrap()
}

/// Two endpoints and the connection between them.
pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    /// The server's end.
    pub(crate) accepted: Connection,
    /// The client's end.
    pub(crate) connection: Connection,
}

impl Pair {
    pub(crate) async fn new() -> Self {
        Self::with(TransportConfig::default()).await
    }

    pub(crate) async fn with(transport: TransportConfig) -> Self {
        let (server, server_key) = server(transport.clone());
        let client = client(transport);
        let address = server.local_addr().unwrap();
        let (connection, accepted) =
            in_time(async { tokio::join!(client.connect(address, server_key), server.accept()) }).await;
        Self { server, client, accepted: accepted.unwrap(), connection: connection.unwrap() }
    }

    /// Opens a stream and sends a first byte so that the server sees it. Returns both ends.
    pub(crate) async fn stream(&self) -> (Stream, Stream) {
        in_time(async {
            let mut opened = self.connection.open().await.unwrap();
            opened.write_all(b"!").await.unwrap();
            let mut accepted = self.accepted.accept().await.unwrap();
            assert_eq!(accepted.read_u8().await.unwrap(), b'!');
            (opened, accepted)
        })
        .await
    }
}

/// Returns pseudo-random bytes from a seed.
pub(crate) fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut prng = Prng::new(seed);
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Echoes every stream of the connection until it is closed.
pub(crate) async fn echo(connection: Connection) {
    while let Ok(stream) = connection.accept().await {
        tokio::spawn(async move {
            let (mut recv, mut send) = stream.into_split();
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish().unwrap();
            let _ = send.finished().await;
        });
    }
}

/// Sends `bytes` on a new stream, reads the echo and compares.
pub(crate) async fn check_echo(connection: &Connection, bytes: &[u8]) {
    let (mut recv, mut send) = connection.open().await.unwrap().into_split();
    let write = async {
        send.write_all(bytes).await.unwrap();
        send.finish().unwrap();
    };
    let mut answer = Vec::new();
    let (_, read) = tokio::join!(write, recv.read_to_end(&mut answer));
    read.unwrap();
    assert!(answer == bytes, "the content differs: {} bytes for {}", answer.len(), bytes.len());
}
