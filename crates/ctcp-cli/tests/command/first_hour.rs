//! The experience of a user who sets up a server and a client for the first time.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use tempfile::TempDir;

use crate::setup::{KEY, Running, Server, ctcp, key, run};

#[test]
fn the_version_names_the_commit_if_it_is_known() {
    let directory = TempDir::new().expect("a directory");
    let said = ctcp(directory.path(), &["--version"]).output().expect("it starts").stdout;
    let said = String::from_utf8(said).expect("text");
    let rest = said.trim().strip_prefix(concat!("ctcp ", env!("CARGO_PKG_VERSION"))).expect("the version");
    let head = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let is_checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git").exists();
    match head.ok().filter(|head| is_checkout && head.status.success()) {
        Some(head) => {
            let commit = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let head = String::from_utf8(head.stdout).expect("hex");
            assert!(
                head.starts_with(commit.expect("the commit")) && commit.is_some_and(|it| it.len() == 12),
                "{said}"
            );
        }
        None => assert!(!rest.contains("unknown"), "{said}"),
    }
}

#[test]
fn the_line_of_the_server_has_everything_for_the_next_steps() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let listed = key(at, KEY);
    let words = ["server", "-q", "--listen", "0.0.0.0:0", "--key", "server.key", "--client", &listed];
    let line = Running::start(ctcp(at, &words)).line();
    assert!(line.ends_with("--key client.key --socks 127.0.0.1:1080 --http 127.0.0.1:8118"), "{line}");
    assert!(!line.contains("0.0.0.0"), "{line}");
}

#[test]
fn a_missing_folder_for_files_is_created_and_this_is_logged() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let server = Server::start(at, &["--files", "new/shared", "--files-write"]);
    server.running.messages_until("new/shared did not exist: made an empty folder there");
    fs::write(at.join("notes"), "x").expect("a file");
    assert_eq!(run(at, &server.remote.words("put", KEY, &["notes"])).0, Some(0));
    assert_eq!(fs::read(at.join("new/shared/notes")).expect("it was stored"), b"x");
    let words =
        ["server", "--listen", "127.0.0.1:0", "--key", "server.key", "--any-client", "--files", "notes"];
    let (code, said) = run(at, &words);
    assert!(code == Some(1) && said.contains("cannot serve files from notes"), "{said}");
}

#[test]
fn the_commands_of_a_client_share_a_file_and_the_environment_wins_over_it() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    fs::create_dir(at.join("shared")).expect("a directory");
    fs::write(at.join("shared/notes"), "shared").expect("a file");
    let server = Server::start(at, &["--files", "shared", "--files-write"]);
    let folder = at.join("config/ctcp");
    fs::create_dir_all(&folder).expect("a directory");
    fs::rename(at.join(KEY), folder.join(KEY)).expect("the key");
    let (address, public) = (&server.remote.address, &server.remote.key);
    let toml =
        format!("server = '{address}'\nserver-key = '{public}'\nkey = '{KEY}'\nsocks = '127.0.0.1:0'\n");
    fs::write(folder.join("client.toml"), &toml).expect("a file");
    assert_eq!(run(at, &["get", "notes"]), (Some(0), String::new()));
    assert_eq!(fs::read(at.join("notes")).expect("it was fetched"), b"shared");
    assert_eq!(run(at, &["put", "notes", "copy"]), (Some(0), String::new()));
    let client = Running::start(ctcp(at, &["client"]));
    assert!(client.line().starts_with("export ALL_PROXY=socks5h://127.0.0.1:"));

    let mut command = ctcp(at, &["get", "notes"]);
    let output = command.env("CTCP_SERVER_KEY", "nonsense").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("CTCP_SERVER_KEY: invalid value 'nonsense'"), "{said}");
    fs::write(folder.join("client.toml"), toml + "sockz = 'x'\n").expect("a file");
    let (code, said) = run(at, &["get", "notes"]);
    assert!(
        code == Some(2) && said.contains("client.toml:5:1: there is no key `sockz`; did you mean `socks`?"),
        "{said}"
    );
}

#[test]
fn a_get_to_standard_output_writes_only_the_file() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    fs::create_dir(at.join("shared")).expect("a directory");
    let content: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
    fs::write(at.join("shared/data"), &content).expect("a file");
    let server = Server::start(at, &["--files", "shared"]);
    let output =
        ctcp(at, &server.remote.words("get", KEY, &["data", "-o", "-"])).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout == content, "{said}");
    assert!(said.contains("data: 300000 bytes") && said.contains("verified"), "{said}");
    assert!(!at.join("-").exists());
    let (code, said) = run(at, &server.remote.words("get", KEY, &["data", "-o", "-", "--json"]));
    assert!(code == Some(2) && said.contains("both write to standard output"), "{said}");
    let (code, said) = run(at, &server.remote.words("get", KEY, &["missing", "-o", "-"]));
    assert!(code == Some(1) && said.contains("missing: the server refused"), "{said}");
}

#[test]
fn a_get_that_starts_over_logs_it() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    fs::create_dir(at.join("shared")).expect("a directory");
    fs::write(at.join("shared/data"), vec![7; 100_000]).expect("a file");
    let server = Server::start(at, &["--files", "shared"]);
    let metadata = fs::metadata(at.join("shared/data")).expect("it is there");
    let modified = metadata.modified().expect("a time").duration_since(std::time::UNIX_EPOCH).expect("now");
    fs::write(at.join("data.part"), vec![8; 50_000]).expect("a file");
    let sidecar = format!(
        "{{\"version\":1,\"name\":\"data\",\"identity\":{{\"size\":100000,\"modified\":{}}}}}",
        modified.as_nanos()
    );
    fs::write(at.join("data.part.json"), sidecar).expect("a file");
    let output = ctcp(at, &server.remote.words("get", KEY, &["data"])).output().expect("it starts");
    let (said, warned) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        warned.contains("data.part is not the beginning of the file at the server; starting over"),
        "{warned}"
    );
    assert!(said.contains("verified") && !said.contains("were there already"), "{said}");
}

#[test]
fn metrics_on_a_public_address_cause_a_warning() {
    let directory = TempDir::new().expect("a directory");
    let server = Server::start(directory.path(), &["--metrics", "0.0.0.0:0"]);
    server.running.messages_until("--metrics 0.0.0.0:0 is not a loopback address");
}

#[cfg(unix)]
#[test]
fn a_connect_that_ssh_ends_closes_its_connection() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let target = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = target.local_addr().expect("an address").to_string();
    let listed = key(at, KEY);
    let words = ["server", "--listen", "127.0.0.1:0", "--key", "server.key", "--client", &listed];
    let server = Running::start(ctcp(at, &[&words[..], &["--allow-target", "127.0.0.0/8"]].concat()));
    let line = server.line();
    let after = |option: &str| line.split_whitespace().skip_while(|word| *word != option).nth(1).expect("it");
    let words = [
        "connect",
        "--server",
        after("--server"),
        "--server-key",
        after("--server-key"),
        "--key",
        KEY,
        &address,
    ];
    let mut child = ctcp(at, &words).stdin(Stdio::piped()).spawn().expect("it starts");
    let (_connected, _) = target.accept().expect("a connection");
    let sent = std::process::Command::new("kill").args(["-s", "HUP", &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(129));
    let begun = tokio::time::Instant::now();
    server.messages_until("a client is gone");
    assert!(begun.elapsed().as_secs() < 3, "{:?}", begun.elapsed());
}
