//! How connections and endpoints end.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use ctcp::{
    ClientConfig, ClientPolicy, CloseReason, ConnectError, ConnectionError, Endpoint, ServerConfig,
    TransportConfig,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{Pair, client, content, in_time, localhost, server};

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
    assert!(pair.connection.stats().bytes_received > 100_000, "the last statistics stay available");
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
    // The driver stays until it no longer needs to answer late packets of the peer.
    in_time(async {
        while UdpSocket::bind(address).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn clients_in_the_backlog_are_closed_when_the_endpoint_is_dropped() {
    let (server, server_key) = server(TransportConfig::default());
    let client = client(TransportConfig::default());
    let connection = in_time(client.connect(server.local_addr().unwrap(), server_key)).await.unwrap();
    drop(server);
    in_time(connection.closed()).await;
}

#[tokio::test]
async fn a_peer_that_vanishes_ends_in_a_time_out() {
    let mut transport = TransportConfig::default();
    transport.idle_timeout(Duration::from_millis(600));
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
    // The client's runtime ends: no CLOSE is sent, but its handles get an error.
    runtime.shutdown_background();
    in_time(connection.closed()).await;
    assert!(client.connect(address, server_key).await.is_err());
    assert_eq!(in_time(accepted.closed()).await, ConnectionError::TimedOut);
}

#[tokio::test]
async fn an_endpoint_runs_on_a_socket_from_the_caller() {
    let (server_key, client_key) = (ctcp::generate_key().unwrap(), ctcp::generate_key().unwrap());
    let name = server_key.public_key();
    let [server_socket, client_socket] = [(); 2].map(|()| UdpSocket::bind(localhost()).unwrap());
    let (address, from) = (server_socket.local_addr().unwrap(), client_socket.local_addr().unwrap());
    // The address of the configuration is not used: this one could not be bound.
    let elsewhere = "192.0.2.1:1".parse().unwrap();
    let config = ServerConfig::new(elsewhere, server_key, ClientPolicy::Any);
    let server = Endpoint::server_on(config, server_socket).unwrap();
    let client = Endpoint::client_on(ClientConfig::new(client_key), client_socket).unwrap();
    assert_eq!((server.local_addr().unwrap(), client.local_addr().unwrap()), (address, from));
    let (connection, accepted) =
        in_time(async { tokio::join!(client.connect(address, name), server.accept()) }).await;
    let (connection, accepted) = (connection.unwrap(), accepted.unwrap());
    assert_eq!(accepted.remote_address(), from);

    assert_eq!((connection.close_reason(), accepted.close_reason()), (None, None));
    accepted.close(3, "enough");
    in_time(connection.closed()).await;
    assert_eq!(connection.close_reason(), Some(by_peer(3, "enough")));
    assert_eq!(accepted.close_reason(), Some(ConnectionError::ClosedLocally));
}

#[tokio::test]
async fn a_setting_out_of_range_is_an_error() {
    let mut transport = TransportConfig::default();
    transport.datagram_size_max(100);
    let mut config = ClientConfig::new(ctcp::generate_key().unwrap());
    config.bind(localhost()).transport(transport);
    let error = Endpoint::client(config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("datagram_size_max"), "{error}");
}

#[tokio::test]
async fn a_client_taken_off_the_list_loses_its_connection_and_one_added_gets_in() {
    let key = ctcp::generate_key().unwrap();
    let (name, stays, goes) =
        (key.public_key(), ctcp::generate_key().unwrap(), ctcp::generate_key().unwrap());
    let listed =
        |keys: &[&ctcp::SecretKey]| ClientPolicy::Listed(keys.iter().map(|key| key.public_key()).collect());
    let server = Endpoint::server(ServerConfig::new(localhost(), key, listed(&[&goes]))).unwrap();
    let address = server.local_addr().unwrap();
    let endpoint = |key: &ctcp::SecretKey| {
        let mut config = ClientConfig::new(key.clone());
        config.bind(localhost());
        Endpoint::client(config).unwrap()
    };
    let (going, staying) = (endpoint(&goes), endpoint(&stays));
    let gone = in_time(going.connect(address, name)).await.unwrap();
    let gone_here = in_time(server.accept()).await.unwrap();
    assert!(in_time(staying.connect(address, name)).await.is_err());

    server.set_clients(listed(&[&stays]));
    assert_eq!(gone_here.close_reason(), Some(ConnectionError::ClosedLocally));
    let begun = tokio::time::Instant::now();
    let ConnectionError::ClosedByPeer(close) = in_time(gone.closed()).await else { panic!("by the server") };
    assert_eq!(close.reason, "this client's public key is no longer on the server's list");
    assert!(!close.by_application && begun.elapsed() < Duration::from_secs(1));
    assert!(in_time(going.connect(address, name)).await.is_err());
    in_time(staying.connect(address, name)).await.unwrap();
}

/// Elsewhere the loopback interface has one address.
#[cfg(target_os = "linux")]
mod on_linux {
    use std::sync::atomic::Ordering;

    use ctcp::PREFERENCE_OF_FIRST;
    use ctcp_base::Probability;

    use super::*;
    use crate::relay;

    #[tokio::test]
    async fn a_client_says_on_each_path_that_it_ends_even_if_a_socket_is_removed_at_once() {
        let (server, server_key) = server(TransportConfig::default());
        let server_address = server.local_addr().unwrap();
        let (first_address, first) = relay::start(server_address, Probability::ZERO).await;
        let (second_address, second) = relay::start(server_address, Probability::ZERO).await;
        let client = client(TransportConfig::default());
        let connecting = async { tokio::join!(client.connect(first_address, server_key), server.accept()) };
        let (connection, accepted) = in_time(connecting).await;
        let (connection, accepted) = (connection.unwrap(), accepted.unwrap());
        let local = client.add_socket(UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
        connection.add_path(local, second_address, PREFERENCE_OF_FIRST + 1).unwrap();
        in_time(async {
            while connection.paths().iter().filter(|path| path.is_validated).count() < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        first.is_dead.store(true, Ordering::Relaxed);
        connection.close(7, "over");
        client.remove_socket(local);
        assert_eq!(in_time(accepted.closed()).await, by_peer(7, "over"));
        let from = second.client.lock().unwrap().unwrap();
        assert_eq!(from.ip(), local);
        // The client's socket closes, so that the address is free.
        in_time(async {
            while UdpSocket::bind(from).is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}
