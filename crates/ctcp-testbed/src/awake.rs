//! Keeps the cores awake during measurements.
//!
//! An idle core sleeps, and a virtual one is given away by its host. The packet that wakes it then waits a tenth of a
//! millisecond or more, at each of the four ends of a round trip. One thread per core, which runs only if the core has
//! no other work, removes this wait from all peers' results alike. A process with work preempts it at once, and the CPU
//! times reported for programs do not change.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::priority::ask_for_idle_time;

/// Until it is dropped, the cores that this process may use do not sleep.
#[derive(Debug)]
pub(crate) struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Starts the threads. If the system refuses one or its priority, that core may sleep.
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let threads = cores.filter_map(|core| {
            let stop = Arc::clone(&stop);
            thread::Builder::new().name(format!("awake {core}")).spawn(move || stay_awake(core, &stop)).ok()
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

fn stay_awake(core: usize, stop: &AtomicBool) {
    let mut only = CpuSet::new();
    only.set(core);
    // At any higher priority the thread would take the core from the measured programs.
    if sched_setaffinity(None, &only).is_err() || !ask_for_idle_time() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        spin_loop();
    }
}
