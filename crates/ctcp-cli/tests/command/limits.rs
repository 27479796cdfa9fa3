//! Limits of open files: every proxied connection uses one.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::setup::{KEY, Server, ctcp, hello, key, socks, socks_client};

/// The limit of processes in these tests: 48 proxied connections, and 24 of one client.
const OPEN_FILES: &str = "64";

/// The SOCKS5 reply if the target has no listener any more.
const REFUSED_BY_THE_TARGET: u8 = 5;

/// The command under a limit that it cannot raise, or with `-Sn` under one that it can.
fn limited(directory: &Path, which: &str, words: &[&str]) -> Command {
    let script = format!("ulimit {which} {OPEN_FILES} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    let command_line = ["-c", &script, env!("CARGO_BIN_EXE_ctcp")];
    command.current_dir(directory).args(command_line).args(words).stdin(std::process::Stdio::null());
    command
}

const ALLOW: [&str; 2] = ["--allow-target", "127.0.0.0/8"];
const SOCKS: [&str; 2] = ["--socks", "127.0.0.1:0"];

#[test]
fn one_client_cannot_use_all_descriptors_of_a_server_and_one_warning_is_logged() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let other = key(at, "other.key");
    let words = [&ALLOW[..], &["--client", &other]].concat();
    let server = Server::start_by(at, &words, |at, words| limited(at, "-n", words));
    // A client that waits for targets gets the server's reply to each request.
    let options = [&SOCKS[..], &["--wait-for-targets"]].concat();
    let (_greedy, proxy) = socks_client(ctcp(at, &server.remote.words("client", KEY, &options)));
    let idle = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = idle.local_addr().expect("an address");
    let held: Vec<_> = (0..40).map(|_| socks(proxy, target)).collect();
    let codes: Vec<u8> = held.iter().map(|(_, code)| *code).collect();
    assert_eq!(codes, [vec![0; 24], vec![1; 16]].concat());

    let target = hello().to_string();
    let output = ctcp(at, &server.remote.words("connect", "other.key", &[&target])).output();
    let output = output.expect("it starts");
    assert_eq!(output.stdout, b"hello", "{}", String::from_utf8_lossy(&output.stderr));

    let said = server.running.end();
    let [warning] = &said[..] else { panic!("{said:?}") };
    assert!(warning.contains("WARN") && warning.contains("this client has too many"), "{warning}");
    assert!(
        warning.contains("limit=24")
            && warning.contains(&format!("client{{name=\"{}\"}}", &key(at, KEY)[..8])),
        "{warning}"
    );
}

#[test]
fn a_client_short_of_descriptors_serves_what_it_can_and_logs_once_that_others_wait() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let server = Server::start(at, &ALLOW);
    let words = server.remote.words("client", KEY, &[&SOCKS[..], &["-q", "--wait-for-targets"]].concat());
    let (running, proxy) = socks_client(limited(at, "-n", &words));
    let idle = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = idle.local_addr().expect("an address");
    let held: Vec<_> = (0..48).map(|_| socks(proxy, target)).collect();
    assert!(held.iter().all(|(_, code)| *code == 0));
    running.messages_until("further ones wait");
    // A waiting connection is served when a slot becomes free.
    let waiting = std::thread::spawn(move || socks(proxy, target).1);
    drop((idle, held));
    assert_eq!(waiting.join().expect("it is served"), REFUSED_BY_THE_TARGET);
    let said = running.end();
    assert!(matches!(&said[..], [line] if line.contains("nothing listens on that port")), "{said:?}");
}

#[test]
fn server_and_client_raise_the_limit_of_open_files_to_the_hard_one() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let server = Server::start_by(at, &[], |at, words| limited(at, "-Sn", words));
    let (client, _) = socks_client(limited(at, "-Sn", &server.remote.words("client", KEY, &SOCKS)));
    for running in [&server.running, &client] {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).expect("limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the line");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[3], words[4], "{line}");
        assert_ne!(words[3], OPEN_FILES, "{line}");
    }
}
