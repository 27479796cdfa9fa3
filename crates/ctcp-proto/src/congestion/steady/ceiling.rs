//! The window at which a queue hidden by noise overflowed.
//!
//! On a path whose delay varies much, a queue may be far shorter than the noise. Only loss shows that the link is full, some round trips
//! late. So the window approaches the size at which that happened slowly, as CUBIC approaches its plateau (RFC 9438), and passes it if
//! nothing happens.

/// Growth is slow from this fraction of the ceiling on, up to the second one. Beyond that, the link has more room than before.
const NEAR: f64 = 0.9;
const BEYOND: f64 = 1.125;

/// Growth per round trip there, as a fraction of the ceiling, and at least one packet.
const SLOW: f64 = 1.0 / 64.0;

/// Within so many round trips after an overflow, another one shows that the back-off was too small.
const RECENT_ROUNDS: u32 = 3;

/// The ceiling of a flow, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    window: Option<f64>,
    rounds: u32,
}

impl Ceiling {
    /// The queue overflowed while `window` packets arrived per round trip.
    pub(super) fn at(window: f64) -> Self {
        Self { window: Some(window), rounds: 0 }
    }

    /// A round trip is over.
    pub(super) fn on_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Whether the last overflow was only a few round trips ago.
    pub(super) fn is_recent(&self) -> bool {
        self.window.is_some() && self.rounds < RECENT_ROUNDS
    }

    /// The growth per round trip of a window of `tokens` that would otherwise grow by `growth`.
    pub(super) fn limit(&mut self, tokens: f64, growth: f64) -> f64 {
        let Some(window) = self.window else { return growth };
        if tokens > BEYOND * window {
            self.window = None;
        } else if tokens > NEAR * window {
            return growth.min((SLOW * window).max(1.0));
        }
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_slow_near_the_ceiling_and_free_again_beyond_it() {
        let mut ceiling = Ceiling::at(640.0);
        assert_eq!([500.0, 600.0, 700.0].map(|tokens| ceiling.limit(tokens, 80.0)), [80.0, 10.0, 10.0]);
        assert_eq!(ceiling.limit(721.0, 80.0), 80.0, "the link has more room");
        assert_eq!(ceiling.limit(600.0, 80.0), 80.0, "which is remembered");
        assert_eq!(Ceiling::at(20.0).limit(20.0, 2.0), 1.0, "at least one packet");
        assert_eq!(Ceiling::default().limit(600.0, 80.0), 80.0);
    }

    #[test]
    fn an_overflow_is_recent_for_three_round_trips() {
        let mut ceiling = Ceiling::at(640.0);
        let recent = [(); 4].map(|()| {
            let is_recent = ceiling.is_recent();
            ceiling.on_round();
            is_recent
        });
        assert_eq!(recent, [true, true, true, false]);
        assert!(!Ceiling::default().is_recent());
    }
}
