//! A network namespace and a thread inside it. An unnamed namespace exists as long as the thread, and ends with this process in any case.
//!
//! The thread runs the jobs that are sent to it. Sockets, threads and programs that a job creates belong to the namespace. With
//! `setpriv --pdeathsig`, the kernel kills a program when the *thread* that started it ends, so this thread has to start all programs.

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

/// The folder of `ip netns` for named namespaces.
const NAMED: &str = "/run/netns";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: &'static str,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// Creates an unnamed namespace whose loopback interface is up. `name` is used in messages and for the thread.
    ///
    /// # Errors
    /// Returns an error if this user or system cannot create namespaces.
    pub fn new(name: &'static str) -> Result<Self, TestbedError> {
        let namespace = Self::inside(name, || unshare(CloneFlags::CLONE_NEWNET))?.map_err(|error| {
            TestbedError::Missing(format!(
                "cannot make a network namespace ({error}): the testbed needs root"
            ))
        })?;
        namespace.configure("link set dev lo up\n")?;
        Ok(namespace)
    }

    /// Enters a namespace created by `ip netns add`, which outlives this value. `role` is used in messages.
    ///
    /// # Errors
    /// Returns an error if there is no such namespace, or if this user may not enter it.
    pub fn open(role: &'static str, name: &str) -> Result<Self, TestbedError> {
        let failed = |error: &dyn core::fmt::Display| {
            TestbedError::Missing(format!(
                "cannot enter the network namespace `{name}` ({error}): make it with `ip netns add {name}`, as root"
            ))
        };
        let file = fs::File::open(Path::new(NAMED).join(name)).map_err(|error| failed(&error))?;
        Self::inside(role, move || setns(file, CloneFlags::CLONE_NEWNET))?.map_err(|error| failed(&error))
    }

    /// Starts the thread, which first enters its namespace.
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
                // The receiver is gone only if the caller has failed.
                if entered.send(outcome).is_ok() && is_inside {
                    inbox.iter().for_each(|job| job());
                }
            })
            .map_err(TestbedError::of("cannot start a thread"))?;
        let outcome = result.recv().expect("the thread answers");
        Ok(outcome.map(|()| Self { name, jobs: Some(jobs), thread: Some(thread) }))
    }

    /// The name used in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs a job in the namespace and waits for its result. Use [`Namespace::spawn`] for long jobs.
    ///
    /// # Panics
    /// Panics if `job` panics.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, result) = mpsc::channel();
        let job = move || {
            // The caller waits for the result.
            let _ = send.send(job());
        };
        self.jobs.as_ref().expect("there until dropped").send(Box::new(job)).expect("the thread stays");
        result.recv().expect("a job in a namespace does not panic")
    }

    /// Starts a thread in the namespace.
    ///
    /// # Panics
    /// Panics if the system cannot start a thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.run(move || thread::Builder::new().name(name.to_owned()).spawn(job).expect("a thread starts"))
    }

    /// Starts a program in the namespace. It is killed when the namespace is dropped.
    ///
    /// # Errors
    /// Returns an error if there is no such program.
    pub fn start(&self, program: &Path, words: &[String]) -> Result<Process, TestbedError> {
        let (program, words) = (program.to_owned(), words.to_vec());
        self.run(move || Process::start(&program, &words))
    }

    /// Runs `ip -batch` in the namespace with these lines.
    ///
    /// # Errors
    /// Returns an error with the message of `ip`.
    pub fn configure(&self, lines: &str) -> Result<(), TestbedError> {
        let lines = lines.to_owned();
        self.run(move || ip(&lines))
    }

    /// Sets a value below `/proc/sys`. Values that exist per namespace are set for this namespace only.
    ///
    /// # Errors
    /// Returns an error if there is no such value or if it is invalid.
    pub fn set(&self, key: &'static str, value: &str) -> Result<(), TestbedError> {
        let value = value.to_owned();
        self.run(move || {
            let path = format!("/proc/sys/{}", key.replace('.', "/"));
            fs::write(path, &value).map_err(TestbedError::of(format_args!("cannot set {key} to {value}")))
        })
    }

    /// Whether a socket listens on this TCP port.
    ///
    /// # Errors
    /// Returns an error if the system's list cannot be read.
    pub fn is_listening_tcp(&self, port: u16) -> Result<bool, TestbedError> {
        // 0A is the state LISTEN.
        self.has_socket("tcp", port, "0A")
    }

    /// Whether an unconnected socket is bound to this UDP port.
    ///
    /// # Errors
    /// Returns an error if the system's list cannot be read.
    pub fn is_listening_udp(&self, port: u16) -> Result<bool, TestbedError> {
        // 07 stands for a socket that is not connected.
        self.has_socket("udp", port, "07")
    }

    /// The number of UDP sockets.
    ///
    /// # Errors
    /// Returns an error if the system's list cannot be read.
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

    /// Packets that each device dropped because its queue was full, by the name of the device.
    ///
    /// # Errors
    /// Returns an error if the system's list cannot be read.
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
            // A panic of a job was already reported.
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
        // If `ip` does not read its input, its message has the reason.
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

/// Whether a text in the format of `/proc/net/tcp` has a socket with this local port and state.
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
