//! How the system's scheduler treats a thread: before all others where its lateness would be measured as the network's, behind all
//! others where it only keeps a core awake.

use std::num::NonZeroU64;
use std::process::{Command, Stdio};

use rustix::thread::{gettid, set_current_timer_slack};

/// Asks for real-time priority for the present thread; says whether it has it now. It is among the lowest of these priorities:
/// above all ordinary programs, below the kernel's own.
pub(crate) fn ask_for_real_time() -> bool {
    // Matters only without real-time priority, which has no slack.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    ask(["-f", "-p", "10"])
}

/// Asks for the present thread to run only when a core has nothing else to do; says whether it is so now.
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
