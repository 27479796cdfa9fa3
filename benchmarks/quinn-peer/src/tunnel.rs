//! Both ends of the tunnel.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;
use crate::options::Options;

/// The name in the certificate.
pub(crate) const NAME: &str = "localhost";

/// Bytes per read.
const BUFFER: usize = 64 * 1_024;

/// Accepts connections, and connects each of their streams to the target.
pub(crate) async fn serve(options: &Options, target: SocketAddr) -> Result<(), Failure> {
    let endpoint = server_endpoint(options)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok(stream) = connection.accept_bi().await {
                tokio::spawn(async move {
                    // If the target does not answer, dropping the stream resets it.
                    if let Ok(tcp) = TcpStream::connect(target).await {
                        join(tcp, stream).await;
                    }
                });
            }
        });
    }
    Ok(())
}

/// Accepts TCP connections, and opens a stream for each.
pub(crate) async fn forward(options: &Options, server: SocketAddr) -> Result<(), Failure> {
    let endpoint = client_endpoint(options)?;
    let mut connection: Connection = endpoint.connect(server, NAME)?.await?;
    let listener = TcpListener::bind(options.listen).await?;
    loop {
        let (tcp, _) = listener.accept().await?;
        if connection.close_reason().is_some() {
            connection = endpoint.connect(server, NAME)?.await?;
        }
        let connection = connection.clone();
        tokio::spawn(async move {
            if let Ok(stream) = connection.open_bi().await {
                join(tcp, stream).await;
            }
        });
    }
}

/// Makes the certificate and listens.
pub(crate) fn server_endpoint(options: &Options) -> Result<Endpoint, Failure> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    config.transport_config(Arc::clone(&options.transport));
    let endpoint = Endpoint::server(config, options.listen)?;
    fs::write(&options.certificate, made.cert.der())?;
    Ok(endpoint)
}

/// Trusts the certificate.
pub(crate) fn client_endpoint(options: &Options) -> Result<Endpoint, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(&options.certificate)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::clone(&options.transport));
    let mut endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Copies both ways until both directions have ended or failed.
async fn join(tcp: TcpStream, (send, receive): (SendStream, RecvStream)) {
    // Otherwise small messages are delayed.
    let _ = tcp.set_nodelay(true);
    let (from_tcp, to_tcp) = tcp.into_split();
    tokio::join!(copy(from_tcp, send), copy(receive, to_tcp));
}

/// Copies until the end, which is passed on. An error of one side is passed on by dropping the other.
async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length) = from.read(&mut buffer).await {
        if length == 0 {
            let _ = to.shutdown().await;
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
