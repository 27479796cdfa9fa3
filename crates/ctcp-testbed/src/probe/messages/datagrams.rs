//! Messages as datagrams, through a transport that carries datagrams.
//!
//! ```text
//!   one way (SRT):   server --> entry ==== transport ====> exit
//!   as answers:      target <======= transport <== entry <-- client's first datagram
//!                    target ========> transport ==> entry --> client
//! ```

use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::stream::padding;
use super::{AFTERWARDS, Delivery, Messages, WARM_UP, read_message, write_message};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::DatagramEnds;
use crate::priority::ask_for_real_time;

/// The interval between first messages, until one arrives.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The number of a first message, which is not counted.
const FIRST: u64 = u64::MAX;

/// Which messages count as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Those that arrive after all earlier ones: an earlier one that arrives later is of no use to a player.
    Ascending,
    /// All, each once.
    Any,
}

/// A socket in the server's namespace that answers the first datagram with messages.
#[derive(Debug)]
pub struct DatagramTarget {
    socket: UdpSocket,
    address: SocketAddr,
}

impl DatagramTarget {
    /// Binds a socket to the server's address of the first path.
    ///
    /// # Errors
    /// Returns an error if there is no such socket.
    pub fn bind(network: &Network) -> Result<Self, TestbedError> {
        let address = SocketAddr::new(IpAddr::V4(network.server_address()), network.new_port());
        let socket = network.server.run(move || {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = socket
            .map_err(|error: io::Error| TestbedError::failed(format!("cannot bind {address}: {error}")))?;
        Ok(Self { socket, address })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects to whoever sent a datagram, if one has arrived.
    fn hear(&self) {
        if let Ok((_, from)) = self.socket.recv_from(&mut [0; 64]) {
            // If it fails, the next datagram repeats it.
            let _ = self.socket.connect(from);
        }
    }
}

/// Messages from the entry to the exit of a peer.
pub(super) fn run(
    messages: Messages,
    network: &Network,
    ends: DatagramEnds,
    on_warm: impl FnOnce(),
) -> Result<Delivery, TestbedError> {
    let receiver = network.client.run(move || UdpSocket::bind(ends.exit)).map_err(fail())?;
    let sender = network.server.run(|| UdpSocket::bind("127.0.0.1:0")).map_err(fail())?;
    sender.connect(ends.entry).map_err(fail())?;
    transfer(messages, network, (&sender, receiver), Order::Ascending, || {}, on_warm)
}

/// Messages from a target to the program that asks it, through the entry of a peer.
pub(super) fn answer(
    messages: Messages,
    network: &Network,
    target: DatagramTarget,
    entry: SocketAddr,
    on_warm: impl FnOnce(),
) -> Result<Delivery, TestbedError> {
    let receiver = network.client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).map_err(fail())?;
    receiver.connect(entry).map_err(fail())?;
    let asking = receiver.try_clone().map_err(fail())?;
    let ask = || {
        // The other side may not be listening yet.
        let _ = asking.send(b"messages, please");
        target.hear();
    };
    transfer(messages, network, (&target.socket, receiver), Order::Any, ask, on_warm)
}

fn fail<E: core::fmt::Display>() -> impl FnOnce(E) -> TestbedError {
    TestbedError::of("cannot send messages as datagrams")
}

fn transfer(
    messages: Messages,
    network: &Network,
    (sender, receiver): (&UdpSocket, UdpSocket),
    order: Order,
    ask: impl FnMut(),
    on_warm: impl FnOnce(),
) -> Result<Delivery, TestbedError> {
    let (done, heard, clock) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), network.clock);
    let receiving = {
        let (done, heard) = (Arc::clone(&done), Arc::clone(&heard));
        thread::spawn(move || receive(&receiver, order, clock, &done, &heard))
    };
    let sent = warm_up(messages, network, sender, &heard, ask).and_then(|()| {
        on_warm();
        send(messages, network, sender)
    });
    done.store(true, Ordering::Relaxed);
    let latencies = receiving.join().expect("it does not panic").map_err(fail())?;
    sent?;
    Ok(Delivery { due: messages.count(), latencies })
}

/// Sends first messages until one arrives.
fn warm_up(
    messages: Messages,
    network: &Network,
    sender: &UdpSocket,
    heard: &AtomicU64,
    mut ask: impl FnMut(),
) -> Result<(), TestbedError> {
    let mut message = padding(messages.bytes);
    write_message(&mut message, network.clock.now(), FIRST);
    network.wait_until("a first message as a datagram", WARM_UP, || {
        ask();
        // The other side may not be listening yet.
        let _ = sender.send(&message);
        network.stop.sleep(ASK_EVERY)?;
        Ok(heard.load(Ordering::Relaxed) > 0)
    })?;
    // Waits for first messages that are still in flight.
    network.stop.sleep(Duration::from_millis(500))
}

fn send(messages: Messages, network: &Network, sender: &UdpSocket) -> Result<(), TestbedError> {
    let mut message = padding(messages.bytes);
    let (clock, mut due) = (network.clock, network.clock.now());
    for number in 0..messages.count() {
        thread::sleep(due.saturating_since(clock.now()));
        write_message(&mut message, due, number);
        sender.send(&message).map_err(TestbedError::of("cannot send a message as a datagram"))?;
        due += messages.interval();
        network.stop.check()?;
    }
    network.stop.sleep(AFTERWARDS)
}

/// Receives messages and returns the latencies of those that count.
fn receive(
    socket: &UdpSocket,
    order: Order,
    clock: Clock,
    done: &AtomicBool,
    heard: &AtomicU64,
) -> io::Result<Vec<Duration>> {
    // A late wake-up of this thread would be measured as the transport's delay.
    ask_for_real_time();
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (mut latencies, mut buffer, mut seen) = (Vec::new(), [0; 2_048], BTreeSet::new());
    while !done.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(length) if length >= super::HEADER => {
                heard.fetch_add(1, Ordering::Relaxed);
                let (due, number) = read_message(&buffer);
                let is_useful = order == Order::Any || seen.last().is_none_or(|last| number > *last);
                if number != FIRST && is_useful && seen.insert(number) {
                    latencies.push(clock.now().saturating_since(due));
                }
            }
            Ok(_) => {}
            // Nothing has arrived, or nobody listens yet at the entry.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(latencies)
}
