//! Messages and exit codes when something is wrong.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::setup::{KEY, Remote, Running, Server, ctcp, key, run};

/// Long compared to a refusal, and short compared to the five seconds after which a silent server times out.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Runs a command that must fail at once, and returns the lines it printed.
fn refused(directory: &Path, words: &[&str]) -> Vec<String> {
    let begun = tokio::time::Instant::now();
    let (code, said) = run(directory, words);
    assert_eq!(code, Some(1), "{said}");
    assert!(begun.elapsed() < AT_ONCE, "{said}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_refusal_by_the_server_is_reported_at_once_and_a_missing_key_is_not_created() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let server = Server::start(at, &[]);
    std::fs::write(at.join("file"), "x").expect("a file");
    for (command, argument) in [("get", "file"), ("put", "file"), ("connect", "127.0.0.1:1")] {
        let mistyped = format!("{command}.key");
        let words = server.remote.words(command, &mistyped, &[argument]);
        let lines = refused(at, &words);
        let [missing] = &lines[..] else { panic!("{lines:?}") };
        assert!(missing.contains(&format!("make one with `ctcp keygen --out {mistyped}`")), "{missing}");
        assert!(!at.join(&mistyped).exists());
        let public = &key(at, &mistyped);
        let lines = refused(at, &words);
        let [why] = &lines[..] else { panic!("{lines:?}") };
        assert!(why.contains("not on the server's list") && why.contains(public), "{why}");

        let other = Remote { address: server.remote.address.clone(), key: public.to_owned() };
        let lines = refused(at, &other.words(command, KEY, &[argument]));
        let [why] = &lines[..] else { panic!("{lines:?}") };
        assert!(why.contains(&format!("its public key is not {public}")), "{why}");
    }
    let words = server.remote.words("client", "missing.key", &[]);
    assert!(refused(at, &words)[0].contains("`ctcp keygen --out missing.key`"));
}

#[test]
fn each_mistake_has_its_message_and_its_exit_code() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    std::fs::create_dir(at.join("shared")).expect("a directory");
    for (file, content) in [("nonsense.key", "nonsense"), ("notes", "x"), ("wrong.toml", "sockz = 'a:1'")] {
        std::fs::write(at.join(file), content).expect("a file");
    }
    let (bare, files) = (Server::start(at, &[]), Server::start(at, &["--files", "shared"]));
    let (bare, files) = (&bare.remote, &files.remote);
    let port_alone = vec!["server", "--key", "server.key", "--any-client", "--listen", "4433"];
    let listen = ["server", "--key", "server.key", "--any-client", "--listen", "127.0.0.1:0"];
    let word_alone = [&listen[..], &["--allow-target", "foo"]].concat();
    let nowhere = [&listen[..], &["--further-address", "0.0.0.0:4433"]].concat();
    let too_many = [&listen[..], &["--further-address", "192.0.2.1:4433"].repeat(9)].concat();
    for (words, code, wanted) in [
        (bare.words("get", KEY, &["x"]), 1, "x: the server refused: it serves no files"),
        (files.words("put", KEY, &["notes"]), 1, "notes: the server refused: it takes no files"),
        (files.words("get", KEY, &["x"]), 1, "x: the server refused: there is no such file"),
        (files.words("get", KEY, &[".."]), 2, "`..`: the file name has"),
        (files.words("get", KEY, &["../x"]), 2, "`../x`: the file name has"),
        (files.words("get", KEY, &["/etc/passwd"]), 2, "the file name is absolute"),
        (files.words("put", KEY, &["notes", "../x"]), 2, "`../x`: the file name has"),
        (files.words("put", KEY, &["missing"]), 1, "missing: there is no such file"),
        (
            files.words("get", "nonsense.key", &["x"]),
            1,
            "nonsense.key does not contain a private key (one line of base64): make one",
        ),
        (files.words("get", "shared", &["x"]), 1, "shared is not a key file"),
        (
            files.words("get", "nowhere/a.key", &["x"]),
            1,
            "there is no key file nowhere/a.key: make one with `ctcp keygen --out nowhere/a.key`",
        ),
        (files.words("connect", KEY, &["127.0.0.1"]), 2, "the port is missing"),
        (files.words("connect", KEY, &["127.0.0.1:1"]), 1, "--allow-target"),
        (
            files.words("client", KEY, &["--config", "wrong.toml"]),
            2,
            "wrong.toml:1:1: there is no key `sockz`; did you mean `socks`?",
        ),
        (
            word_alone,
            2,
            "invalid value 'foo' for '--allow-target <RULE>': is \"foo\" a host? Then write it with its domain or a port (foo:443)",
        ),
        (vec!["get", "x"], 2, "tip: options can also be in a file (see --config) or in the environment"),
        (port_alone, 2, "expected ADDR:PORT, such as 0.0.0.0:4433"),
        (nowhere, 2, "clients cannot send to this address"),
        (too_many, 2, "--further-address may be given 8 times at most"),
    ] {
        let (found, said) = run(at, &words);
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

#[test]
fn without_a_server_the_message_says_what_to_check() {
    let directory = TempDir::new().expect("a directory");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let remote = Remote {
        address: silent.local_addr().expect("an address").to_string(),
        key: "ddkmX13CfKl6RyRw3ECm3ROQ3IwgYj2UcqSqwnqaE2I=".to_owned(),
    };
    key(directory.path(), KEY);
    let (code, said) = run(directory.path(), &remote.words("get", KEY, &["-q", "x"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&remote.address) && said.contains("is a server running there"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_get_onto_an_existing_file_reports_that_it_replaced_it() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    std::fs::create_dir(at.join("shared")).expect("a directory");
    std::fs::write(at.join("shared/notes"), "new").expect("a file");
    let server = Server::start(at, &["--files", "shared"]);
    for (rest, wanted) in [
        (["notes", "-q"], "verified\n"),
        (["notes", "-q"], "verified, replaced notes\n"),
        (["notes", "--json"], "\"replaced\":true"),
    ] {
        let got = ctcp(at, &server.remote.words("get", KEY, &rest)).output().expect("it starts").stdout;
        let got = String::from_utf8(got).expect("text");
        assert!(got.contains(wanted), "{got}");
    }
    assert_eq!(std::fs::read(at.join("notes")).expect("the file"), b"new");
}

#[test]
fn the_demo_runs_the_uncoded_profile_only_once() {
    let directory = TempDir::new().expect("a directory");
    let words = ["demo", "--profile", "tcp", "--size", "20kb", "--loss", "0"];
    let said = ctcp(directory.path(), &words).output().expect("it starts").stdout;
    let said = String::from_utf8(said).expect("text");
    let lines: Vec<&str> = said.lines().collect();
    let [head, result, advice] = &lines[..] else { panic!("{said}") };
    assert!(head.starts_with("A download of 20000 bytes over"), "{head}");
    assert!(
        result.starts_with("  without coding (tcp): ") && result.ends_with("every byte verified"),
        "{result}"
    );
    assert!(advice.contains("--size 10mb"), "{advice}");
}

#[test]
fn a_server_logs_each_client_connection_and_refusal_once() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let (listed, unlisted) = (key(at, KEY), key(at, "unlisted.key"));
    let words = ["server", "--listen", "127.0.0.1:0", "--key", "server.key", "--client", &listed];
    let server = Running::start(ctcp(at, &words));
    let line = server.line();
    let after = |option: &str| line.split_whitespace().skip_while(|word| *word != option).nth(1).expect("it");
    let remote = Remote { address: after("--server").into(), key: after("--server-key").into() };
    for key in ["unlisted.key", KEY] {
        assert_eq!(run(at, &remote.words("get", key, &["x"])).0, Some(1));
    }
    let mut said = server.messages_until("a client is gone");
    said.retain(|line| !line.contains("listening") && !line.contains("made a new key"));
    let [refused, came, gone] = &said[..] else { panic!("{said:?}") };
    assert!(
        refused.contains("refused a client: its public key is not listed remote=127.0.0.1:"),
        "{refused}"
    );
    assert!(refused.contains(&format!("key={unlisted}")) && !refused.contains("suppressed"), "{refused}");
    assert!(came.contains(&format!("key={listed}")), "{came}");
    let client = format!("client{{name=\"{}\"}}: ", &listed[..8]);
    for line in [came, gone] {
        assert!(line.contains("remote=127.0.0.1:") && line.contains(&client), "{line}");
    }
}

#[test]
fn a_quiet_client_logs_a_refusal_once() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    let server = Server::start(at, &[]);
    let unlisted = key(at, "unlisted.key");
    let other = Remote { address: server.remote.address.clone(), key: unlisted.clone() };
    let rest = ["-q", "--socks", "127.0.0.1:0"];
    for (words, wanted) in [
        (server.remote.words("client", "unlisted.key", &rest), format!("(it is {unlisted})")),
        (other.words("client", KEY, &rest), format!("its public key is not {unlisted}")),
    ] {
        let client = Running::start(ctcp(at, &words));
        let said = client.messages_until(&wanted);
        assert!(said.len() == 1 && said[0].contains("WARN"), "{said:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_exit_code_of_a_connect_names_the_signal_that_ended_it() {
    let directory = TempDir::new().expect("a directory");
    let target = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = target.local_addr().expect("an address").to_string();
    let server = Server::start(directory.path(), &["--allow-target", "127.0.0.0/8"]);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let words = server.remote.words("connect", KEY, &[&address]);
        let mut child = ctcp(directory.path(), &words).stdin(Stdio::piped()).spawn().expect("it starts");
        let (_connected, _) = target.accept().expect("a connection");
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{signal}");
    }
}

#[test]
fn a_profile_that_is_not_granted_becomes_the_servers_own_and_the_client_logs_it() {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path();
    std::fs::create_dir(at.join("shared")).expect("a directory");
    std::fs::write(at.join("shared/file"), "x").expect("a file");
    let asked = ["--profile", "ctcp", "--redundancy", "fixed=64"];
    let get = |server: &Server, more: &[&str]| {
        let words = [&["file", "-o", "copy"], more].concat();
        let output = ctcp(at, &server.remote.words("get", KEY, &words)).output().expect("it starts");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert_eq!(output.status.code(), Some(0), "{said:?}");
        std::fs::remove_file(at.join("copy")).expect("it is there");
        said.concat()
    };
    let server = Server::start(at, &["--files", "shared"]);
    let said = get(&server, &asked);
    assert!(said.contains("does not grant") && said.contains("ctcp redundancy=fixed=64"), "{said}");
    assert!(said.contains("profile default)"), "{said}");
    assert!(!get(&server, &["--profile", "ctcp"]).contains("does not grant"));
    let server = Server::start(at, &["--files", "shared", "--grant", "tcp"]);
    let said = get(&server, &["--profile", "tcp"]);
    assert!(!said.contains("does not grant") && said.contains("profile tcp)"), "{said}");
    let said = get(&server, &["--profile", "ctcp"]);
    assert!(said.contains("does not grant") && said.contains("profile default)"), "{said}");
}
