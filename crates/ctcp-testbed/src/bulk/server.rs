//! The server: a thread that accepts, and one thread per connection. It implements the protocol above or the part of
//! HTTP/1.1 (RFC 9112) that download programs need: `GET /BYTES` is answered with that many bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use socket2::Socket;

use super::pattern::{BLOCK, block};
use super::socket::{SocketPlan, is_timeout};
use crate::error::TestbedError;
use crate::network::Network;
use crate::stop::LOOK_EVERY;

/// Serves until it is dropped.
#[derive(Debug)]
pub struct BulkServer {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    cpu: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl BulkServer {
    /// Listens on the server's address of the first path, which both clients and tunnels' servers can reach.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such sockets.
    pub fn start(network: &Network, socket: SocketPlan) -> Result<Self, TestbedError> {
        Self::start_with(network, socket, read_wish)
    }

    /// The same as a web server.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such sockets.
    pub fn start_web(network: &Network, socket: SocketPlan) -> Result<Self, TestbedError> {
        Self::start_with(network, socket, read_http)
    }

    fn start_with(network: &Network, socket: SocketPlan, read: ReadRequest) -> Result<Self, TestbedError> {
        let address = SocketAddr::V4(SocketAddrV4::new(network.server_address(), network.new_port()));
        let listener = network.server.run(move || socket.listen(address))?;
        let (ending, cpu) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&ending), Arc::clone(&cpu));
        let thread =
            network.server.spawn("bulk server", move || accept(&listener, read, &shared.0, &shared.1));
        Ok(Self { address, ending, cpu, thread: Some(thread) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time of its connections, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

impl Drop for BulkServer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Reads a request, sends what precedes the bytes, and returns their number; `None` if the client disconnected.
type ReadRequest = fn(&mut Socket, &AtomicBool) -> io::Result<Option<u64>>;

/// A download without end.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// The maximum size of a request.
const REQUEST_MAX: usize = 8_192;

fn accept(listener: &Socket, read: ReadRequest, ending: &Arc<AtomicBool>, cpu: &Arc<AtomicU64>) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while !ending.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap_or(0) == 0 {
            continue;
        }
        // The connection ended before it was accepted.
        let Ok((connection, _)) = listener.accept() else { continue };
        let (ending, cpu) = (Arc::clone(ending), Arc::clone(cpu));
        connections.push(thread::spawn(move || {
            // A client that disconnects early has all the data it needs.
            let _ = serve(connection, read, &ending);
            cpu.fetch_add(thread_cpu_nanos(), Ordering::Relaxed);
        }));
        connections.retain(|connection| !connection.is_finished());
    }
    for connection in connections {
        // Panics are reported already.
        let _ = connection.join();
    }
}

fn serve(mut connection: Socket, read: ReadRequest, ending: &AtomicBool) -> io::Result<()> {
    connection.set_read_timeout(Some(LOOK_EVERY))?;
    connection.set_write_timeout(Some(LOOK_EVERY))?;
    let Some(wanted) = read(&mut connection, ending)? else { return Ok(()) };
    send_pattern(&mut connection, wanted, ending)
}

/// Sends that many bytes of the pattern, on a connection whose writes time out, and ends the direction.
pub(crate) fn send_pattern(connection: &mut Socket, wanted: u64, ending: &AtomicBool) -> io::Result<()> {
    let mut sent: u64 = 0;
    while sent < wanted {
        let place = (sent % BLOCK as u64) as usize;
        let length = usize::try_from(wanted - sent).unwrap_or(BLOCK).min(BLOCK - place);
        match connection.write(&block()[place..place + length]) {
            Ok(length) => sent += length as u64,
            Err(error) if is_timeout(&error) && !ending.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
    connection.shutdown(Shutdown::Write)
}

fn read_wish(connection: &mut Socket, ending: &AtomicBool) -> io::Result<Option<u64>> {
    let request = read_until(connection, ending, |request| request.len() >= 8)?;
    Ok(request.and_then(|request| Some(u64::from_be_bytes(request.get(..8)?.try_into().ok()?))))
}

fn read_http(connection: &mut Socket, ending: &AtomicBool) -> io::Result<Option<u64>> {
    let is_whole = |request: &[u8]| request.windows(4).any(|end| end == b"\r\n\r\n");
    let Some(request) = read_until(connection, ending, is_whole)? else { return Ok(None) };
    let (status, wanted) = match wanted_bytes(&String::from_utf8_lossy(&request)) {
        Some(wanted) => ("200 OK", wanted),
        None => ("404 Not Found", 0),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {wanted}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes())?;
    Ok(Some(wanted))
}

/// The number of bytes that an HTTP request asks for.
fn wanted_bytes(request: &str) -> Option<u64> {
    request.strip_prefix("GET /")?.split(' ').next()?.parse().ok()
}

fn read_until(
    connection: &mut Socket,
    ending: &AtomicBool,
    is_whole: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1_024]);
    while !is_whole(&request) && request.len() < REQUEST_MAX {
        match connection.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => request.extend_from_slice(&buffer[..length]),
            Err(error) if is_timeout(&error) && !ending.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(request))
}

/// CPU time of the current thread.
pub(super) fn thread_cpu_nanos() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_request_names_the_number_of_bytes() {
        assert_eq!(wanted_bytes("GET /1000 HTTP/1.1\r\nHost: a\r\n\r\n"), Some(1_000));
        assert_eq!(wanted_bytes("GET / HTTP/1.1\r\n\r\n"), None);
        assert_eq!(wanted_bytes("POST /1 HTTP/1.1\r\n\r\n"), None);
    }
}
