//! The server: a thread that accepts and one for each connection.

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
    /// Listens on the server's address of the first path, where clients and tunnels' servers reach it alike.
    ///
    /// # Errors
    /// When the kernel has no such sockets.
    pub fn start(network: &Network, socket: SocketPlan) -> Result<Self, TestbedError> {
        let address = SocketAddr::V4(SocketAddrV4::new(network.server_address(), network.new_port()));
        let listener = network.server.run(move || socket.listen(address))?;
        let (ending, cpu) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&ending), Arc::clone(&cpu));
        let thread = network.server.spawn("bulk server", move || accept(&listener, &shared.0, &shared.1));
        Ok(Self { address, ending, cpu, thread: Some(thread) })
    }

    /// Where it listens.
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

fn accept(listener: &Socket, ending: &Arc<AtomicBool>, cpu: &Arc<AtomicU64>) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while !ending.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap_or(0) == 0 {
            continue;
        }
        // A connection that ended before it was accepted.
        let Ok((connection, _)) = listener.accept() else { continue };
        let (ending, cpu) = (Arc::clone(ending), Arc::clone(cpu));
        connections.push(thread::spawn(move || {
            // A client that goes away before its end has what it wanted.
            let _ = serve(connection, &ending);
            cpu.fetch_add(thread_cpu_nanos(), Ordering::Relaxed);
        }));
        connections.retain(|connection| !connection.is_finished());
    }
    for connection in connections {
        // As above.
        let _ = connection.join();
    }
}

fn serve(mut connection: Socket, ending: &AtomicBool) -> io::Result<()> {
    connection.set_read_timeout(Some(LOOK_EVERY))?;
    connection.set_write_timeout(Some(LOOK_EVERY))?;
    let (mut request, mut got) = ([0; 8], 0);
    while got < request.len() {
        match connection.read(&mut request[got..]) {
            Ok(0) => return Ok(()),
            Ok(length) => got += length,
            Err(error) if is_timeout(&error) && !ending.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
    let wanted = u64::from_be_bytes(request);
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

/// CPU time of the present thread.
pub(super) fn thread_cpu_nanos() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}
