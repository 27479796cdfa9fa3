//! A directory, keys, a server and a client, each in its own process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any step takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The key that `keygen` creates and every server in these tests accepts.
pub(crate) const KEY: &str = "client.key";

pub(crate) fn ctcp(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctcp"));
    command.current_dir(directory).args(words).stdin(Stdio::null());
    // Users who run the tests may have such variables for their own server.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CTCP_")) {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", directory.join("config")).env("APPDATA", directory.join("config"));
    command
}

/// Returns the exit code and the output on standard error.
pub(crate) fn run(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = ctcp(directory, words).output().expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The address and the key of a server.
pub(crate) struct Remote {
    pub(crate) address: String,
    pub(crate) key: String,
}

impl Remote {
    /// The words of a command for this server with this key.
    pub(crate) fn words<'a>(&'a self, command: &'a str, key: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let remote = [command, "--server", &self.address, "--server-key", &self.key, "--key", key];
        [&remote[..], rest].concat()
    }
}

/// A command that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    output: Receiver<String>,
    messages: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Asks the command to end, as Ctrl+C does.
    pub(crate) fn interrupt(&self) {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "the command runs");
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = lines(child.stdout.take().expect("piped"));
        let messages = lines(child.stderr.take().expect("piped"));
        Self { child, output, messages }
    }

    /// The next line of its output.
    pub(crate) fn line(&self) -> String {
        self.output.recv_timeout(PATIENCE).expect("a line")
    }

    /// Returns what it writes to standard error, up to the line with the text.
    pub(crate) fn messages_until(&self, text: &str) -> Vec<String> {
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.contains(text)) {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(line) => said.push(line),
                Err(error) => panic!("{text:?}: {error}, {said:?}"),
            }
        }
        said
    }

    /// Ends it, and returns the unread rest of its standard error.
    pub(crate) fn end(mut self) -> Vec<String> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.messages.iter().collect()
    }

    #[cfg(unix)]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    receive
}

pub(crate) struct Server {
    pub(crate) remote: Remote,
    pub(crate) running: Running,
}

impl Server {
    pub(crate) fn start(directory: &Path, words: &[&str]) -> Self {
        Self::start_by(directory, words, ctcp)
    }

    /// The same, where `command` creates a command from its words.
    pub(crate) fn start_by(
        directory: &Path,
        words: &[&str],
        command: impl Fn(&Path, &[&str]) -> Command,
    ) -> Self {
        let listed = key(directory, KEY);
        let common = ["server", "-q", "--listen", "127.0.0.1:0", "--key", "server.key", "--client", &listed];
        let running = Running::start(command(directory, &[&common[..], words].concat()));
        let (running, remote) = Self::announced(running);
        Self { remote, running }
    }

    /// A started server, and the values in its line to paste.
    pub(crate) fn announced(running: Running) -> (Running, Remote) {
        let line = running.line();
        let after = |option: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != option);
            words.nth(1).expect("the line to paste has it").to_owned()
        };
        let remote = Remote { address: after("--server"), key: after("--server-key") };
        (running, remote)
    }
}

/// The public key of a key file, which is created if there is none.
pub(crate) fn key(directory: &Path, file: &str) -> String {
    if !directory.join(file).exists() {
        assert_eq!(run(directory, &["keygen", "--out", file]).0, Some(0));
    }
    let key = ctcp(directory, &["pubkey", file]).output().expect("it starts").stdout;
    String::from_utf8(key).expect("base64").trim().to_owned()
}

/// A running `ctcp client`, and the address of its SOCKS5 listener.
pub(crate) fn socks_client(command: Command) -> (Running, SocketAddr) {
    let running = Running::start(command);
    let line = running.line();
    let address = line.rsplit('/').next().and_then(|address| address.parse().ok());
    (running, address.expect("the line to paste has it"))
}

/// Requests a connection to a target; returns the connection to the proxy and the code of the reply.
pub(crate) fn socks(proxy: SocketAddr, target: SocketAddr) -> (TcpStream, u8) {
    let SocketAddr::V4(target) = target else { panic!("loopback here is IPv4") };
    let mut stream = TcpStream::connect(proxy).expect("the proxy is there");
    let head = [&[5, 1, 0, 5, 1, 0, 1][..], &target.ip().octets(), &target.port().to_be_bytes()].concat();
    stream.write_all(&head).expect("it is read");
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).expect("a reply");
    (stream, reply[3])
}

/// A target that sends these bytes to every client and closes.
pub(crate) fn serve(bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(&bytes);
        }
    });
    address
}

/// A target that sends hello and closes.
pub(crate) fn hello() -> SocketAddr {
    serve(b"hello".to_vec())
}
