//! Measurements of a network path: round-trip time, loss and delivery rate. A new path starts with fresh estimators.

use ctcp_base::Instant;

use crate::profile::{LossRule, Rules};
use crate::recovery::delivery_rate::DeliveryRate;
use crate::recovery::loss::{INITIAL_LOSS, LossAverage, LossDetector, MU};
use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};

/// The measurements of one path.
pub(crate) struct Measured {
    pub(crate) rtt: RttEstimator,
    /// Decides how late a packet may be before it is declared lost.
    pub(crate) losses: LossDetector,
    pub(crate) loss_average: LossAverage,
    pub(crate) delivery: DeliveryRate,
}

impl Measured {
    pub(super) fn new(now: Instant, rules: Rules) -> Self {
        Self {
            rtt: RttEstimator::new(INITIAL_RTT),
            losses: LossDetector::new(),
            loss_average: loss_average(rules),
            delivery: DeliveryRate::new(now),
        }
    }

    /// For a path on which hops repair what is lost.
    pub(super) fn patient(self) -> Self {
        Self { losses: LossDetector::patient(), ..self }
    }

    /// Starts the loss average anew.
    pub(super) fn forget_loss(&mut self, rules: Rules) {
        self.loss_average = loss_average(rules);
    }
}

fn loss_average(rules: Rules) -> LossAverage {
    let average = LossAverage::new(INITIAL_LOSS, MU);
    match rules.loss {
        LossRule::Printed => average,
        LossRule::Steadied => average.steadied(),
    }
}
