//! The cost for a server of a client that requests the ends of large files of which it claims to have the beginning.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use ctcp::{ClientConfig, ClientPolicy, Endpoint, ServerConfig};
use ctcp_proxy::counters::Counters;
use ctcp_proxy::dial::Dialer;
use ctcp_proxy::files::FileService;
use ctcp_proxy::link::{CtcpConnector, LinkTimes, ServerLink};
use ctcp_proxy::request::{FileIdentity, GetRequest, Request};
use ctcp_proxy::server::{ReverseProxy, ServerLimits};
use ctcp_proxy::target_policy::TargetPolicy;

/// The size of each file; the files are sparse.
const SIZE: u64 = 8 << 30;

/// Bytes that this process has read with system calls.
fn read_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").expect("Linux has it");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn hashing_for_a_client_has_a_fixed_rate_however_many_transfers_it_requests() {
    let directory = tempfile::tempdir().unwrap();
    let [server_key, client_key] = [ctcp::generate_key().unwrap(), ctcp::generate_key().unwrap()];
    let public_key = server_key.public_key();
    let localhost = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(ServerConfig::new(localhost, server_key, ClientPolicy::Any)).unwrap();
    let address = server.local_addr().unwrap().to_string().parse().unwrap();
    let files = FileService::open(directory.path(), false).unwrap();
    let dialer = Dialer::new(TargetPolicy::default());
    let proxy = ReverseProxy::new(dialer, Some(files), ServerLimits::default());
    tokio::spawn(async move { proxy.serve(&server).await });
    let mut config = ClientConfig::new(client_key);
    config.bind(localhost);
    let connector = CtcpConnector::new(Endpoint::client(config).unwrap(), address, public_key);
    let link = ServerLink::start(connector, LinkTimes::default(), Arc::new(Counters::new("client")));

    let mut held = Vec::new();
    let before = read_bytes();
    for number in 0..16 {
        let (name, path) = (number.to_string(), directory.path().join(number.to_string()));
        let file = fs::File::create(path).unwrap();
        file.set_len(SIZE).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        let identity = FileIdentity { size: SIZE, modified: i64::try_from(modified.as_nanos()).unwrap() };
        let request = Request::Get(GetRequest { name, have: SIZE, identity });
        held.push(link.request(&request).await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let megabytes = (read_bytes() - before) / 1_000_000;
    println!("{megabytes} MB read for 16 requests in 2 s");
    assert!(megabytes < 600, "{megabytes} MB");
}
