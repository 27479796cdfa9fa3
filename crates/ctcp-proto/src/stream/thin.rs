//! Which writes go in the interactive lane: those of a stream that asks for it, and small ones of a stream that writes little.

use ctcp_base::Instant;

/// The longest run of queued bytes that counts as small: a question, a key press, a frame of a game or call; not the begin of a download.
const WRITE_MAX: u16 = 4096;

/// The rate at which a stream may send small writes in the interactive lane, in bytes per millisecond: 1 Mbit/s. A stream that sends more of
/// them is a slow transfer, for which the repairs of that lane are too expensive.
const RATE: u32 = 125;

/// The number of bytes that a stream may save up: two of the longest writes.
const SAVED_MAX: u16 = 2 * WRITE_MAX;

/// What goes in the interactive lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// Nothing: there is no such lane.
    None,
    /// Streams for which the application asks for low latency.
    OnRequest,
    /// Small writes of any stream, too.
    Automatic,
}

/// What a stream has done so far. It is kept small, since there may be many idle streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thin {
    /// The application asks for low latency.
    is_wanted: bool,
    /// Bytes that it may send in the interactive lane, as of `since` in milliseconds.
    saved: u16,
    since: u32,
}

impl Default for Thin {
    fn default() -> Self {
        Self { is_wanted: false, saved: SAVED_MAX, since: 0 }
    }
}

impl Thin {
    /// The application asks for low latency, or no longer does.
    pub(crate) fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Whether the `queued` bytes go in the interactive lane.
    pub(crate) fn is_interactive(&mut self, rule: Interactive, now: Instant, queued: usize) -> bool {
        // Truncated: after seven weeks without a write, nothing is earned.
        let millis = (now.as_nanos() / 1_000_000) as u32;
        let earned = millis.wrapping_sub(self.since).min(1_000) * RATE;
        self.saved = u16::try_from(u32::from(self.saved) + earned).unwrap_or(SAVED_MAX).min(SAVED_MAX);
        self.since = millis;
        let is_small = queued <= usize::from(WRITE_MAX.min(self.saved));
        match rule {
            Interactive::None => false,
            Interactive::OnRequest => self.is_wanted,
            Interactive::Automatic => self.is_wanted || is_small,
        }
    }

    /// Bytes were sent in the interactive lane.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.saved = self.saved.saturating_sub(u16::try_from(bytes).unwrap_or(u16::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn small_writes_are_interactive_up_to_a_megabit_per_second() {
        for (interval, is_thin) in [(Duration::from_millis(10), true), (Duration::from_millis(5), false)] {
            let (mut thin, mut now, mut count) = (Thin::default(), Instant::ZERO, 0);
            for _ in 0..1_000 {
                now += interval;
                if thin.is_interactive(Interactive::Automatic, now, 1_000) {
                    thin.charge(1_000);
                    count += 1;
                }
            }
            assert_eq!(count == 1_000, is_thin, "{count} every {interval:?}");
        }
    }

    #[test]
    fn a_long_write_is_not_interactive_unless_the_application_asks() {
        let mut thin = Thin::default();
        assert!(thin.is_interactive(Interactive::Automatic, Instant::ZERO, 4_096));
        assert!(!thin.is_interactive(Interactive::Automatic, Instant::ZERO, 4_097));
        thin.set_wanted(true);
        assert!(thin.is_interactive(Interactive::Automatic, Instant::ZERO, 1 << 20));
        assert!(thin.is_interactive(Interactive::OnRequest, Instant::ZERO, 1 << 20));
        assert!(!thin.is_interactive(Interactive::None, Instant::ZERO, 1));
    }
}
