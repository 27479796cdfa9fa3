//! Messages on a connection.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use ctcp_base::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use super::{AFTERWARDS, Delivery, HEADER, Messages, WARM_UP, read_message, word, write_message};
use crate::bulk::{ENDLESS, SocketPlan, is_timeout, send_pattern};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Carrier, Peer};
use crate::priority::ask_for_real_time;
use crate::stop::{LOOK_EVERY, Stop};

/// Sends messages to clients that request them, until it is dropped.
#[derive(Debug)]
pub struct MessageServer {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MessageServer {
    /// Listens on the server's address of the first path. Messages have `bytes`.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such sockets.
    pub fn start(network: &Network, socket: SocketPlan, bytes: usize) -> Result<Self, TestbedError> {
        let address = SocketAddr::V4(SocketAddrV4::new(network.server_address(), network.new_port()));
        let listener = network.server.run(move || socket.listen(address))?;
        let (ending, clock) = (Arc::new(AtomicBool::new(false)), network.clock);
        let shared = Arc::clone(&ending);
        let thread = network.server.spawn("messages", move || accept(&listener, &shared, clock, bytes));
        Ok(Self { address, ending, thread: Some(thread) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MessageServer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn accept(listener: &Socket, ending: &Arc<AtomicBool>, clock: Clock, bytes: usize) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while !ending.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap_or(0) == 0 {
            continue;
        }
        // The connection ended before it was accepted.
        let Ok((connection, _)) = listener.accept() else { continue };
        let ending = Arc::clone(ending);
        connections.push(thread::spawn(move || {
            // A client that disconnects has all messages it needs.
            let _ = serve(connection, &ending, clock, bytes);
        }));
    }
    for connection in connections {
        // A panic was reported when it happened.
        let _ = connection.join();
    }
}

fn serve(mut connection: Socket, ending: &AtomicBool, clock: Clock, bytes: usize) -> io::Result<()> {
    connection.set_tcp_nodelay(true)?;
    connection.set_write_timeout(Some(LOOK_EVERY))?;
    connection.set_read_timeout(Some(WARM_UP))?;
    let (mut interval, mut count) = ([0; 8], [0; 8]);
    connection.read_exact(&mut interval)?;
    if word(&interval) == ENDLESS {
        return send_pattern(&mut connection, ENDLESS, ending);
    }
    ask_for_real_time();
    connection.read_exact(&mut count)?;
    let (interval, count) = (Duration::from_nanos(word(&interval)), word(&count));
    let (mut message, mut due) = (padding(bytes), clock.now());
    for number in 0..count {
        thread::sleep(due.saturating_since(clock.now()));
        write_message(&mut message, due, number);
        let mut written = 0;
        while written < message.len() {
            match connection.write(&message[written..]) {
                Ok(length) => written += length,
                Err(error) if is_timeout(&error) && !ending.load(Ordering::Relaxed) => {}
                Err(error) => return Err(error),
            }
        }
        due += interval;
    }
    connection.shutdown(Shutdown::Write)
}

/// Incompressible bytes, with room for the header.
pub(super) fn padding(bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes.max(HEADER)];
    ctcp_base::Prng::new(2_026).fill(&mut message);
    message
}

pub(super) fn run(
    messages: Messages,
    network: &Network,
    peer: &dyn Peer,
    carrier: &Carrier,
    on_warm: impl FnOnce(),
) -> Result<Delivery, TestbedError> {
    let request = |messages: Messages, count, patience| {
        let reception =
            Reception { messages, count, patience, clock: network.clock, stop: network.stop.clone() };
        let (entry, socket) = (carrier.interactive.unwrap_or(carrier.entry), peer.socket());
        let thread = network.client.spawn("messages", move || reception.run(entry, socket));
        thread.join().expect("a reception does not panic")
    };
    if carrier.is_tunnel() && request(messages, 1, WARM_UP)?.latencies.is_empty() {
        return Err(TestbedError::failed(format!("{} carried no message", peer.name())));
    }
    on_warm();
    request(messages, messages.count(), messages.time + AFTERWARDS)
}

/// Receives the messages of one connection.
struct Reception {
    messages: Messages,
    count: u64,
    patience: Duration,
    clock: Clock,
    stop: Stop,
}

impl Reception {
    fn run(self, entry: SocketAddr, socket: SocketPlan) -> Result<Delivery, TestbedError> {
        let mut delivery = Delivery { due: self.count, ..Delivery::default() };
        let mut connection = socket.socket()?;
        let connected = connection.connect_timeout(&entry.into(), self.patience);
        if connected.as_ref().is_err_and(is_timeout) {
            return Ok(delivery);
        }
        let interval = u64::try_from(self.messages.interval().as_nanos()).expect("below centuries");
        let request = [interval.to_be_bytes(), self.count.to_be_bytes()].concat();
        connected
            .and_then(|()| connection.set_tcp_nodelay(true))
            .and_then(|()| connection.set_read_timeout(Some(LOOK_EVERY)))
            .and_then(|()| connection.write_all(&request))
            .map_err(TestbedError::of(format_args!("messages from {entry}")))?;
        // A late wake-up of this thread would be measured as the transport's delay.
        ask_for_real_time();
        let end = self.clock.now() + self.patience;
        self.receive(&mut connection, end, &mut delivery)?;
        Ok(delivery)
    }

    fn receive(
        &self,
        connection: &mut Socket,
        end: Instant,
        delivery: &mut Delivery,
    ) -> Result<(), TestbedError> {
        let (mut message, mut got) = (vec![0; self.messages.bytes], 0);
        while (delivery.latencies.len() as u64) < self.count && self.clock.now() < end {
            self.stop.check()?;
            match connection.read(&mut message[got..]) {
                Ok(0) => break,
                Ok(length) => got += length,
                Err(error) if is_timeout(&error) => {}
                // Transports end a connection in this way when they can no longer serve it.
                Err(_) => break,
            }
            if got == message.len() {
                let (due, number) = read_message(&message);
                let expected = delivery.latencies.len() as u64;
                if number != expected {
                    let what = format!("message {number} arrived instead of message {expected}");
                    return Err(TestbedError::failed(what));
                }
                delivery.latencies.push(self.clock.now().saturating_since(due));
                got = 0;
            }
        }
        Ok(())
    }
}
