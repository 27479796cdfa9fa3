//! The driver's timer. tokio's timers fire up to two milliseconds late, which is cheap and harmless for most
//! connections. A pacer that wakes this late sends bursts, and bursts build queues that a delay-based congestion
//! control reacts to. For such connections there is a punctual timer if the system has one (Linux).

use core::pin::Pin;
use core::time::Duration;

use ctcp_base::Instant;
use tokio::time::Sleep;

use crate::clock::Clock;

/// How late a lax timer may be.
const LAX: Duration = Duration::from_millis(2);

/// When to wake up, and how precisely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// A delay of a millisecond matters.
    pub(crate) is_punctual: bool,
}

impl Deadline {
    /// A deadline that may be met late.
    pub(crate) fn lax(at: Instant) -> Self {
        Self { at, is_punctual: false }
    }

    /// Returns the earlier deadline. It is punctual if a lax timer would miss a punctual one of the two.
    pub(crate) fn min(self, other: Self) -> Self {
        let at = self.at.min(other.at);
        let is_punctual = [self, other].iter().any(|one| one.is_punctual && one.at <= at + LAX);
        Self { at, is_punctual }
    }
}

/// Waits for one deadline at a time.
pub(crate) struct Timer {
    lax: Pin<Box<Sleep>>,
    punctual: Punctual,
    set: Option<Deadline>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        let lax = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { lax, punctual: Punctual::default(), set: None }
    }

    /// Sets or clears the deadline. Punctual deadlines become lax if the system has no punctual timer.
    pub(crate) fn set(&mut self, clock: &Clock, deadline: Option<Deadline>) {
        if self.set == deadline {
            return;
        }
        self.set = deadline;
        let Some(Deadline { at, is_punctual }) = deadline else { return };
        if is_punctual && self.punctual.set(at - clock.now()) {
            return;
        }
        self.set = Some(Deadline::lax(at));
        self.lax.as_mut().reset(clock.to_tokio(at));
    }

    /// Waits for the deadline, or forever without one.
    pub(crate) async fn passed(&mut self) {
        match self.set {
            None => core::future::pending().await,
            Some(Deadline { is_punctual: true, .. }) => self.punctual.passed().await,
            Some(Deadline { is_punctual: false, .. }) => self.lax.as_mut().await,
        }
        self.set = None;
    }
}

#[cfg(target_os = "linux")]
mod system {
    use core::time::Duration;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel, created when first needed.
    #[derive(Default)]
    pub(super) struct Punctual {
        timer: Option<AsyncFd<OwnedFd>>,
        is_refused: bool,
    }

    #[allow(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; an OwnedFd's does not"
    )]
    fn register(timer: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
        AsyncFd::new(timer).ok()
    }

    impl Punctual {
        /// Starts the timer. Returns false if the system has no such timer.
        pub(super) fn set(&mut self, time: Duration) -> bool {
            if self.timer.is_none() && !self.is_refused {
                let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
                let made = timerfd_create(TimerfdClockId::Monotonic, flags).ok();
                self.timer = made.and_then(register);
                self.is_refused = self.timer.is_none();
            }
            let Some(timer) = &self.timer else { return false };
            // Zero would disarm the timer.
            let time = time.max(Duration::from_nanos(1));
            let value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
            timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once).is_ok()
        }

        /// Waits until the timer has expired.
        pub(super) async fn passed(&self) {
            let Some(timer) = &self.timer else { return };
            loop {
                // An error means that the runtime is shutting down, and this task with it.
                let Ok(mut guard) = timer.readable().await else { return core::future::pending().await };
                let mut expirations = [0; 8];
                let outcome = rustix::io::read(timer.get_ref(), &mut expirations);
                guard.clear_ready();
                // A failed read means that the readiness belongs to an earlier deadline.
                if outcome.is_ok() {
                    return;
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Other systems have no such timer.
    #[derive(Default)]
    pub(super) struct Punctual;

    impl Punctual {
        pub(super) fn set(&mut self, _time: core::time::Duration) -> bool {
            false
        }

        pub(super) async fn passed(&self) {}
    }
}

use system::Punctual;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_deadline_is_punctual_if_a_lax_timer_would_be_late_for_the_other() {
        let punctual = |millis| Deadline { at: Instant::from_millis(millis), is_punctual: true };
        let lax = Deadline::lax(Instant::from_millis(10));
        for (other, earlier) in
            [(punctual(12), punctual(10)), (punctual(13), lax), (punctual(9), punctual(9))]
        {
            assert_eq!((lax.min(other), other.min(lax)), (earlier, earlier));
        }
    }

    #[tokio::test]
    async fn both_kinds_wait_for_the_deadline_that_was_set_last() {
        let clock = Clock::new();
        let mut timer = Timer::new();
        for is_punctual in [true, false] {
            let begun = clock.now();
            let deadline = |millis| Some(Deadline { at: begun + Duration::from_millis(millis), is_punctual });
            timer.set(&clock, deadline(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
            timer.set(&clock, deadline(30));
            timer.passed().await;
            assert!(clock.now() - begun >= Duration::from_millis(30), "punctual: {is_punctual}");
        }
    }

    #[tokio::test]
    async fn a_past_deadline_fires_at_once_and_no_deadline_never_fires() {
        let clock = Clock::new();
        let mut timer = Timer::new();
        timer.set(&clock, Some(Deadline { at: Instant::ZERO, is_punctual: true }));
        timer.passed().await;
        timer.set(&clock, None);
        let waited = tokio::time::timeout(Duration::from_millis(20), timer.passed()).await;
        assert!(waited.is_err());
    }
}
