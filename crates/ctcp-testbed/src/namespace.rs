//! A network namespace and a thread inside it. Without a name it lives as long as the thread, and ends with this process in any case.
//!
//! The thread stays and does what it is sent. Sockets that are made there, threads and programs that are started there belong to the
//! namespace. `setpriv --pdeathsig` has the kernel kill a program when the *thread* that started it ends, which is why
//! that thread must be this one.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::TestbedError;
use crate::process::Process;

type Job = Box<dyn FnOnce() + Send>;

/// Where `ip netns` keeps the namespaces that have names.
const NAMED: &str = "/run/netns";

/// A namespace with its loopback up.
#[derive(Debug)]
pub struct Namespace {
    name: &'static str,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// Makes a namespace. The name is for messages and for its thread only.
    ///
    /// # Errors
    /// When this user may make none, or the system cannot.
    pub fn new(name: &'static str) -> Result<Self, TestbedError> {
        let namespace = Self::inside(name, || unshare(CloneFlags::CLONE_NEWNET))?.map_err(|error| {
            TestbedError::Missing(format!(
                "cannot make a network namespace ({error}): the testbed needs root"
            ))
        })?;
        namespace.configure("link set dev lo up\n")?;
        Ok(namespace)
    }

    /// Enters a namespace that `ip netns add` made, and leaves it as it is when dropped.
    ///
    /// # Errors
    /// When there is none of that name, or this user may not enter it.
    pub fn open(role: &'static str, name: &str) -> Result<Self, TestbedError> {
        let failed = |error: &dyn core::fmt::Display| {
            TestbedError::Missing(format!(
                "cannot enter the network namespace `{name}` ({error}): make it with `ip netns add {name}`, as root"
            ))
        };
        let file = fs::File::open(Path::new(NAMED).join(name)).map_err(|error| failed(&error))?;
        Self::inside(role, move || setns(file, CloneFlags::CLONE_NEWNET))?.map_err(|error| failed(&error))
    }

    /// Starts the thread, which enters its namespace first.
    fn inside(
        name: &'static str,
        enter: impl FnOnce() -> nix::Result<()> + Send + 'static,
    ) -> Result<nix::Result<Self>, TestbedError> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (entered, result) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("{name} namespace"))
            .spawn(move || {
                let outcome = enter();
                let is_inside = outcome.is_ok();
                // Without a listener nobody waits for this namespace.
                if entered.send(outcome).is_ok() && is_inside {
                    inbox.iter().for_each(|job| job());
                }
            })
            .map_err(TestbedError::of("cannot start a thread"))?;
        let outcome = result.recv().expect("the thread answers");
        Ok(outcome.map(|()| Self { name, jobs: Some(jobs), thread: Some(thread) }))
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Does something in the namespace and waits for it. What takes long is better done by [`Namespace::spawn`].
    ///
    /// # Panics
    /// When `job` panics.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, result) = mpsc::channel();
        let job = move || {
            // The asking side waits until there is an answer.
            let _ = send.send(job());
        };
        self.jobs.as_ref().expect("there until dropped").send(Box::new(job)).expect("the thread stays");
        result.recv().expect("a job in a namespace does not panic")
    }

    /// Starts a thread in the namespace.
    ///
    /// # Panics
    /// When the system has no thread left.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.run(move || thread::Builder::new().name(name.to_owned()).spawn(job).expect("a thread starts"))
    }

    /// Starts a program in the namespace, which ends with it at the latest.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn start(&self, program: &Path, words: &[String]) -> Result<Process, TestbedError> {
        let (program, words) = (program.to_owned(), words.to_vec());
        self.run(move || Process::start(&program, &words))
    }

    /// Hands lines to `ip -batch` in the namespace.
    ///
    /// # Errors
    /// With what `ip` said.
    pub fn configure(&self, lines: &str) -> Result<(), TestbedError> {
        let lines = lines.to_owned();
        self.run(move || ip(&lines))
    }

    /// Sets a value below `/proc/sys`, of this namespace where the value is one of a namespace.
    ///
    /// # Errors
    /// When there is no such value or it cannot be that.
    pub fn set(&self, key: &'static str, value: &str) -> Result<(), TestbedError> {
        let value = value.to_owned();
        self.run(move || {
            let path = format!("/proc/sys/{}", key.replace('.', "/"));
            fs::write(path, &value).map_err(TestbedError::of(format_args!("cannot set {key} to {value}")))
        })
    }

    /// Whether somebody listens on a TCP port.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn is_listening_tcp(&self, port: u16) -> Result<bool, TestbedError> {
        // 0A is the state LISTEN.
        self.has_socket("tcp", port, "0A")
    }

    /// Whether somebody receives on a UDP port, from whomever.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn is_listening_udp(&self, port: u16) -> Result<bool, TestbedError> {
        // 07 stands for a socket that is not connected.
        self.has_socket("udp", port, "07")
    }

    /// How many UDP sockets there are.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn udp_sockets(&self) -> Result<usize, TestbedError> {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.lines().skip(1).count());
        let counts = self.run(move || {
            // A kernel without IPv6 has no such list.
            let six = read("/proc/thread-self/net/udp6").unwrap_or_default();
            read("/proc/thread-self/net/udp").map(|four| four + six)
        });
        counts.map_err(TestbedError::of("cannot read the list of sockets"))
    }

    fn has_socket(
        &self,
        protocol: &'static str,
        port: u16,
        state: &'static str,
    ) -> Result<bool, TestbedError> {
        let path = format!("/proc/thread-self/net/{protocol}");
        let text = self.run(move || fs::read_to_string(path));
        Ok(has_socket(&text.map_err(TestbedError::of("cannot read the list of sockets"))?, port, state))
    }

    /// Packets that each device refused to take for want of room, by the device's name.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn drops(&self) -> Result<HashMap<String, u64>, TestbedError> {
        let text = self.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
        Ok(transmit_drops(&text.map_err(TestbedError::of("cannot read the devices' counters"))?))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Without a sender the thread's loop ends.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of a job was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn ip(lines: &str) -> Result<(), TestbedError> {
    let child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| {
        TestbedError::Missing(format!("cannot run `ip` ({error}): the testbed needs the package iproute2"))
    })?;
    if let Some(mut input) = child.stdin.take() {
        // When `ip` does not read, what it says tells why.
        let _ = input.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().map_err(TestbedError::of("ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TestbedError::failed(format!("`ip` failed: {}", said.lines().next().unwrap_or("without a word"))))
}

/// The column `drop` of `Transmit` in the format of `/proc/net/dev`.
fn transmit_drops(text: &str) -> HashMap<String, u64> {
    let device = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let dropped = counters.split_whitespace().nth(11)?.parse().ok()?;
        Some((name.trim().to_owned(), dropped))
    };
    text.lines().filter_map(device).collect()
}

/// Whether a socket with that local port and state is in a text of the format of `/proc/net/tcp`.
fn has_socket(text: &str, port: u16, state: &str) -> bool {
    let port = format!(":{port:04X}");
    text.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some(state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_local_port_and_its_state() {
        let text =
            "  sl  local_address rem_address   st tx_queue\n   0: 0100007F:4E21 00000000:0000 0A 0:0\n";
        assert!(has_socket(text, 0x4E21, "0A"));
        assert!(!has_socket(text, 0x4E21, "01") && !has_socket(text, 0x4E20, "0A"));
        assert!(!has_socket(text, 0, "0A"), "the remote port is another one");
    }

    #[test]
    fn drops_of_devices_are_read_from_their_column() {
        let text = "Inter-|   Receive      |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes \
                    packets errs drop fifo colls carrier compressed\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n \
                    path1:1 2 0 0 0 0 0 0 9 10 0 77 0 0 0 0\n";
        let found = transmit_drops(text);
        assert_eq!((found.get("lo"), found.get("path1"), found.len()), (Some(&12), Some(&77), 2));
    }
}
