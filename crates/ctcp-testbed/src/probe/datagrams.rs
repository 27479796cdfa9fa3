//! Datagrams from the server to the client at a rate, each with its number and its time of sending.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use ctcp_base::{Instant, Rate};

use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::priority::ask_for_real_time;
use crate::stop::Stop;

/// IP and UDP headers.
const HEADERS: usize = 28;

/// The shortest pause of the sender; if they are due more often, several are sent at once.
const PAUSE: Duration = Duration::from_micros(200);

/// How long datagrams may still arrive after the last one was sent.
const AFTERWARDS: Duration = Duration::from_millis(700);

/// The datagrams to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// The index of the path.
    pub path: usize,
    /// Bytes of an IP packet, from 44 to 1500.
    pub packet_bytes: usize,
    /// The rate of IP packets.
    pub rate: Rate,
    /// The duration.
    pub time: Duration,
}

/// The datagrams that arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The number of datagrams sent.
    pub sent: u64,
    /// Bytes of a packet.
    pub packet_bytes: usize,
    /// The times of sending and receipt of each datagram that arrived, in the order of arrival.
    pub times: Vec<(Instant, Instant)>,
}

impl Arrivals {
    /// The share that was lost.
    #[must_use]
    pub fn loss(&self) -> f64 {
        1.0 - self.times.len() as f64 / self.sent.max(1) as f64
    }

    /// Bits per second of IP packets that arrived between two times since the first one was sent.
    #[must_use]
    pub fn rate_between(&self, from: Duration, to: Duration) -> f64 {
        let Some(start) = self.times.first().map(|(sent, _)| *sent) else { return 0.0 };
        let count = self.times.iter().filter(|(_, at)| (start + from..start + to).contains(at)).count();
        count as f64 * self.packet_bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }

    /// The delay of each, from sending to receipt.
    pub fn delays(&self) -> impl Iterator<Item = Duration> {
        self.times.iter().map(|(sent, received)| received.saturating_since(*sent))
    }
}

impl Datagrams {
    /// Sends them and waits for their arrival.
    ///
    /// # Errors
    /// Returns an error if there are no such sockets, or the measurement was interrupted.
    ///
    /// # Panics
    /// Panics if a thread panicked.
    pub fn run(self, network: &Network) -> Result<Arrivals, TestbedError> {
        let path = network.paths().nth(self.path).expect("a path of the plan");
        let fail = || TestbedError::of("cannot send datagrams");
        let address = SocketAddr::new(IpAddr::V4(path.client), network.new_port());
        let receiver = network.client.run(move || UdpSocket::bind(address)).map_err(fail())?;
        let from = SocketAddr::new(IpAddr::V4(path.server), 0);
        let sender = network.server.run(move || UdpSocket::bind(from)).map_err(fail())?;
        sender.connect(address).map_err(fail())?;
        let (clock, done) = (network.clock, Arc::new(AtomicBool::new(false)));
        let receiving: JoinHandle<io::Result<_>> = {
            let done = Arc::clone(&done);
            thread::spawn(move || receive(&receiver, clock, &done))
        };
        let sent = self.send(&sender, clock, &network.stop);
        let rest = sent.is_ok().then(|| network.stop.sleep(AFTERWARDS));
        done.store(true, Ordering::Relaxed);
        let times = receiving.join().expect("it does not panic").map_err(fail())?;
        rest.transpose()?;
        Ok(Arrivals { sent: sent?, packet_bytes: self.packet_bytes, times })
    }

    fn send(self, socket: &UdpSocket, clock: Clock, stop: &Stop) -> Result<u64, TestbedError> {
        let mut datagram = vec![0; self.packet_bytes - HEADERS];
        let interval = self.rate.time_to_send(self.packet_bytes as u64);
        let start = clock.now();
        let (mut next, mut sent) = (start, 0);
        while next < start + self.time {
            let now = clock.now();
            if now < next {
                thread::sleep((next - now).max(PAUSE));
                stop.check()?;
                continue;
            }
            datagram[..8].copy_from_slice(&clock.now().as_nanos().to_be_bytes());
            socket.send(&datagram).map_err(TestbedError::of("cannot send datagrams"))?;
            sent += 1;
            next += interval;
        }
        Ok(sent)
    }
}

fn receive(socket: &UdpSocket, clock: Clock, done: &AtomicBool) -> io::Result<Vec<(Instant, Instant)>> {
    // A late wake-up of this thread would be measured as the network's delay.
    ask_for_real_time();
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (mut times, mut datagram) = (Vec::new(), [0; 2_048]);
    while !done.load(Ordering::Relaxed) {
        match socket.recv(&mut datagram) {
            Ok(length) if length >= 8 => {
                let sent = datagram[..8].iter().fold(0, |sent, byte| sent << 8 | u64::from(*byte));
                times.push((Instant::from_nanos(sent), clock.now()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_rate_and_delays_are_those_of_what_arrived() {
        let times = (0..8).map(|n| (Instant::from_millis(n * 10), Instant::from_millis(n * 10 + 25)));
        let arrivals = Arrivals { sent: 10, packet_bytes: 1_250, times: times.collect() };
        assert!((arrivals.loss() - 0.2).abs() < 1e-12);
        // Four arrive from 25 to 64 ms: 40,000 bits in 40 ms.
        let rate = arrivals.rate_between(Duration::from_millis(25), Duration::from_millis(65));
        assert!((rate - 1e6).abs() < 1e-6, "{rate}");
        assert!(arrivals.delays().all(|delay| delay == Duration::from_millis(25)));
        assert_eq!(Arrivals::default().loss(), 1.0);
    }
}
