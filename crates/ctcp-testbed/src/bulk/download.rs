//! A download and its progress over time.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread::JoinHandle;

use ctcp_base::Instant;
use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::pattern::is_pattern;
use super::server::{ENDLESS, thread_cpu_nanos};
use super::socket::{SocketPlan, is_timeout};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::stop::{LOOK_EVERY, Stop};

/// The interval between samples of the goodput.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Bytes per read.
const BUFFER: usize = 256 * 1_024;

/// The limits of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of bytes; `None` means as many as arrive in the time.
    pub bytes: Option<u64>,
    /// The time limit, including connecting.
    pub time: Duration,
}

/// The progress at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since the start of the download, in seconds.
    pub at_s: f64,
    /// Bytes received until then.
    pub bytes: u64,
}

/// The result of a download.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The start of the download on the network's clock, in seconds.
    pub began_s: f64,
    /// Bytes that arrived in order and matched the pattern.
    pub bytes: u64,
    /// The time from before the connection request to the last byte, or to the end of the time.
    pub seconds: f64,
    /// The time from the same start to the first byte.
    pub first_byte_s: Option<f64>,
    /// Whether all requested bytes arrived; for an endless download, whether it still ran at the end.
    pub is_complete: bool,
    /// The progress over time.
    pub samples: Vec<Sample>,
    /// The time at which each part was complete, if requested, since the start, in seconds.
    pub parts_s: Vec<f64>,
    /// CPU time of the receiving thread, in seconds.
    pub cpu_s: f64,
}

impl Transfer {
    /// Bits per second over the whole download.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }

    /// Bits per second between two times since the start, with the resolution of the samples.
    #[must_use]
    pub fn goodput_between(&self, from_s: f64, to_s: f64) -> f64 {
        let bytes = |time: f64| {
            let sample = self.samples.iter().rev().find(|sample| sample.at_s <= time);
            sample.map_or(0, |sample| sample.bytes)
        };
        (bytes(to_s) - bytes(from_s)) as f64 * 8.0 / (to_s - from_s)
    }
}

/// A running download.
#[derive(Debug)]
pub struct Download {
    thread: JoinHandle<Result<Transfer, TestbedError>>,
}

impl Download {
    /// Starts a download in the client's namespace.
    #[must_use]
    pub fn start(network: &Network, entry: SocketAddr, socket: SocketPlan, request: Request) -> Self {
        Self::start_in_parts(network, entry, socket, request, u64::MAX)
    }

    /// The same, and records when each part of this many bytes was complete.
    #[must_use]
    pub fn start_in_parts(
        network: &Network,
        entry: SocketAddr,
        socket: SocketPlan,
        request: Request,
        part: u64,
    ) -> Self {
        let (clock, stop) = (network.clock, network.stop.clone());
        let thread = network.client.spawn("download", move || {
            match Reception::begin(entry, socket, request, part, clock, stop)? {
                Ok(reception) => reception.receive(),
                Err(nothing) => Ok(nothing),
            }
        });
        Self { thread }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Returns an error if connecting failed, wrong bytes arrived, or the measurement was interrupted.
    ///
    /// # Panics
    /// Panics if its thread panicked.
    pub fn join(self) -> Result<Transfer, TestbedError> {
        self.thread.join().expect("a download does not panic")
    }
}

/// The receiving end of a connection.
struct Reception {
    connection: Socket,
    request: Request,
    part: u64,
    clock: Clock,
    stop: Stop,
    start: Instant,
    transfer: Transfer,
}

impl Reception {
    /// Connects and sends the request; returns the result so far if the time is over before the connection is
    /// established.
    fn begin(
        entry: SocketAddr,
        socket: SocketPlan,
        request: Request,
        part: u64,
        clock: Clock,
        stop: Stop,
    ) -> Result<Result<Self, Transfer>, TestbedError> {
        let start = clock.now();
        let mut connection = socket.socket()?;
        let transfer = Transfer { began_s: start.as_secs_f64(), ..Transfer::default() };
        let connected = connection.connect_timeout(&entry.into(), request.time);
        if connected.as_ref().is_err_and(is_timeout) {
            return Ok(Err(Transfer { seconds: request.time.as_secs_f64(), ..transfer }));
        }
        connected
            .and_then(|()| connection.set_read_timeout(Some(LOOK_EVERY)))
            .and_then(|()| connection.write_all(&request.bytes.unwrap_or(ENDLESS).to_be_bytes()))
            .map_err(TestbedError::of(format_args!("a download from {entry}")))?;
        Ok(Ok(Self { connection, request, part, clock, stop, start, transfer }))
    }

    fn receive(mut self) -> Result<Transfer, TestbedError> {
        let mut buffer = vec![0; BUFFER];
        let (end, mut next_sample) = (self.start + self.request.time, self.start);
        loop {
            let now = self.clock.now();
            if now >= next_sample {
                self.sample(now);
                next_sample = now + SAMPLE_EVERY;
            }
            let is_all = self.request.bytes.is_some_and(|bytes| self.transfer.bytes >= bytes);
            if is_all || now >= end {
                self.transfer.is_complete = is_all || self.request.bytes.is_none();
                return Ok(self.finish(now));
            }
            self.stop.check()?;
            match self.connection.read(&mut buffer) {
                Ok(0) => return Ok(self.finish(now)),
                Ok(length) => self.on_bytes(&buffer[..length])?,
                Err(error) if is_timeout(&error) => {}
                // Some transports end a connection in this way when they can no longer serve it.
                Err(_) => return Ok(self.finish(now)),
            }
        }
    }

    fn on_bytes(&mut self, bytes: &[u8]) -> Result<(), TestbedError> {
        if !is_pattern(self.transfer.bytes, bytes) {
            let what = format!("wrong bytes arrived behind byte {}", self.transfer.bytes);
            return Err(TestbedError::failed(what));
        }
        self.transfer.bytes += bytes.len() as u64;
        let parts = (self.transfer.bytes / self.part) as usize;
        if parts > self.transfer.parts_s.len() {
            let now = self.since_start(self.clock.now());
            self.transfer.parts_s.resize(parts, now);
        }
        if self.transfer.first_byte_s.is_none() {
            self.transfer.first_byte_s = Some(self.since_start(self.clock.now()));
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant) {
        let at_s = self.since_start(now);
        self.transfer.samples.push(Sample { at_s, bytes: self.transfer.bytes });
    }

    fn finish(mut self, now: Instant) -> Transfer {
        self.sample(now);
        self.transfer.seconds = self.since_start(now);
        self.transfer.cpu_s = thread_cpu_nanos() as f64 * 1e-9;
        self.transfer
    }

    fn since_start(&self, now: Instant) -> f64 {
        now.saturating_since(self.start).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_that_of_the_whole_or_of_a_part() {
        let samples = [(0.0, 0), (1.0, 1_000), (2.0, 5_000)].map(|(at_s, bytes)| Sample { at_s, bytes });
        let transfer =
            Transfer { bytes: 5_000, seconds: 2.0, samples: samples.to_vec(), ..Transfer::default() };
        assert_eq!(transfer.goodput(), 20_000.0);
        assert_eq!(transfer.goodput_between(1.0, 2.0), 32_000.0);
        assert_eq!(Transfer::default().goodput(), 0.0);
    }
}
