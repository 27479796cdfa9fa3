//! Loss models, one loss process per file.

mod bernoulli;
mod collisions;
mod gilbert_elliott;
mod on_off;
mod pattern;
mod steps;

use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Instant, Prng, Probability};

pub use gilbert_elliott::GilbertElliott;

/// A loss model. It has only parameters; the state is in the link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossModel {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability, independently of all others.
    Bernoulli(Probability),
    /// Bursts: a two-state Markov chain with one transition per packet.
    GilbertElliott(GilbertElliott),
    /// Periodic interference: in the first `on` of each `period`, packets are lost with probability `loss`. A microwave
    /// oven has 20 ms, 9 ms and 1 (CTCP paper, section 7.1).
    OnOff {
        /// The time from the start of one lossy part to the start of the next.
        period: Duration,
        /// The duration of the lossy part of each period.
        on: Duration,
        /// The loss probability during the lossy part.
        loss: Probability,
    },
    /// Collisions with frames that begin at the instants of a Poisson process (hidden terminal, CTCP paper, section
    /// 7.2). A packet is lost if a frame began less than `vulnerable` before it.
    ///
    /// Meant for loss after the queue. There `vulnerable` is the airtime of the packet plus that of a frame.
    Collisions {
        /// The mean time from the beginning of one frame to the next.
        interval: Duration,
        /// The vulnerable period.
        vulnerable: Duration,
    },
    /// Independent loss whose probability changes with time. The n-th step from `since` on has the n-th of `losses`,
    /// repeated cyclically. Before `since`, the first one applies.
    Steps {
        /// The beginning of the first step.
        since: Instant,
        /// The duration of each step.
        step: Duration,
        /// The loss probability of each step.
        losses: Arc<[Probability]>,
    },
    /// A script for tests: the n-th packet is lost if the n-th entry is true. After the end, no packet is lost.
    Pattern(Vec<bool>),
}

impl LossModel {
    /// Returns independent loss with the given probability.
    #[must_use]
    pub const fn bernoulli(probability: Probability) -> Self {
        Self::Bernoulli(probability)
    }

    /// Returns bursts of `burst` packets on average with the mean loss `mean`. See
    /// [`GilbertElliott::from_mean_and_burst`] for the possible values.
    #[must_use]
    pub fn bursts(mean: Probability, burst: f64) -> Option<Self> {
        GilbertElliott::from_mean_and_burst(mean, burst).map(Self::GilbertElliott)
    }

    /// Returns a loss that rises and falls: `mean + swing sin(2 pi t / period)`, sampled at each whole second since
    /// `since`. With a `swing` of 0.8 `mean` it is our reading of TCP/NC's Fig. 8, whose loss profile is not printed.
    ///
    /// Returns `None` if the period is not a whole number of seconds, or if the loss would leave the range 0 to 1.
    #[must_use]
    pub fn sinusoid(since: Instant, mean: f64, swing: f64, period: Duration) -> Option<Self> {
        if period.is_zero() || period.subsec_nanos() != 0 {
            return None;
        }
        let seconds = period.as_secs();
        let loss =
            |second| Probability::new(mean + swing * steps::sine_of_turn(second as f64 / seconds as f64));
        let losses = (0..seconds).map(loss).collect::<Option<_>>()?;
        Some(Self::Steps { since, step: Duration::from_secs(1), losses })
    }
}

/// A loss model with its state.
#[derive(Clone, Debug)]
pub(crate) enum LossProcess {
    None,
    Bernoulli(Probability),
    GilbertElliott(gilbert_elliott::Chain),
    OnOff(on_off::OnOff),
    Collisions(collisions::Collisions),
    Steps(steps::Steps),
    Pattern(pattern::Pattern),
}

impl LossProcess {
    pub(crate) fn new(model: &LossModel) -> Self {
        match model {
            LossModel::None => Self::None,
            LossModel::Bernoulli(probability) => Self::Bernoulli(*probability),
            LossModel::GilbertElliott(parameters) => {
                Self::GilbertElliott(gilbert_elliott::Chain::new(*parameters))
            }
            LossModel::OnOff { period, on, loss } => Self::OnOff(on_off::OnOff::new(*period, *on, *loss)),
            LossModel::Collisions { interval, vulnerable } => {
                Self::Collisions(collisions::Collisions::new(*interval, *vulnerable))
            }
            LossModel::Steps { since, step, losses } => {
                Self::Steps(steps::Steps::new(*since, *step, losses.clone()))
            }
            LossModel::Pattern(lost) => Self::Pattern(pattern::Pattern::new(lost.clone())),
        }
    }

    /// Decides whether the packet that arrives at `now` is lost.
    pub(crate) fn is_lost(&mut self, now: Instant, prng: &mut Prng) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(probability) => bernoulli::is_lost(*probability, prng),
            Self::GilbertElliott(chain) => chain.is_lost(prng),
            Self::OnOff(on_off) => on_off.is_lost(now, prng),
            Self::Collisions(collisions) => collisions.is_lost(now, prng),
            Self::Steps(steps) => steps.is_lost(now, prng),
            Self::Pattern(pattern) => pattern.is_lost(),
        }
    }
}
