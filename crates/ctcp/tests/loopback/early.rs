//! Tickets: data in the first flight of a later connection.

use core::sync::atomic::Ordering;
use core::time::Duration;

use ctcp::{ConnectionError, Ticket, TransportConfig};
use ctcp_base::Probability;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::relay;
use super::setup::{Pair, check_echo, client, content, echo, in_time, server};

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.tickets(true).handshake_timeout(Duration::from_secs(1));
    transport
}

#[tokio::test]
async fn a_returning_client_writes_before_the_handshake_is_complete() {
    let pair = Pair::with(transport()).await;
    let (address, key) = (pair.server.local_addr().unwrap(), pair.connection.peer_key());
    let ticket = in_time(pair.connection.ticket()).await.unwrap();
    let ticket = Ticket::from_bytes(&ticket.to_bytes()).unwrap();
    pair.connection.close(0, "");
    let server = pair.server.clone();
    tokio::spawn(async move { echo(server.accept().await.unwrap()).await });
    let connection = pair.client.connect_early(address, key, &ticket).unwrap();
    assert_eq!(connection.profile(), None, "the handshake has not begun");
    in_time(check_echo(&connection, &content(1, 1_000))).await;
    in_time(connection.connected()).await.unwrap();
    in_time(check_echo(&connection, &content(2, 1_000_000))).await;
    // The next visit has a ticket of its own.
    assert!(in_time(connection.ticket()).await.unwrap() != ticket);
}

#[tokio::test]
async fn a_server_that_does_not_answer_fails_the_streams_that_were_opened_early() {
    let (server, key) = server(transport());
    let client = client(transport());
    let (address, path) = relay::start(server.local_addr().unwrap(), Probability::ZERO).await;
    let accepted = async { server.accept().await.unwrap() };
    let (connection, _accepted) =
        in_time(async { tokio::join!(client.connect(address, key), accepted) }).await;
    let ticket = in_time(connection.unwrap().ticket()).await.unwrap();
    path.is_dead.store(true, Ordering::Relaxed);
    let connection = client.connect_early(address, key, &ticket).unwrap();
    let mut stream = in_time(connection.open()).await.unwrap();
    stream.write_all(b"nobody gets this").await.unwrap();
    assert!(in_time(stream.read_u8()).await.is_err());
    let error = in_time(connection.connected()).await.unwrap_err();
    assert!(matches!(error, ConnectionError::HandshakeTimedOut { .. }), "{error}");
}
