//! Helpers that the tests share.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ctcp::{ClientConfig, ClientPolicy, Endpoint, SecretKey, ServerConfig};
use ctcp_proxy::client::{ClientLimits, ForwardProxy, listen};
use ctcp_proxy::counters::Counters;
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::link::{CtcpConnector, LinkTimes, ServerAddress, ServerLink};
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::TargetPolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A test that takes longer is considered stuck.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("no result in time")
}

pub(crate) fn localhost() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
}

/// A reverse proxy on a ctcp endpoint, which can be killed and restarted.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) key: SecretKey,
    pub(crate) proxy: Arc<ReverseProxy>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// `files`: a directory that is served for reading and writing.
    pub(crate) async fn start(key: SecretKey, listen: SocketAddr, files: Option<&Path>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = ServerConfig::new(listen, key.clone(), ClientPolicy::Any);
        let files = files.map(|path| FileService::open(path, true).unwrap());
        let started = runtime.spawn(async move {
            let endpoint = Endpoint::server(config).unwrap();
            let address = endpoint.local_addr().unwrap();
            let policy = TargetPolicy::new(vec!["127.0.0.0/8".parse().unwrap()], vec![]).unwrap();
            let proxy = ReverseProxy::new(Dialer::new(policy), files, ServerLimits::default());
            let served = proxy.clone();
            tokio::spawn(async move { served.serve(&endpoint).await });
            (address, proxy)
        });
        let (address, proxy) = started.await.unwrap();
        Self { address, key, proxy, runtime: Some(runtime) }
    }

    /// Ends it like a kill: peers are not notified.
    pub(crate) fn kill(mut self) -> (SecretKey, SocketAddr) {
        let runtime = self.runtime.take().unwrap();
        // Waits until its tasks and thus the socket are gone, so that the address is free.
        std::thread::spawn(|| runtime.shutdown_timeout(Duration::from_secs(5))).join().unwrap();
        (self.key.clone(), self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn link_to(server: &Server) -> ServerLink<CtcpConnector> {
    link_and_endpoint(server).0
}

/// Also returns the endpoint, to close it.
pub(crate) fn link_and_endpoint(server: &Server) -> (ServerLink<CtcpConnector>, Endpoint) {
    let mut config = ClientConfig::new(ctcp::generate_key().unwrap());
    config.bind(localhost());
    let address: ServerAddress = server.address.to_string().parse().unwrap();
    let endpoint = Endpoint::client(config).unwrap();
    let connector = CtcpConnector::new(endpoint.clone(), address, server.key.public_key());
    let counters = Arc::new(Counters::new("client"));
    (ServerLink::start(connector, LinkTimes::default(), counters), endpoint)
}

/// A forward proxy that serves SOCKS5 and HTTP.
pub(crate) struct Client {
    pub(crate) socks5: SocketAddr,
    pub(crate) http: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Client {
    pub(crate) async fn start(server: &Server) -> Self {
        let proxy = ForwardProxy::new(link_to(server), ClientLimits::default());
        let listener = listen(localhost()).unwrap();
        let socks5 = listener.local_addr().unwrap();
        let http_listener = listen(localhost()).unwrap();
        let http = http_listener.local_addr().unwrap();
        let http_proxy = proxy.clone();
        let tasks = [
            tokio::spawn(async move { proxy.serve_socks5(listener).await }),
            tokio::spawn(async move { http_proxy.serve_http(http_listener).await }),
        ];
        Self { socks5, http, tasks }
    }

    /// Opens a connection to the target through the proxy, and returns it with the code of the SOCKS5 reply.
    pub(crate) async fn open(&self, target: SocketAddr) -> (TcpStream, u8) {
        let mut stream = TcpStream::connect(self.socks5).await.unwrap();
        let SocketAddr::V4(target) = target else { panic!("IPv4 here") };
        let [high, low] = target.port().to_be_bytes();
        let request = [&[5, 1, 0, 5, 1, 0, 1][..], &target.ip().octets(), &[high, low]].concat();
        stream.write_all(&request).await.unwrap();
        let mut reply = [0; 12];
        stream.read_exact(&mut reply).await.unwrap();
        (stream, reply[3])
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A target that reads a 4-byte number, answers with as many bytes derived from it, and continues to read.
pub(crate) async fn source() -> SocketAddr {
    let listener = listen(localhost()).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Ok(size) = stream.read_u32().await {
                    if stream.write_all(&content(size as usize)).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Bytes that depend on their position.
pub(crate) fn content(size: usize) -> Vec<u8> {
    (0..size).map(|i| ((i ^ size).wrapping_mul(2_654_435_761) >> 9) as u8).collect()
}

/// A web server that echoes the body of each request and keeps its connections open.
pub(crate) async fn echo_by_length() -> SocketAddr {
    let listener = listen(localhost()).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_by_length(stream));
        }
    });
    address
}

async fn answer_by_length(mut stream: TcpStream) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await?;
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes()).await?;
        stream.write_all(&body).await?;
    }
}
