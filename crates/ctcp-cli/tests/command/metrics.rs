//! The values of `--metrics` for connections, across a restart of the server and of several clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use crate::setup::{KEY, Running, Server, ctcp, key, run, serve, socks, socks_client};

const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the head and the body of the metrics at an address.
fn scrape(address: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("metrics are served");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    (head.to_ascii_lowercase(), text.to_owned())
}

/// The value of a sample with exactly these labels.
fn value(address: &str, sample: &str) -> Option<f64> {
    let (_, text) = scrape(address);
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A port for metrics that was free a moment ago.
fn port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// Reads what the target sends through a SOCKS5 port; returns the number of bytes.
fn download(proxy: SocketAddr, target: SocketAddr) -> usize {
    let (mut stream, code) = socks(proxy, target);
    assert_eq!(code, 0);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it ends");
    bytes.len()
}

fn server(at: &Path, listen: &str, more: &[&str]) -> Server {
    let listed = key(at, KEY);
    let words = ["server", "-q", "--listen", listen, "--key", "server.key", "--client", &listed];
    let words = [&words[..], &["--allow-target", "127.0.0.0/8"], more].concat();
    let (running, remote) = Server::announced(Running::start(ctcp(at, &words)));
    Server { remote, running }
}

#[test]
fn the_counters_of_a_client_continue_over_a_restart_of_the_server() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let listen = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").to_string();
    let first = server(at, &listen, &[]);
    let metrics = port();
    let words = first.remote.words("client", KEY, &["--socks", "127.0.0.1:0", "--metrics", &metrics]);
    let (_client, proxy) = socks_client(ctcp(at, &words));
    let received = || value(&metrics, "ctcp_bytes_received_total").expect("the sample");
    let (large, small) = (serve(vec![7; 3_000_000]), serve(vec![9; 100_000]));

    assert_eq!(download(proxy, large), 3_000_000);
    let before = received();
    assert!(before > 3_000_000.0, "{before}");
    drop(first);
    let _second = server(at, &listen, &[]);
    wait_until("a new connection", || value(&metrics, "ctcp_connections_opened_total") == Some(2.0));
    assert_eq!(download(proxy, small), 100_000);
    let after = received();
    println!("bytes received: {before} before the restart, {after} after another 100000");
    assert!(after > before + 100_000.0, "{before} before, {after} after");
    assert_eq!(value(&metrics, "ctcp_connected"), Some(1.0));
}

#[test]
fn a_client_shows_each_of_its_paths_and_the_second_leads_to_a_further_address_of_the_server() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let port_of_server =
        UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let (main, further) = (format!("127.0.0.1:{port_of_server}"), format!("127.0.0.9:{port_of_server}"));
    let listen = format!("0.0.0.0:{port_of_server}");
    let server = server(at, &listen, &["--further-address", &further]);
    let metrics = port();
    let words = ["client", "--server", &main, "--server-key", &server.remote.key, "--key", KEY];
    let more =
        ["--socks", "127.0.0.1:0", "--metrics", &metrics, "--path", "127.0.0.1", "--path", "127.0.0.2"];
    let (_client, proxy) = socks_client(ctcp(at, &[&words[..], &more].concat()));
    let first = format!("{{path=\"0\",local=\"127.0.0.1\",remote=\"{main}\"}}");
    let second = format!("{{path=\"1\",local=\"127.0.0.2\",remote=\"{further}\"}}");
    wait_until("the second path", || value(&metrics, &format!("ctcp_path_usable{second}")) == Some(1.0));
    assert_eq!(download(proxy, serve(vec![7; 5_000_000])), 5_000_000);
    let received = |path| value(&metrics, &format!("ctcp_path_combinations_received_total{path}"));
    let (one, other) = (received(&first).expect("a sample"), received(&second).expect("a sample"));
    assert!(other > 0.0 && one + other > 5_000_000.0 / 1_440.0, "{one} and {other}");
    let wasted = value(&metrics, &format!("ctcp_path_redundant_received_total{first}"));
    assert!(wasted.is_some_and(|wasted| wasted <= one), "{wasted:?}");
}

#[test]
fn a_server_shows_what_it_sends_to_each_of_three_clients_while_they_download() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let keys = ["a.key", "b.key", "c.key"];
    let names = ["anna", "berta", &key(at, "c.key")[..8]].map(str::to_owned);
    let lines = [
        format!("{} anna\n", key(at, "a.key")),
        format!("{} berta\n", key(at, "b.key")),
        format!("{}\n", key(at, "c.key")),
    ];
    std::fs::write(at.join("clients"), lines.concat()).expect("a file");
    let metrics = port();
    let server = server(at, "127.0.0.1:0", &["--clients", "clients", "--metrics", &metrics]);
    // The size identifies the client.
    let sizes = [5_000_000, 10_000_000, 15_000_000];
    let clients: Vec<_> = keys
        .iter()
        .map(|file| socks_client(ctcp(at, &server.remote.words("client", file, &["--socks", "127.0.0.1:0"]))))
        .collect();
    let downloads: Vec<_> = clients
        .iter()
        .zip(sizes)
        .map(|((_, proxy), size)| {
            let (proxy, target) = (*proxy, serve(vec![1; size]));
            std::thread::spawn(move || download(proxy, target))
        })
        .collect();
    let of = |metric: &str, name: &str| {
        value(&metrics, &format!("{metric}{{client=\"{name}\"}}"))
            .unwrap_or_else(|| panic!("{metric} of {name}"))
    };
    let mut before = [0.0; 3];
    let mut looks_in_the_middle = 0;
    while downloads.iter().any(|download| !download.is_finished()) {
        let metric = |name: &String| value(&metrics, &format!("ctcp_bytes_sent_total{{client=\"{name}\"}}"));
        let sent = [0, 1, 2].map(|index| metric(&names[index]).unwrap_or_default());
        assert!((0..3).all(|index| sent[index] >= before[index]), "{before:?}, then {sent:?}");
        let is_in_the_middle = sent[2] < sizes[2] as f64 && sent.iter().all(|&sent| sent > 100_000.0);
        looks_in_the_middle += u32::from(is_in_the_middle);
        before = sent;
    }
    assert!(looks_in_the_middle > 0);
    for (download, size) in downloads.into_iter().zip(sizes) {
        assert_eq!(download.join().expect("it ends"), size);
    }
    for (name, size) in names.iter().zip(sizes) {
        let (sent, size) = (of("ctcp_bytes_sent_total", name), size as f64);
        println!("{name}: {sent} bytes sent for {size}, rtt {} s", of("ctcp_rtt_seconds", name));
        assert!(sent > size && sent < 1.5 * size, "{name}: {sent} bytes sent for {size}");
        assert_eq!(of("ctcp_connections", name), 1.0);
        assert!(of("ctcp_rtt_seconds", name) > 0.0 && of("ctcp_window_packets", name) > 0.0);
        for metric in ["ctcp_loss_ratio", "ctcp_packets_lost_total", "ctcp_repairs_sent_total"] {
            assert!(of(metric, name) >= 0.0);
        }
        assert!(of("ctcp_bytes_received_total", name) > 0.0);
    }
    // A client that is killed would be kept for the time that a sleeping machine is given.
    clients.iter().for_each(|(client, _)| client.interrupt());
    wait_until("the clients' end", || names.iter().all(|name| of("ctcp_connections", name) == 0.0));
    assert!(of("ctcp_bytes_sent_total", &names[2]) > 15_000_000.0, "counts of closed connections stay");
}

#[test]
fn each_family_of_metrics_has_one_type_and_one_help() {
    let directory = TempDir::new().expect("a directory");
    let metrics = port();
    let _server = server(directory.path(), "127.0.0.1:0", &["--metrics", &metrics]);
    let (head, text) = scrape(&metrics);
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for family in &families {
        let name = family.split(' ').next().expect("a name");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no HELP");
    }
    let mut names: Vec<&str> = families.iter().filter_map(|family| family.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == families.len() && names.len() > 30, "{names:?}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_port_in_use_is_reported_and_other_paths_are_not_found() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let metrics = port();
    let _server = server(at, "127.0.0.1:0", &["--metrics", &metrics]);
    let listed = key(at, KEY);
    let words = ["server", "--listen", "127.0.0.1:0", "--key", "server.key", "--client", &listed];
    let (code, said) = run(at, &[&words[..], &["--metrics", &metrics]].concat());
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot serve metrics on 127.0.0.1:"), "{said}");

    let mut stream = TcpStream::connect(&metrics).expect("metrics are served");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("metrics are at /metrics"), "{answer}");
}
