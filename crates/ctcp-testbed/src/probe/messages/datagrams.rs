//! Messages as datagrams, through a transport that carries datagrams.

use core::time::Duration;
use std::io;
use std::net::UdpSocket;
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

pub(super) fn run(
    messages: Messages,
    network: &Network,
    ends: DatagramEnds,
    on_warm: impl FnOnce(),
) -> Result<Delivery, TestbedError> {
    let fail = || TestbedError::of("cannot send messages as datagrams");
    let receiver = network.client.run(move || UdpSocket::bind(ends.exit)).map_err(fail())?;
    let sender = network.server.run(|| UdpSocket::bind("127.0.0.1:0")).map_err(fail())?;
    sender.connect(ends.entry).map_err(fail())?;
    let (done, heard, clock) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), network.clock);
    let receiving = {
        let (done, heard) = (Arc::clone(&done), Arc::clone(&heard));
        thread::spawn(move || receive(&receiver, clock, &done, &heard))
    };
    let sent = warm_up(messages, network, &sender, &heard).and_then(|()| {
        on_warm();
        send(messages, network, &sender)
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
) -> Result<(), TestbedError> {
    let mut message = padding(messages.bytes);
    write_message(&mut message, network.clock.now(), FIRST);
    network.wait_until("a first message as a datagram", WARM_UP, || {
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

/// Receives the messages in order. One that arrives after a later one is of no use to a player.
fn receive(
    socket: &UdpSocket,
    clock: Clock,
    done: &AtomicBool,
    heard: &AtomicU64,
) -> io::Result<Vec<Duration>> {
    // A late wake-up of this thread would be measured as the transport's delay.
    ask_for_real_time();
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (mut latencies, mut buffer, mut next) = (Vec::new(), [0; 2_048], 0);
    while !done.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(length) if length >= super::HEADER => {
                heard.fetch_add(1, Ordering::Relaxed);
                let (due, number) = read_message(&buffer);
                if number != FIRST && number >= next {
                    latencies.push(clock.now().saturating_since(due));
                    next = number + 1;
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(latencies)
}
