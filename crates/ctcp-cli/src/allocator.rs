//! Returns freed memory of connections to the system.
//!
//! glibc keeps free memory below the newest allocation for as long as the program runs, so a server that once had
//! thousands of connections would never shrink. Other C libraries return memory automatically.

use core::time::Duration;

use ctcp::Endpoint;

/// How often the memory use is checked.
const INTERVAL: Duration = Duration::from_secs(2);

/// Smaller amounts are not worth a walk over the heap, in bytes.
const LEAST: u64 = 8 << 20;

/// Returns memory whenever the connections of `endpoint` use half of their earlier maximum; never ends.
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
