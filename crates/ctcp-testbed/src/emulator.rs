//! Moves packets between the devices of both namespaces through the model of the links, in real time.
//!
//! ```text
//!   forever:  wait until a device has a packet or the next one is due
//!             read all waiting packets; a packet arrives at the instant of its read
//!             write all packets that are due, and record how late each is
//! ```
//!
//! The thread asks for real-time priority, because it competes with the programs under test for the cores. Lateness does not accumulate:
//! the model computes with the instants at which packets were due.

mod lateness;
mod ports;

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use ctcp_netem::{Change, LinkStats};
use serde::Serialize;

use crate::clock::Clock;
use crate::error::TestbedError;
use crate::priority::ask_for_real_time;

use lateness::Histogram;
pub use lateness::{LATENESS_LIMIT, Lateness};
use ports::Ports;
pub(crate) use ports::{Port, Shared};

/// A change of the links of one path, or of all.
#[derive(Debug)]
struct Order {
    path: Option<usize>,
    change: Change,
    /// Told after the change.
    done: mpsc::Sender<()>,
}

/// The longest wait between two checks of the stop flag.
const NAP: Duration = Duration::from_millis(20);

/// Counters and lateness since the start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The lateness of deliveries.
    pub lateness: Lateness,
    /// Whether the thread has real-time priority.
    pub is_real_time: bool,
    /// Packets that a device did not accept. They are lost although the plan does not say so.
    pub refused: u64,
    /// The links of each path, forward and backward.
    #[serde(skip)]
    pub ways: Vec<[Vec<LinkStats>; 2]>,
}

/// The state shared with the thread.
#[derive(Debug, Default)]
struct Counters {
    lateness: Histogram,
    refused: u64,
    ways: Vec<Vec<LinkStats>>,
}

/// A running emulator. Dropping it stops it.
#[derive(Debug)]
pub struct Emulator {
    stop: Arc<AtomicBool>,
    counters: Arc<Mutex<Counters>>,
    is_real_time: bool,
    changes: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Starts the thread. Ports come in pairs, the two ends of a path; `shared` are links that all paths share behind
    /// their own.
    pub(crate) fn start(
        ports: Vec<Port>,
        shared: Option<Shared>,
        clock: Clock,
    ) -> Result<Self, TestbedError> {
        let (stop, counters) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Counters::default())));
        let (ready, is_real_time) = mpsc::channel();
        let (stopping, counting) = (Arc::clone(&stop), Arc::clone(&counters));
        let (changes, inbox) = mpsc::channel::<Order>();
        let work = move || {
            // The receiver is gone only if `start` has failed.
            let _ = ready.send(ask_for_real_time());
            let mut ports = Ports::new(ports, shared, clock);
            while !stopping.load(Ordering::Relaxed) {
                ports.wait(NAP);
                for Order { path, change, done } in inbox.try_iter() {
                    ports.apply(path, &change);
                    // The caller may have stopped waiting.
                    let _ = done.send(());
                }
                ports.read();
                let mut counters = counting.lock().unwrap_or_else(PoisonError::into_inner);
                let Counters { lateness, refused, ways } = &mut *counters;
                *refused += ports.deliver(|late| lateness.add(late));
                ports.write_stats(ways);
            }
        };
        let thread = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(work)
            .map_err(TestbedError::of("cannot start a thread"))?;
        let is_real_time = is_real_time.recv().map_err(TestbedError::of("the emulator"))?;
        Ok(Self { stop, counters, is_real_time, changes, thread: Some(thread) })
    }

    /// Changes the links of one path, by its index, or of all, and returns after the change.
    ///
    /// # Errors
    /// Returns an error if the thread has ended.
    pub fn apply(&self, path: Option<usize>, change: Change) -> Result<(), TestbedError> {
        let (done, is_done) = mpsc::channel();
        self.changes.send(Order { path, change, done }).map_err(TestbedError::of("the emulator"))?;
        is_done.recv().map_err(TestbedError::of("the emulator"))
    }

    /// The counters so far, at most 20 ms old.
    #[must_use]
    pub fn report(&self) -> Report {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let ways = counters.ways.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
        let (lateness, refused) = (counters.lateness.summary(), counters.refused);
        Report { lateness, is_real_time: self.is_real_time, refused, ways }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}
