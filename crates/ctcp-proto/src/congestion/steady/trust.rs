//! May the loss of calm moments be believed to be the path's own?
//!
//! A flow that joins a full queue takes it for the empty path, and all that the queue drops for noise. So the belief needs a reason: either
//! round trips clearly longer than the base were seen, so that a full queue would be noticed; or an experiment ([`Push`](super::push::Push)) showed
//! that the link is full of our own packets, so that there is nobody to harm. A new flow is believed for some round trips, for it
//! cannot have a reason yet; without one, the next try comes later each time.

use core::time::Duration;

use ctcp_base::Instant;

/// Round trips without a reason.
const GRACE: u32 = 24;

/// How long an experiment counts.
const PROOF: Duration = Duration::from_secs(10);

/// How long there is no belief after that, doubled each time, and how often it is doubled.
const REST: Duration = Duration::from_secs(5);
const DOUBLINGS_MAX: u32 = 5;

/// Less loss than this needs no reason.
const LOSS_MIN: f64 = 0.02;

/// Whether loss may be believed to be innocent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// When an experiment showed a full link, on a path of this smallest round trip.
    proven: Option<(Instant, Duration)>,
    /// No belief until then.
    refused_until: Option<Instant>,
    rounds: u32,
    refusals: u32,
    has_contrast: bool,
    minimum: Duration,
}

impl Trust {
    /// Whether loss is believed to be innocent.
    pub(super) fn is_given(&self) -> bool {
        self.has_contrast || self.refused_until.is_none()
    }

    /// Whether a full queue would be seen.
    pub(super) fn has_contrast(&self) -> bool {
        self.has_contrast
    }

    /// Whether an experiment is wanted when the share `loss` is lost in calm moments.
    pub(super) fn wants_proof(&self, loss: f64) -> bool {
        !self.has_contrast && loss > LOSS_MIN && self.refused_until.is_none()
    }

    /// Learns that round trips of `highest` were seen on an empty path of `base`, whose smallest is `minimum`.
    pub(super) fn on_level(&mut self, highest: Duration, base: Duration, minimum: Duration) {
        self.has_contrast = highest > base + base / 4;
        self.minimum = minimum;
    }

    /// An experiment showed that the link is full of our own packets.
    pub(super) fn prove(&mut self, now: Instant) {
        *self = Self {
            proven: Some((now, self.minimum)),
            has_contrast: self.has_contrast,
            minimum: self.minimum,
            ..Self::default()
        };
    }

    /// A round trip is over; the share `loss` is lost in calm moments.
    pub(super) fn on_round(&mut self, now: Instant, loss: f64) {
        if self.has_contrast || loss < LOSS_MIN {
            return;
        }
        if let Some((at, minimum)) = self.proven.take() {
            if now - at < PROOF && self.minimum < minimum * 9 / 8 {
                self.proven = Some((at, minimum));
                return;
            }
            self.rounds = 0;
        }
        if let Some(until) = self.refused_until {
            if now < until {
                return;
            }
            self.refused_until = None;
            self.rounds = 0;
        }
        self.rounds += 1;
        if self.rounds > GRACE {
            self.refusals = (self.refusals + 1).min(DOUBLINGS_MAX);
            self.refused_until = Some(now + REST * (1 << self.refusals));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn rounds(trust: &mut Trust, begin: u64) {
        (0..30).for_each(|round| trust.on_round(at(begin + 20 * round), 0.1));
    }

    #[test]
    fn belief_without_a_reason_ends_and_is_tried_again_later() {
        let mut trust = Trust::default();
        trust.on_level(BASE, BASE, BASE);
        assert!(trust.is_given() && trust.wants_proof(0.1));
        rounds(&mut trust, 0);
        assert!(!trust.is_given() && !trust.wants_proof(0.1));
        trust.on_round(at(12_000), 0.1);
        assert!(trust.is_given());
    }

    #[test]
    fn a_proof_holds_until_the_path_is_another() {
        let mut trust = Trust::default();
        trust.on_level(BASE, BASE, BASE);
        trust.prove(at(0));
        rounds(&mut trust, 100);
        assert!(trust.is_given());
        trust.on_level(BASE * 2, BASE * 2, BASE * 2);
        rounds(&mut trust, 1_000);
        assert!(!trust.is_given());
    }

    #[test]
    fn a_queue_that_was_seen_is_reason_enough() {
        let mut trust = Trust::default();
        trust.on_level(BASE * 2, BASE, BASE);
        rounds(&mut trust, 0);
        assert!(trust.is_given() && !trust.wants_proof(0.1));
    }
}
