//! Which clients get a connection, and which errors the others get.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use ctcp::{
    ClientConfig, ClientPolicy, ConnectError, ConnectionError, Endpoint, ServerConfig, TransportConfig,
};

use super::setup::{client, in_time, localhost, server};

fn impatient() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.handshake_timeout(Duration::from_millis(500));
    transport
}

#[tokio::test]
async fn each_side_knows_the_key_of_the_other() {
    let (server_key, client_key) = (ctcp::generate_key().unwrap(), ctcp::generate_key().unwrap());
    let (server_name, client_name) = (server_key.public_key(), client_key.public_key());
    let clients = ClientPolicy::Listed(BTreeSet::from([client_name]));
    let server = Endpoint::server(ServerConfig::new(localhost(), server_key, clients)).unwrap();
    // Without a local address the system chooses, for both families if there are two.
    let client = Endpoint::client(ClientConfig::new(client_key)).unwrap();
    let address = server.local_addr().unwrap();
    let (connection, accepted) =
        in_time(async { tokio::join!(client.connect(address, server_name), server.accept()) }).await;
    let (connection, accepted) = (connection.unwrap(), accepted.unwrap());
    assert_eq!((connection.peer_key(), accepted.peer_key()), (server_name, client_name));
    assert_eq!(connection.remote_address(), address);
    assert_eq!(accepted.remote_address().port(), client.local_addr().unwrap().port());
    assert!(accepted.remote_address().is_ipv4(), "mapped addresses are not exposed");
}

#[tokio::test]
async fn a_wrong_server_key_is_named_as_the_probable_reason() {
    let (server, _) = server(TransportConfig::default());
    let wrong = ctcp::generate_key().unwrap().public_key();
    let error = in_time(client(impatient()).connect(server.local_addr().unwrap(), wrong)).await.unwrap_err();
    assert_eq!(error, ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: true }));
    assert!(error.to_string().contains("its public key is probably another"), "{error}");
}

#[tokio::test]
async fn a_wrong_server_key_fails_long_before_the_handshake_times_out() {
    let (server, _) = server(TransportConfig::default());
    let wrong = ctcp::generate_key().unwrap().public_key();
    let begun = tokio::time::Instant::now();
    let patient = client(TransportConfig::default());
    let error = in_time(patient.connect(server.local_addr().unwrap(), wrong)).await.unwrap_err();
    assert_eq!(error, ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: true }));
    let handshake_timeout = Duration::from_secs(10);
    assert!(begun.elapsed() < handshake_timeout / 3, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_unlisted_client_is_refused_with_a_reason() {
    let key = ctcp::generate_key().unwrap();
    let name = key.public_key();
    let nobody = ClientPolicy::Listed(BTreeSet::new());
    let server = Endpoint::server(ServerConfig::new(localhost(), key, nobody)).unwrap();
    let error = in_time(client(impatient()).connect(server.local_addr().unwrap(), name)).await.unwrap_err();
    let ConnectError::Failed(ConnectionError::Refused { code, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(*code, 1);
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_silent_address_ends_in_a_time_out() {
    let silent = UdpSocket::bind(localhost()).unwrap();
    let name = ctcp::generate_key().unwrap().public_key();
    let error = in_time(client(impatient()).connect(silent.local_addr().unwrap(), name)).await.unwrap_err();
    assert_eq!(error, ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: false }));
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn an_address_of_the_other_family_is_refused_at_once() {
    let remote = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 9);
    let name = ctcp::generate_key().unwrap().public_key();
    let error = in_time(client(impatient()).connect(remote, name)).await.unwrap_err();
    assert!(matches!(error, ConnectError::WrongFamily { .. }), "{error:?}");
}

#[tokio::test]
async fn a_dropped_connect_gives_up_and_the_endpoint_can_connect_again() {
    let (server, server_key) = server(TransportConfig::default());
    let client = client(TransportConfig::default());
    let silent = UdpSocket::bind(localhost()).unwrap();
    let attempt = client.connect(silent.local_addr().unwrap(), server_key);
    assert!(tokio::time::timeout(Duration::from_millis(50), attempt).await.is_err());
    in_time(client.connect(server.local_addr().unwrap(), server_key)).await.unwrap();
}

#[tokio::test]
async fn random_datagrams_from_unknown_senders_do_not_disturb() {
    let (server, server_key) = server(TransportConfig::default());
    let address = server.local_addr().unwrap();
    let stranger = UdpSocket::bind(localhost()).unwrap();
    for size in 0..200 {
        stranger.send_to(&super::setup::content(size, size as usize * 7), address).unwrap();
    }
    in_time(client(TransportConfig::default()).connect(address, server_key)).await.unwrap();
}

#[tokio::test]
async fn parallel_handshakes_of_one_client_do_not_exceed_its_limit_of_connections() {
    const MOST: usize = 20;
    let key = ctcp::generate_key().unwrap();
    let name = key.public_key();
    let mut config = ServerConfig::new(localhost(), key, ClientPolicy::Any);
    config.connections_per_client(MOST);
    let server = Endpoint::server(config).unwrap();
    let address = server.local_addr().unwrap();
    let client = client(TransportConfig::default());
    let attempts: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.connect(address, name).await })
        })
        .collect();
    let mut connections = Vec::new();
    for attempt in attempts {
        connections.extend(in_time(attempt).await.unwrap().ok());
    }
    // Connections beyond the limit are closed as soon as the server has processed them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (closed, up): (Vec<_>, Vec<_>) = connections.iter().partition(|connection| connection.is_closed());
    println!("{} connections are up, {} were closed, limit {MOST}", up.len(), closed.len());
    assert_eq!(up.len(), MOST);
    let told = "this client has as many connections as it may have";
    for connection in closed {
        let reason = connection.close_reason();
        assert!(
            matches!(&reason, Some(ConnectionError::ClosedByPeer(close)) if close.reason == told),
            "{reason:?}"
        );
    }
    // The application never sees the closed ones.
    for _ in 0..MOST {
        in_time(server.accept()).await.unwrap();
    }
    assert!(tokio::time::timeout(Duration::from_millis(100), server.accept()).await.is_err());
}
