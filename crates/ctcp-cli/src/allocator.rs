//! Memory that connections freed goes back to the system.
//!
//! glibc keeps what lies below the newest allocation for as long as the program runs: a server that once had thousands of connections would stay as
//! large as it was then. Other C libraries give memory back by themselves.

use core::time::Duration;

use ctcp::Endpoint;

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(2);

/// Less is not worth a walk over the heap, in bytes.
const LEAST: u64 = 8 << 20;

/// Gives memory back whenever the connections of `endpoint` have half of what they had; never ends.
pub(crate) async fn give_back(endpoint: &Endpoint) {
    let mut most = 0;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let used = endpoint.stats().memory;
        most = used.max(most);
        if most - used >= LEAST && used <= most / 2 {
            most = used;
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    #[expect(unsafe_code, reason = "the C library has no other way, and it takes no pointers")]
    // SAFETY: malloc_trim may be called at any time by any thread (malloc_trim(3), MT-Safe).
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
