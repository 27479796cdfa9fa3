//! Real-time priority for threads whose lateness would be measured as the network's.

use std::num::NonZeroU64;
use std::process::{Command, Stdio};

use rustix::thread::{gettid, set_current_timer_slack};

/// Among the lowest real-time priorities: above all ordinary programs, below the kernel's own.
const PRIORITY: &str = "10";

/// Asks for it, for the present thread; says whether it has it now.
pub(crate) fn ask_for_real_time() -> bool {
    // Matters only without real-time priority, which has no slack.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let done = Command::new("chrt")
        .args(["-f", "-p", PRIORITY, &gettid().as_raw_nonzero().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}
