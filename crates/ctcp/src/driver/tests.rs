//! What handles return when the driver ends unexpectedly.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr};

use ctcp_proto::congestion::ControllerFactory;
use ctcp_proto::{ClientPolicy, ConnectionError};
use tokio::time::timeout;

use crate::{ClientConfig, ConnectError, Endpoint, ServerConfig, TransportConfig, generate_key};

const PATIENCE: Duration = Duration::from_secs(10);

/// A configuration under which the protocol panics as soon as a connection is established.
fn explosive() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.0.controller = Some(ControllerFactory::new(|_| panic!("as the test wants")));
    transport
}

fn pair(server: TransportConfig, client: TransportConfig) -> (Endpoint, Endpoint, crate::PublicKey) {
    let key = generate_key().unwrap();
    let name = key.public_key();
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let mut server_config = ServerConfig::new(local, key, ClientPolicy::Any);
    server_config.transport(server);
    let mut client_config = ClientConfig::new(generate_key().unwrap());
    client_config.bind(local).transport(client);
    (Endpoint::server(server_config).unwrap(), Endpoint::client(client_config).unwrap(), name)
}

#[tokio::test]
async fn a_panic_in_a_server_ends_its_endpoint_and_tasks_that_wait_for_it_get_the_reason() {
    let (server, client, name) = pair(explosive(), TransportConfig::default());
    let address = server.local_addr().unwrap();
    let connecting = tokio::spawn(async move { client.connect(address, name).await });
    let lost = timeout(PATIENCE, server.lost()).await.expect("the endpoint is lost");
    assert!(lost.is_panic() && lost.to_string().contains("as the test wants"), "{lost}");
    assert!(timeout(PATIENCE, server.accept()).await.expect("accept ends").is_none());
    assert_eq!(server.connect(address, name).await.unwrap_err(), ConnectError::EndpointLost(lost));
    timeout(PATIENCE, server.close(0, "")).await.expect("closing it does not hang");
    connecting.abort();
}

#[tokio::test]
async fn a_panic_in_a_client_is_the_error_of_its_connections() {
    let (server, client, name) = pair(TransportConfig::default(), explosive());
    let connecting = client.connect(server.local_addr().unwrap(), name);
    let error = timeout(PATIENCE, connecting).await.expect("connecting fails").unwrap_err();
    assert_eq!(error, ConnectError::Failed(ConnectionError::EndpointLost));
    assert!(client.lost().await.is_panic());
}

#[test]
fn shutting_the_runtime_down_loses_the_endpoint_and_closing_the_endpoint_does_not() {
    let runtime = |threads| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads).enable_all().build().unwrap()
    };
    let (other, own) = (runtime(1), runtime(1));
    let transport = TransportConfig::default;
    let (server, ..) = other.block_on(async { pair(transport(), transport()) });
    other.shutdown_background();
    let lost = own.block_on(async { timeout(PATIENCE, server.lost()).await.expect("the endpoint is lost") });
    assert!(!lost.is_panic() && lost.to_string().contains("shut down"), "{lost}");

    own.block_on(async {
        let (server, ..) = pair(transport(), transport());
        server.close(0, "").await;
        assert!(timeout(Duration::from_millis(200), server.lost()).await.is_err());
    });
}
