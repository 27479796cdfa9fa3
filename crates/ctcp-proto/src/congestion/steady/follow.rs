//! Does the delivery rate follow the window? As long as it does, the link is not full of our own packets.

use core::time::Duration;

/// How many round trips are remembered.
const ROUNDS: usize = 12;

/// A window that differs by less says nothing.
const CHANGE_MIN: f64 = 1.3;

/// Windows and delivery rates of the last round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follow {
    /// Window in packets and packets a second, newest first.
    history: [Option<(f64, f64)>; ROUNDS],
    window: Option<f64>,
}

impl Follow {
    /// A round trip of `took` is over that brought `acked` packets; the next begins with `window`.
    pub(super) fn on_round(&mut self, window: f64, acked: u32, took: Duration) {
        if let Some(before) = self.window.replace(window) {
            self.history.rotate_right(1);
            self.history[0] = Some((before, f64::from(acked) / took.as_secs_f64().max(1e-6)));
        }
    }

    /// Begins anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// How far the rate followed when the window grew, as an exponent: 1 for a rate that grew as much, 0 for one that did not grow.
    pub(super) fn rise(&self) -> Option<f64> {
        self.exponent(|last, before| last > CHANGE_MIN * before)
    }

    /// The same when the window became smaller.
    pub(super) fn fall(&self) -> Option<f64> {
        self.exponent(|last, before| before > CHANGE_MIN * last)
    }

    fn exponent(&self, is_change: impl Fn(f64, f64) -> bool) -> Option<f64> {
        let (window, rate) = self.history[0]?;
        let (window_before, rate_before) =
            self.history[1..].iter().flatten().find(|before| is_change(window, before.0))?;
        Some((rate / rate_before).max(1e-3).ln() / (window / window_before).ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(rounds: &[(f64, u32)]) -> Follow {
        let mut follow = Follow::default();
        let windows = rounds.iter().map(|round| round.0).chain([0.0]).skip(1);
        follow.on_round(rounds[0].0, 0, Duration::ZERO);
        rounds
            .iter()
            .zip(windows)
            .for_each(|(round, next)| follow.on_round(next, round.1, Duration::from_secs(1)));
        follow
    }

    #[test]
    fn a_rate_that_doubles_with_the_window_follows_and_one_that_stays_does_not() {
        assert!((follow(&[(32.0, 32), (64.0, 64)]).rise().unwrap() - 1.0).abs() < 1e-9);
        assert!(follow(&[(32.0, 32), (64.0, 32)]).rise().unwrap().abs() < 1e-9);
        assert_eq!(follow(&[(32.0, 32), (36.0, 36)]).rise(), None, "too small a change");
    }

    #[test]
    fn a_back_off_that_costs_as_much_of_the_rate_freed_no_queue() {
        assert!((follow(&[(64.0, 60), (32.0, 30)]).fall().unwrap() - 1.0).abs() < 1e-9);
        assert!(follow(&[(64.0, 40), (44.0, 40)]).fall().unwrap().abs() < 1e-9);
        assert_eq!(follow(&[(64.0, 40), (44.0, 40)]).rise(), None);
    }
}
