//! The tunnel for UDP: each datagram travels as a datagram of QUIC, which is encrypted and congestion controlled, and
//! not sent again if it is lost.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use quinn::Connection;
use tokio::net::UdpSocket;

use crate::Failure;
use crate::options::Options;
use crate::tunnel::{NAME, client_endpoint, server_endpoint};

/// Space for a datagram of the testbed.
const DATAGRAM_MAX: usize = 2_048;

/// Accepts connections, and gives each a socket that is connected to the target.
pub(crate) async fn serve(options: &Options, target: SocketAddr) -> Result<(), Failure> {
    let endpoint = server_endpoint(options)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await else { return };
            if socket.connect(target).await.is_ok() {
                // It ends with the connection.
                let _ = join(&connection, &socket).await;
            }
        });
    }
    Ok(())
}

/// Serves the first program that sends a datagram.
pub(crate) async fn forward(options: &Options, server: SocketAddr) -> Result<(), Failure> {
    let endpoint = client_endpoint(options)?;
    let connection = endpoint.connect(server, NAME)?.await?;
    let socket = UdpSocket::bind(options.listen).await?;
    let (_, program) = socket.peek_from(&mut [0; DATAGRAM_MAX]).await?;
    socket.connect(program).await?;
    join(&connection, &socket).await
}

/// Copies both ways until the connection ends.
async fn join(connection: &Connection, socket: &UdpSocket) -> Result<(), Failure> {
    let mut buffer = [0; DATAGRAM_MAX];
    loop {
        tokio::select! {
            received = socket.recv(&mut buffer) => match received {
                // A datagram that is too long for the path so far is lost, as it may be with UDP.
                Ok(length) => drop(connection.send_datagram(buffer[..length].to_vec().into())),
                // Nobody listens yet at the target.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            },
            datagram = connection.read_datagram() => {
                // The same, or the socket's buffer is full.
                let _ = socket.send(&datagram?).await;
            }
        }
    }
}
