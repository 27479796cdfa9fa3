//! Scheduling of threads: real-time priority where a late wake-up would be measured as the network's delay, and the
//! lowest priority where a thread only keeps a core awake.

use std::num::NonZeroU64;
use std::process::{Command, Stdio};

use rustix::thread::{gettid, set_current_timer_slack};

/// Requests real-time priority for the current thread and returns whether it was granted. It is one of the lowest
/// real-time priorities: above all ordinary programs, below the kernel's own threads.
pub(crate) fn ask_for_real_time() -> bool {
    // This matters only without real-time priority, which has no slack.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    ask(["-f", "-p", "10"])
}

/// Requests that the current thread runs only when a core has no other work, and returns whether it was granted.
pub(crate) fn ask_for_idle_time() -> bool {
    ask(["-i", "-p", "0"])
}

fn ask(policy: [&str; 3]) -> bool {
    let done = Command::new("chrt")
        .args(policy)
        .arg(gettid().as_raw_nonzero().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}
