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
        let average = LossAverage::new(INITIAL_LOSS, MU);
        Self {
            rtt: RttEstimator::new(INITIAL_RTT),
            losses: LossDetector::new(),
            loss_average: match rules.loss {
                LossRule::Printed => average,
                LossRule::Steadied => average.steadied(),
            },
            delivery: DeliveryRate::new(now),
        }
    }
}
