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

    /// The time on this clock and on the wall, to place receive timestamps.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn reading(&self) -> Reading {
        // The wall first: if the thread is suspended between the two, datagrams seem to arrive late, as they
        // would without timestamps, and never before the packets that they answer.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        Reading { now: self.now(), wall }
    }
}

/// One moment on two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    now: Instant,
    wall: Option<Duration>,
}

impl Reading {
    /// When datagrams had reached the kernel that were read at this moment. `stamp` is the kernel's wall clock
    /// time of them, since the Unix epoch.
    pub(crate) fn received_at(&self, stamp: Option<Duration>) -> Instant {
        let age = self.wall.zip(stamp).and_then(|(wall, stamp)| wall.checked_sub(stamp));
        self.now.saturating_back(age.filter(|&age| age <= STAMP_AGE_MAX).unwrap_or_default())
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
    fn only_plausible_receive_stamps_are_believed() {
        let (now, wall) = (Instant::from_secs(100), Duration::from_secs(1_700_000_000));
        let reading = Reading { now, wall: Some(wall) };
        assert_eq!(reading.received_at(None), now);
        assert_eq!(reading.received_at(Some(wall + Duration::from_nanos(1))), now);
        assert_eq!(reading.received_at(Some(wall - Duration::from_secs(60))), now);
        let recent = reading.received_at(Some(wall - Duration::from_millis(20)));
        assert_eq!(now - recent, Duration::from_millis(20));
    }
}
