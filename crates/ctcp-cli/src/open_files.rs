//! The limit of open files of this process. Every proxied connection uses one.
//!
//! Most systems start a program with a low limit, for old programs that use `select`, and let it raise that limit up to
//! a hard one.

/// The maximum on macOS if it reports no hard limit (`OPEN_MAX`).
#[cfg(unix)]
const OPEN_MAX: u64 = 10_240;

/// The assumed limit if the system has none or does not report it.
const UNKNOWN: usize = 1 << 20;

/// Raises the limit as far as the system permits, and returns the new limit.
#[cfg(unix)]
pub(crate) fn raise_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    for wanted in [maximum, Some(OPEN_MAX)] {
        if setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum }).is_ok() {
            break;
        }
    }
    let limit = getrlimit(Resource::Nofile).current;
    tracing::debug!(limit, "files that may be open");
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(UNKNOWN)
}

/// This system has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> usize {
    UNKNOWN
}
