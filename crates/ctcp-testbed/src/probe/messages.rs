//! A stream of messages at a steady rate, like a call or live video: measures the time from when each message was due
//! to its delivery in order.
//!
//! ```text
//!   client:  interval in nanoseconds, number of messages: 8 bytes each, in network order
//!   server:  that many messages: its due time (nanoseconds on the network's clock), its number, padding
//! ```
//!
//! The latency of a message counts from its due time, so that waiting for the transport to accept it counts too. A
//! transport that carries datagrams gets one message per datagram.
//!
//! An interval of `u64::MAX` asks for an endless download from the same server instead, which is then sent alongside.

mod datagrams;
mod stream;

use core::time::Duration;
use std::net::SocketAddr;

use ctcp_base::{Instant, Rate};

use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Carrier, Peer};

pub use datagrams::DatagramTarget;
pub use stream::MessageServer;

/// A message of an interactive program that arrives later than this is of no use to it.
pub const DEADLINE: Duration = Duration::from_millis(100);

/// How long messages may still arrive after the last one was due.
pub(crate) const AFTERWARDS: Duration = Duration::from_secs(2);

/// The time limit for a transport's first message.
const WARM_UP: Duration = Duration::from_secs(20);

/// The due time and the number.
const HEADER: usize = 16;

/// The messages to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Bytes of a message, at least 16.
    pub bytes: usize,
    /// The rate of the messages' bytes.
    pub rate: Rate,
    /// The duration.
    pub time: Duration,
}

/// The messages that were delivered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivery {
    /// Messages that were due.
    pub due: u64,
    /// The latency of each delivered message, in the order of delivery.
    pub latencies: Vec<Duration>,
}

impl Delivery {
    /// The share that was not delivered: dropped by the transport, or not there two seconds after the last one was due.
    #[must_use]
    pub fn missing(&self) -> f64 {
        1.0 - self.latencies.len() as f64 / self.due.max(1) as f64
    }

    /// The share that was not delivered within `deadline`.
    #[must_use]
    pub fn late(&self, deadline: Duration) -> f64 {
        let in_time = self.latencies.iter().filter(|latency| **latency <= deadline).count();
        1.0 - in_time as f64 / self.due.max(1) as f64
    }

    /// The latency that this share of all messages did not exceed; `None` if fewer were delivered.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let place = (self.due as f64 * share).ceil() as usize;
        sorted.get(place.max(1) - 1).copied()
    }
}

impl Messages {
    /// The number of messages.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::try_from(self.time.as_nanos() / self.interval().as_nanos())
            .expect("durations are shorter than centuries")
    }

    fn interval(self) -> Duration {
        self.rate.time_to_send(self.bytes as u64)
    }

    /// Sends them through a peer that was started with `server` as its target. A first message establishes the peer's
    /// connection.
    ///
    /// # Errors
    /// Returns an error if nothing is delivered, or the measurement was interrupted.
    pub fn run(
        self,
        network: &Network,
        peer: &dyn Peer,
        carrier: &Carrier,
        on_warm: impl FnOnce(),
    ) -> Result<Delivery, TestbedError> {
        match carrier.datagrams {
            Some(ends) => datagrams::run(self, network, ends, on_warm),
            None => stream::run(self, network, peer, carrier, on_warm),
        }
    }

    /// Sends them as datagrams, in any order, through a peer that carries UDP from `entry` to `target`.
    ///
    /// # Errors
    /// Returns an error if nothing is delivered, or the measurement was interrupted.
    pub fn run_datagrams(
        self,
        network: &Network,
        target: DatagramTarget,
        entry: SocketAddr,
        on_warm: impl FnOnce(),
    ) -> Result<Delivery, TestbedError> {
        datagrams::answer(self, network, target, entry, on_warm)
    }
}

/// Writes a message into `buffer`; the padding is kept.
fn write_message(buffer: &mut [u8], due: Instant, number: u64) {
    buffer[..8].copy_from_slice(&due.as_nanos().to_be_bytes());
    buffer[8..HEADER].copy_from_slice(&number.to_be_bytes());
}

/// Reads the due time and the number of a message.
fn read_message(message: &[u8]) -> (Instant, u64) {
    (Instant::from_nanos(word(&message[..8])), word(&message[8..HEADER]))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_include_missing_messages() {
        let latencies = (1..=99).rev().map(Duration::from_millis).collect();
        let delivery = Delivery { due: 100, latencies };
        assert_eq!(delivery.percentile(0.5), Some(Duration::from_millis(50)));
        assert_eq!(delivery.percentile(0.99), Some(Duration::from_millis(99)));
        assert_eq!(delivery.percentile(0.999), None);
        assert!((delivery.missing() - 0.01).abs() < 1e-12);
        assert!((delivery.late(Duration::from_millis(90)) - 0.1).abs() < 1e-12);
        assert_eq!(Delivery::default().percentile(0.5), None);
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut buffer = [7; 20];
        write_message(&mut buffer, Instant::from_nanos(1_234_567_890_123), 77);
        assert_eq!(read_message(&buffer), (Instant::from_nanos(1_234_567_890_123), 77));
        assert_eq!(buffer[HEADER..], [7; 4], "the padding is kept");
    }

    #[test]
    fn three_megabits_in_messages_of_1200_bytes_are_312_a_second() {
        let rate = Rate::from_megabits_per_second(3);
        let messages = Messages { bytes: 1_200, rate, time: Duration::from_secs(1) };
        assert_eq!((messages.interval(), messages.count()), (Duration::from_micros(3_200), 312));
    }
}
