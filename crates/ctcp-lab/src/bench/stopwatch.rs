//! The minimum of many timings: other work on the machine only adds to a timing.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The minimum time of a job so far.
pub(super) struct Shortest(Duration);

impl Shortest {
    pub(super) fn new() -> Self {
        Self(Duration::MAX)
    }

    /// Runs the job once and keeps its time if it is the minimum.
    pub(super) fn time(&mut self, job: impl FnOnce()) {
        let start = now();
        job();
        self.0 = self.0.min(start.elapsed());
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.as_secs_f64()
    }
}

/// Calls `round` until `time` has passed, but at least a few times.
pub(super) fn repeat(time: Duration, mut round: impl FnMut()) {
    /// Enough rounds for a meaningful minimum.
    const ROUNDS_MIN: usize = 5;
    let start = now();
    let mut rounds = 0;
    while rounds < ROUNDS_MIN || start.elapsed() < time {
        round();
        rounds += 1;
    }
}

/// The processor's clock rate, measured with dependent steps of one cycle each.
pub(super) fn clock_ghz() -> f64 {
    const ROUNDS: u32 = 20_000;
    /// Shifts and XORs per round.
    const STEPS: u32 = 6;
    let mut shortest = Shortest::new();
    for _ in 0..20 {
        shortest.time(|| {
            let mut state = black_box(1_u64);
            for _ in 0..ROUNDS {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
            }
            black_box(state);
        });
    }
    f64::from(ROUNDS * STEPS) / shortest.seconds() / 1e9
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}
