//! The only clock. It maps the operating system's monotonic time to the plain numbers that the protocol takes as
//! arguments, and back to what tokio's timers want.
//!
//! Where it can (Linux), it goes on while the machine sleeps, as peers do: a connection that its peer gave up meanwhile
//! has timed out here, too. The clock of tokio's timers stands still in that time.

use core::time::Duration;
use std::time::{Instant as SystemInstant, SystemTime};

use ctcp_base::Instant;

/// The age up to which a kernel's receive timestamp is believed. They come from the wall clock, which can be
/// set while a datagram waits in the socket's queue.
const STAMP_AGE_MAX: Duration = Duration::from_secs(1);

/// Later than anything waits for, and not too far for the timers of any system: a year.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The two clocks are read one after the other: a smaller difference is no sleep.
const SLEEP_MIN: Duration = Duration::from_secs(1);

/// Monotonic time from an origin fixed when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
    /// The same moment on the clock that does not stop while the machine sleeps; `None` where there is none.
    awake_origin: Option<Duration>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn new() -> Self {
        Self { origin: SystemInstant::now(), awake_origin: unsleeping() }
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        let unsleeping = self.awake_origin.zip(unsleeping()).map(|(origin, now)| now.saturating_sub(origin));
        Instant::ZERO + unsleeping.unwrap_or_else(|| self.awake())
    }

    /// The same point in time for tokio's timers, or [`FAR`].
    pub(crate) fn to_tokio(self, instant: Instant) -> tokio::time::Instant {
        let since_origin = instant.saturating_since(Instant::ZERO).saturating_sub(self.slept());
        tokio::time::Instant::from_std(self.origin + since_origin.min(FAR))
    }

    /// How long the machine has slept.
    fn slept(&self) -> Duration {
        let slept = self.now().saturating_since(Instant::ZERO).saturating_sub(self.awake());
        if slept < SLEEP_MIN { Duration::ZERO } else { slept }
    }

    /// Time since the origin in which the machine did not sleep.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn awake(&self) -> Duration {
        SystemInstant::now().saturating_duration_since(self.origin)
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

/// The system's monotonic clock that goes on while the machine sleeps.
#[cfg(target_os = "linux")]
fn unsleeping() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    Some(Duration::new(seconds, nanos))
}

#[cfg(not(target_os = "linux"))]
fn unsleeping() -> Option<Duration> {
    None
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
    #[cfg(target_os = "linux")]
    fn time_goes_on_while_the_machine_sleeps_and_timers_are_not_late_for_it() {
        let mut clock = Clock::new();
        let slept = Duration::from_secs(3600);
        // As if it had slept for an hour since.
        clock.awake_origin = clock.awake_origin.map(|origin| origin.checked_sub(slept).unwrap_or_default());
        let now = clock.now();
        assert!(now >= Instant::ZERO + clock.slept() && clock.slept() > Duration::from_secs(60));
        let wait = clock.to_tokio(now + Duration::from_secs(5)) - clock.to_tokio(now);
        assert!(wait.abs_diff(Duration::from_secs(5)) < Duration::from_millis(100), "{wait:?}");
        let due = clock.to_tokio(now).into_std().saturating_duration_since(clock.origin);
        assert!(due < Duration::from_secs(1), "{due:?} from now");
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
