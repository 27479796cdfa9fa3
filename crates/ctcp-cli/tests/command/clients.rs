//! Changes of the clients file while the server runs, and the log lines about them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use crate::setup::{KEY, Remote, Running, Server, ctcp, hello, key, run, socks_client};

const ALLOW: [&str; 2] = ["--allow-target", "127.0.0.0/8"];
const FILE: &str = "clients";

/// A client whose key stays in the file: its connections must not be affected.
const STAYS: &str = "stays.key";

/// A server whose clients are in a file, one of which stays.
fn server(at: &Path) -> (Running, Remote) {
    fs::write(at.join(FILE), format!("{} stays\n", key(at, STAYS))).expect("a file");
    let words = ["server", "--listen", "127.0.0.1:0", "--key", "server.key", "--clients", FILE, "-v"];
    Server::announced(Running::start(ctcp(at, &[&words[..], &ALLOW].concat())))
}

fn add(at: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).open(at.join(FILE)).expect("the file");
    writeln!(file, "{line}").expect("it is written");
}

/// Runs `connect` to a target that sends hello, with a time limit of some seconds; returns its result.
fn connect(at: &Path, remote: &Remote, key: &str, target: &str) -> (Option<i32>, String) {
    run(at, &remote.words("connect", key, &[target]))
}

/// The time until `done` is true, checked every hundredth of a second.
fn time_until(what: &str, mut done: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} did not happen in time");
        std::thread::sleep(Duration::from_millis(10));
    }
    begun.elapsed()
}

#[test]
fn a_key_added_to_the_file_is_accepted_and_a_removed_one_is_disconnected_within_a_second() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let (running, remote) = server(at);
    let target = hello().to_string();
    let anna = key(at, KEY);
    let (code, said) = connect(at, &remote, KEY, &target);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not on the server's list") && said.contains(&anna), "{said}");
    running.messages_until(&format!("key={anna}"));

    add(at, &format!("{anna} anna's laptop # since May"));
    running.messages_until("a client was added to the list client=\"anna's laptop\"");
    assert_eq!(connect(at, &remote, KEY, &target).0, Some(0));

    // A client that is connected and has an open stream.
    let idle = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let (client, proxy) = socks_client(ctcp(at, &remote.words("client", KEY, &["--socks", "127.0.0.1:0"])));
    let (staying, other) =
        socks_client(ctcp(at, &remote.words("client", STAYS, &["--socks", "127.0.0.1:0"])));
    let address = idle.local_addr().expect("an address");
    let (mut stream, code) = crate::setup::socks(proxy, address);
    let (kept, kept_code) = crate::setup::socks(other, address);
    assert_eq!((code, kept_code), (0, 0));
    stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a time-out");
    let text = fs::read_to_string(at.join(FILE)).expect("the file");
    fs::write(at.join(FILE), text.replace(&anna, "#")).expect("a file");
    let is_over = |stream: &mut std::net::TcpStream| match std::io::Read::read(stream, &mut [0]) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    };
    let took = time_until("the connection's end", || is_over(&mut stream));
    println!("disconnected after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    running.messages_until(
        "a client was removed from the list, its connections are closed client=\"anna's laptop\"",
    );
    client.messages_until("this client's public key is no longer on the server's list");
    client.messages_until("not on the server's list (it is ");
    assert_eq!(connect(at, &remote, KEY, &target).0, Some(1));
    kept.set_nonblocking(true).expect("it can be");
    assert!(!is_over(&mut { kept }), "another client is not affected");
    drop(staying);
}

#[test]
fn a_hangup_rereads_the_file_and_an_invalid_line_is_logged_and_changes_nothing() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let (running, remote) = server(at);
    let target = hello().to_string();
    let hang_up = || {
        let id = running.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().expect("it starts").success());
    };
    hang_up();
    running.messages_until("read clients");

    fs::write(at.join(FILE), "anna\n").expect("a file");
    hang_up();
    running.messages_until("clients:1: `anna` is not a public key; the clients stay as they are");
    assert_eq!(connect(at, &remote, STAYS, &target).0, Some(0));

    fs::write(at.join(FILE), format!("{} anna\n", key(at, KEY))).expect("a file");
    hang_up();
    running.messages_until("a client was added to the list client=\"anna\"");
    assert_eq!(connect(at, &remote, KEY, &target).0, Some(0));
    assert_eq!(connect(at, &remote, STAYS, &target).0, Some(1));
}

#[test]
fn every_line_about_a_client_names_it() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let (running, remote) = server(at);
    add(at, &key(at, KEY));
    running.messages_until("a client was added to the list");
    let short = &key(at, KEY)[..8];
    for (file, name) in [(STAYS, "stays"), (KEY, short)] {
        // A port without a listener, and a target that no rule allows.
        let (code, _) = connect(at, &remote, file, "192.0.2.1:80");
        assert_eq!(code, Some(1));
        let mut said = running.messages_until("a client connected");
        said.extend(running.messages_until("a target is refused"));
        said.extend(running.messages_until("a client is gone"));
        let span = format!("client{{name=\"{name}\"}}: ");
        let events = ["a client connected", "a target is refused", "a client is gone"];
        for line in said.iter().filter(|line| events.iter().any(|event| line.contains(event))) {
            assert!(line.contains(&span), "{line}");
        }
    }
}
