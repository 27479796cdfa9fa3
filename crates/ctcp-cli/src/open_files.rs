//! How many files this process may have open, of which every proxied connection is one.
//!
//! Most systems start a program with a low limit, for the sake of old ones that use `select`, and let it raise that limit
//! itself up to a hard one.

/// What macOS allows at most where it names no hard limit (`OPEN_MAX`).
#[cfg(unix)]
const OPEN_MAX: u64 = 10_240;

/// Where the system has no limit, or one that cannot be asked for.
const UNKNOWN: usize = 1 << 20;

/// Raises the limit as far as the system lets us, and says what it is then.
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

/// There is no such limit here.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> usize {
    UNKNOWN
}
