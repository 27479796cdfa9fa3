//! Collisions with a hidden terminal (CTCP paper, section 7.2). It begins its frames at the instants of a Poisson
//! process, regardless of other transmissions, and every packet that overlaps a frame is lost.
//!
//! ```text
//!   frames     ---[####]-----------------[####]------------> time        begin: Poisson
//!   packets    [====][====][====][====][====][====]
//!               lost  lost              lost  lost
//! ```
//!
//! A packet whose last bit leaves at t is lost if a frame began in the *vulnerable period* before t: the packet's
//! airtime plus the frame's. The model is meant for loss after the queue, where it is evaluated at exactly that
//! instant.

use core::time::Duration;

use ctcp_base::{Instant, Prng};

/// The part of the Poisson process generated so far.
#[derive(Clone, Debug)]
pub(crate) struct Collisions {
    /// The mean time from one beginning to the next.
    interval: Duration,
    vulnerable: Duration,
    /// The latest beginning that has passed.
    last: Option<Instant>,
    /// The beginning after it, if one was drawn.
    next: Option<Instant>,
}

impl Collisions {
    pub(crate) fn new(interval: Duration, vulnerable: Duration) -> Self {
        Self { interval, vulnerable, last: None, next: None }
    }

    pub(crate) fn is_lost(&mut self, now: Instant, prng: &mut Prng) -> bool {
        // With an interval of zero, frames begin all the time.
        if self.interval.is_zero() {
            return true;
        }
        // The process is memoryless, so it may begin anywhere: here a vulnerable period before the first packet.
        let first = Instant::from_nanos(now.as_nanos().saturating_sub(nanos(self.vulnerable)));
        let mut next = self.next.unwrap_or_else(|| first + self.gap(prng));
        while next <= now {
            self.last = Some(next);
            next += self.gap(prng);
        }
        self.next = Some(next);
        self.last.is_some_and(|last| now - last < self.vulnerable)
    }

    fn gap(&self, prng: &mut Prng) -> Duration {
        // At least a nanosecond, so that the number of frames in any time is finite.
        Duration::from_nanos((nanos(self.interval) as f64 * exponential(prng)) as u64 + 1)
    }
}

/// Draws from the exponential distribution with mean 1 by comparisons alone (von Neumann, 1951). Unlike a platform's
/// logarithm, this gives the same values on all machines.
fn exponential(prng: &mut Prng) -> f64 {
    let mut whole = 0.0;
    loop {
        let first = prng.unit();
        let (mut least, mut is_odd) = (first, true);
        // The falling run that starts with `first` has an odd length with probability exp(-first).
        loop {
            let drawn = prng.unit();
            if drawn >= least {
                break;
            }
            least = drawn;
            is_odd = !is_odd;
        }
        if is_odd {
            return whole + first;
        }
        whole += 1.0;
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_deviation_and_tail_of_the_exponential_distribution() {
        let mut prng = Prng::new(4);
        let drawn: Vec<f64> = (0..200_000).map(|_| exponential(&mut prng)).collect();
        let count = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / count;
        let squares = drawn.iter().map(|value| value * value).sum::<f64>() / count;
        // Four standard deviations: 1/sqrt(n) for the mean, sqrt(20/n) for the mean square.
        assert!((mean - 1.0).abs() < 0.009 && (squares - 2.0).abs() < 0.04, "{mean} {squares}");
        for at_least in [0.5, 1.0, 2.5] {
            let share = drawn.iter().filter(|value| **value >= at_least).count() as f64 / count;
            assert!((share - (-at_least).exp()).abs() < 0.0045, "{share} of them at least {at_least}");
        }
    }

    #[test]
    fn the_loss_is_the_probability_of_a_frame_in_the_vulnerable_period() {
        let (interval, vulnerable) = (Duration::from_millis(12), Duration::from_micros(2_800));
        let wanted = 1.0 - (-2.8_f64 / 12.0).exp();
        let mut prng = Prng::new(5);
        for spacing in [200, 2_000, 50_000] {
            let mut collisions = Collisions::new(interval, vulnerable);
            let packets = (0..500_000).map(|packet| Instant::from_micros(1_000_000 + packet * spacing));
            let lost = packets.filter(|&at| collisions.is_lost(at, &mut prng)).count();
            let share = lost as f64 / 500_000.0;
            assert!((share - wanted).abs() < 0.02, "{share} is not {wanted} at {spacing} us");
        }
    }

    #[test]
    fn packets_close_to_each_other_are_lost_together() {
        let mut collisions = Collisions::new(Duration::from_millis(100), Duration::from_millis(2));
        let mut prng = Prng::new(6);
        let lost: Vec<bool> = (0..100_000)
            .map(|step| collisions.is_lost(Instant::from_micros(step * 100), &mut prng))
            .collect();
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean = lost.iter().filter(|lost| **lost).count() as f64 / runs as f64;
        // Twenty steps of 0.1 ms, and slightly more where two frames overlap.
        assert!((19.0..22.5).contains(&mean), "{mean} packets a run");
    }

    #[test]
    fn zero_lengths_and_intervals_are_valid() {
        let mut prng = Prng::new(1);
        let mut harmless = Collisions::new(Duration::from_millis(1), Duration::ZERO);
        assert!((0..1_000).all(|millis| !harmless.is_lost(Instant::from_millis(millis), &mut prng)));
        assert!(Collisions::new(Duration::ZERO, Duration::ZERO).is_lost(Instant::ZERO, &mut prng));
    }
}
