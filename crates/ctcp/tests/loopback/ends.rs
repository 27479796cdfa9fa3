//! How connections and endpoints end.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use ctcp::{CloseReason, ConnectError, ConnectionError, TransportConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{Pair, client, content, in_time, server};

fn by_peer(code: u64, reason: &str) -> ConnectionError {
    ConnectionError::ClosedByPeer(CloseReason { by_application: true, code, reason: reason.to_owned() })
}

#[tokio::test]
async fn the_server_closes_and_the_client_learns_why() {
    let pair = Pair::new().await;
    let (mut opened, _accepted) = pair.stream().await;
    let waiting = async {
        let error = opened.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        error.get_ref().and_then(|inner| inner.downcast_ref::<ConnectionError>()).cloned()
    };
    let close = async { pair.accepted.close(5, "maintenance") };
    let (seen, ()) = in_time(async { tokio::join!(waiting, close) }).await;
    assert_eq!(seen, Some(by_peer(5, "maintenance")));
    assert_eq!(in_time(pair.connection.closed()).await, by_peer(5, "maintenance"));
    assert!(pair.connection.is_closed());
    assert_eq!(in_time(pair.connection.open()).await.unwrap_err(), by_peer(5, "maintenance"));
    assert_eq!(in_time(pair.connection.accept()).await.unwrap_err(), by_peer(5, "maintenance"));
    assert_eq!(in_time(pair.accepted.closed()).await, ConnectionError::ClosedLocally);
}

#[tokio::test]
async fn what_arrived_before_the_close_can_still_be_read() {
    let pair = Pair::new().await;
    let (mut opened, mut accepted) = pair.stream().await;
    let bytes = content(1, 100_000);
    let close = async {
        accepted.write_all(&bytes).await.unwrap();
        accepted.finish().unwrap();
        accepted.finished().await.unwrap();
        pair.server.close(0, "done").await;
    };
    in_time(close).await;
    in_time(pair.connection.closed()).await;
    let mut read = Vec::new();
    in_time(opened.read_to_end(&mut read)).await.unwrap();
    assert!(read == bytes);
    assert!(opened.write(b"late").await.is_err());
    assert!(pair.connection.stats().bytes_received > 100_000, "the last figures stay");
}

#[tokio::test]
async fn closing_an_endpoint_closes_all_and_refuses_more() {
    let pair = Pair::new().await;
    in_time(pair.server.close(3, "bye")).await;
    assert_eq!(in_time(pair.connection.closed()).await, by_peer(3, "bye"));
    assert!(pair.server.accept().await.is_none());

    in_time(pair.client.close(0, "")).await;
    let name = pair.accepted.peer_key();
    let error = pair.client.connect(pair.server.local_addr().unwrap(), name).await.unwrap_err();
    assert_eq!(error, ConnectError::EndpointClosed);
}

#[tokio::test]
async fn dropping_the_last_handle_of_a_connection_closes_it() {
    let pair = Pair::new().await;
    let Pair { server: _server, client: _client, accepted, connection } = pair;
    let (opened, clone) = (connection.open().await.unwrap(), connection.clone());
    drop((connection, clone));
    assert!(tokio::time::timeout(Duration::from_millis(100), accepted.closed()).await.is_err());
    drop(opened);
    assert_eq!(in_time(accepted.closed()).await, by_peer(0, ""));
}

#[tokio::test]
async fn dropping_everything_frees_the_socket() {
    let pair = Pair::new().await;
    let address = pair.client.local_addr().unwrap();
    assert!(UdpSocket::bind(address).is_err(), "it is in use");
    let Pair { server, client, accepted, connection } = pair;
    drop(client);
    let mut stream = connection.open().await.unwrap();
    stream.write_all(b"connections outlive the endpoint's handle").await.unwrap();
    in_time(accepted.accept()).await.unwrap();
    drop((connection, stream));
    in_time(accepted.closed()).await;
    // The driver stays until late packets of the peer can be answered no more.
    in_time(async {
        while UdpSocket::bind(address).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn clients_that_nobody_accepts_are_let_go_with_the_endpoint() {
    let (server, server_key) = server(TransportConfig::default());
    let client = client(TransportConfig::default());
    let connection = in_time(client.connect(server.local_addr().unwrap(), server_key)).await.unwrap();
    drop(server);
    in_time(connection.closed()).await;
}

#[tokio::test]
async fn a_peer_that_vanishes_ends_in_a_time_out() {
    let transport =
        TransportConfig { idle_timeout: Duration::from_millis(600), ..TransportConfig::default() };
    let (server, server_key) = server(transport.clone());
    let address = server.local_addr().unwrap();
    let (_vanishing, vanished) = tokio::sync::oneshot::channel::<()>();
    drop(vanished);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connection = runtime.spawn(async move {
        let client = client(transport);
        let connection = client.connect(address, server_key).await.unwrap();
        (client, connection)
    });
    let accepted = in_time(server.accept()).await.unwrap();
    let (client, connection) = in_time(connection).await.unwrap();
    // The runtime of the client dies: no CLOSE is sent, and its handles know.
    runtime.shutdown_background();
    in_time(connection.closed()).await;
    assert!(client.connect(address, server_key).await.is_err());
    assert_eq!(in_time(accepted.closed()).await, ConnectionError::TimedOut);
}
