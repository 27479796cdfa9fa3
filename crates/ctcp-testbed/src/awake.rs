//! Keeps the cores awake while something is measured.
//!
//! A core without work sleeps, and a virtual one is given away by its host: the packet that wakes it waits a tenth of a millisecond
//! or more, at each of the four ends of a round trip. One thread a core, which runs only when that core has nothing else to do, takes
//! this off every peer's figures alike; a process with work takes the core from it at once. It makes no difference to the time that
//! programs are said to have used.

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
    /// Starts the threads. A system that refuses one or its priority keeps the sleep of that core.
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
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

fn stay_awake(core: usize, stop: &AtomicBool) {
    let mut only = CpuSet::new();
    only.set(core);
    // Anything but the lowest priority would take the core from those who are measured.
    if sched_setaffinity(None, &only).is_err() || !ask_for_idle_time() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        spin_loop();
    }
}
