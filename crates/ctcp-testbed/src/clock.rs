//! The testbed's only clock: monotonic time since its creation, as the plain numbers that the link model takes.

use std::time::Instant as SystemInstant;

use ctcp_base::Instant;

/// Monotonic time from an origin of its own. Copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: SystemInstant,
}

impl Clock {
    /// Creates a clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// The time since it was started.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> Instant {
        Instant::ZERO + SystemInstant::now().saturating_duration_since(self.origin)
    }
}
