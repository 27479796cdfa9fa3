//! An endless upload and the progress of its arrival, for connections whose sending end is the client's.

use core::time::Duration;
use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4};
use std::thread::JoinHandle;

use ctcp_base::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use super::download::{Sample, Transfer};
use super::pattern::{BLOCK, block, is_pattern};
use super::socket::{SocketPlan, is_timeout};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::stop::{LOOK_EVERY, Stop};

/// The receiver of an upload: a server that accepts one connection and returns the result.
#[derive(Debug)]
pub struct Sink {
    /// The address it listens on.
    pub address: SocketAddr,
    thread: JoinHandle<Result<Transfer, TestbedError>>,
}

impl Sink {
    /// Listens in the server's namespace, until `end` on the network's clock.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such sockets.
    pub fn start(network: &Network, socket: SocketPlan, end: Instant) -> Result<Self, TestbedError> {
        let address = SocketAddr::V4(SocketAddrV4::new(network.server_address(), network.new_port()));
        let listener = network.server.run(move || socket.listen(address))?;
        let (clock, stop) = (network.clock, network.stop.clone());
        let thread = network.server.spawn("sink", move || {
            let connection = accept(&listener, end, clock, &stop)?;
            receive(connection, end, clock, &stop)
        });
        Ok(Self { address, thread })
    }

    /// Waits for its end. Times are relative to the acceptance of the connection.
    ///
    /// # Errors
    /// Returns an error if no client connected, wrong bytes arrived, or the measurement was interrupted.
    ///
    /// # Panics
    /// Panics if its thread panicked.
    pub fn join(self) -> Result<Transfer, TestbedError> {
        self.thread.join().expect("a sink does not panic")
    }
}

/// Sends from the client's namespace until `end`. The thread returns an error if the connection ends before that.
#[must_use]
pub fn upload(
    network: &Network,
    entry: SocketAddr,
    socket: SocketPlan,
    end: Instant,
) -> JoinHandle<Result<(), TestbedError>> {
    let (clock, stop) = (network.clock, network.stop.clone());
    network.client.spawn("upload", move || {
        let mut connection = socket.socket()?;
        let rest = end.saturating_since(clock.now()).max(LOOK_EVERY);
        connection
            .connect_timeout(&entry.into(), rest)
            .and_then(|()| connection.set_write_timeout(Some(LOOK_EVERY)))
            .map_err(TestbedError::of(format_args!("an upload to {entry}")))?;
        let mut sent = 0;
        while clock.now() < end {
            stop.check()?;
            match connection.write(&block()[sent % BLOCK..]) {
                Ok(length) => sent += length,
                Err(error) if is_timeout(&error) => {}
                // The receiver has finished.
                Err(_) if clock.now() >= end => break,
                Err(error) => {
                    let what = format!("an upload to {entry} was ended after {sent} bytes: {error}");
                    return Err(TestbedError::failed(what));
                }
            }
        }
        Ok(())
    })
}

fn accept(listener: &Socket, end: Instant, clock: Clock, stop: &Stop) -> Result<Socket, TestbedError> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    while clock.now() < end {
        stop.check()?;
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap_or(0) > 0 {
            let (connection, _) = listener.accept().map_err(TestbedError::of("an upload"))?;
            connection.set_read_timeout(Some(LOOK_EVERY)).map_err(TestbedError::of("an upload"))?;
            return Ok(connection);
        }
    }
    Err(TestbedError::failed("no client connected for an upload"))
}

fn receive(
    mut connection: Socket,
    end: Instant,
    clock: Clock,
    stop: &Stop,
) -> Result<Transfer, TestbedError> {
    let (start, mut buffer) = (clock.now(), vec![0; 256 * 1_024]);
    let mut transfer = Transfer { began_s: start.as_secs_f64(), is_complete: true, ..Transfer::default() };
    let mut next_sample = start;
    loop {
        let now = clock.now();
        let is_over = now >= end;
        if now >= next_sample || is_over {
            let at_s = now.saturating_since(start).as_secs_f64();
            transfer.samples.push(Sample { at_s, bytes: transfer.bytes });
            next_sample = now + SAMPLE_EVERY;
        }
        if is_over {
            transfer.seconds = now.saturating_since(start).as_secs_f64();
            return Ok(transfer);
        }
        stop.check()?;
        match connection.read(&mut buffer) {
            Ok(length) if length > 0 && !is_pattern(transfer.bytes, &buffer[..length]) => {
                let what = format!("wrong bytes arrived behind byte {}", transfer.bytes);
                return Err(TestbedError::failed(what));
            }
            Ok(length) if length > 0 => transfer.bytes += length as u64,
            Err(error) if is_timeout(&error) => {}
            // The connection has ended. The missing bytes are part of the measurement.
            Ok(_) | Err(_) => stop.sleep(LOOK_EVERY)?,
        }
    }
}

/// The interval between samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
