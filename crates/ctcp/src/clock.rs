//! The only clock. It maps the operating system's monotonic time to the plain numbers that the protocol takes
//! as arguments, and back to what tokio's timers want.

use core::time::Duration;
use std::time::{Instant as SystemInstant, SystemTime};

use ctcp_base::Instant;

/// The age up to which a kernel's receive timestamp is believed. They come from the wall clock, which can be
/// set while a datagram waits in the socket's queue.
const STAMP_AGE_MAX: Duration = Duration::from_secs(1);

/// Later than anything waits for, and not too far for the timers of any system: a year.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Monotonic time from an origin fixed when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn new() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + SystemInstant::now().saturating_duration_since(self.origin)
    }

    /// The same point in time for tokio's timers, or [`FAR`].
    pub(crate) fn to_tokio(self, instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + instant.saturating_since(Instant::ZERO).min(FAR))
    }

    /// When datagrams that were read at `read` had reached the kernel. `stamp` is the kernel's wall clock time
    /// of a datagram, since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn received_at(&self, stamp: Option<Duration>, read: Instant) -> Instant {
        let age = stamp.and_then(|stamp| {
            let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
            wall.checked_sub(stamp).filter(|&age| age <= STAMP_AGE_MAX)
        });
        read.saturating_back(age.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_the_way_to_tokio() {
        let clock = Clock::new();
        let (early, late) = (Instant::from_millis(5), Instant::from_millis(12));
        assert_eq!(clock.to_tokio(late) - clock.to_tokio(early), Duration::from_millis(7));
        assert_eq!(clock.to_tokio(Instant::from_nanos(u64::MAX)) - clock.to_tokio(Instant::ZERO), FAR);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the stamps under test come from this clock")]
    fn only_plausible_receive_stamps_are_believed() {
        let clock = Clock::new();
        let read = Instant::from_secs(100);
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is past 1970");
        assert_eq!(clock.received_at(None, read), read);
        assert_eq!(clock.received_at(Some(wall + Duration::from_secs(60)), read), read);
        assert_eq!(clock.received_at(Some(wall - Duration::from_secs(60)), read), read);
        let recent = clock.received_at(Some(wall - Duration::from_millis(20)), read);
        assert!(read - recent >= Duration::from_millis(20));
    }
}
