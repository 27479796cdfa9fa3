//! The only clock of the crate. It converts the operating system's monotonic time to the plain numbers that the protocol takes as
//! arguments, and back to the deadlines of tokio's timers.
//!
//! On Linux it keeps counting while the machine sleeps, because the clocks of the peers do: a connection that the peer has timed out in
//! the meantime has timed out here too. The clock behind tokio's timers stops during sleep.

use core::time::Duration;
use std::time::{Instant as SystemInstant, SystemTime};

use ctcp_base::Instant;

/// The maximum age of a kernel receive timestamp that is used. These timestamps come from the wall clock, which can be set while a
/// datagram waits in the socket's queue.
const STAMP_AGE_MAX: Duration = Duration::from_secs(1);

/// A year: later than any deadline of the protocol, and within the range of every system's timers.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The two clocks are read one after the other, so smaller differences do not count as sleep.
const SLEEP_MIN: Duration = Duration::from_secs(1);

/// Monotonic time since an origin that is fixed when the clock is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
    /// The same moment on the clock that keeps counting during sleep; `None` if the system has no such clock.
    awake_origin: Option<Duration>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn new() -> Self {
        Self { origin: SystemInstant::now(), awake_origin: unsleeping() }
    }

    /// The current time.
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

    /// Reads this clock and the wall clock together, so that receive timestamps can be converted.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn reading(&self) -> Reading {
        // The wall clock is read first. If the thread is suspended between the two reads, datagrams appear to arrive late, as they would
        // without timestamps, but never before the packets that they answer.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        Reading { now: self.now(), wall }
    }
}

/// The system's monotonic clock that keeps counting while the machine sleeps.
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

/// One moment, read on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    now: Instant,
    wall: Option<Duration>,
}

impl Reading {
    /// The time at which a datagram read at this moment had reached the kernel. `stamp` is the kernel's wall clock time for it, since the
    /// Unix epoch.
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
        // Simulates a sleep of one hour.
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
