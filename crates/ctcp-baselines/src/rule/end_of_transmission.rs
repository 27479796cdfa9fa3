//! EOT (2013): protects the end of a transmission.

use ctcp_proto::scheme::{RepairRule, TakesRatio};
use ctcp_proto::{Ratio, Redundancy};

pub(super) const PARTS: &[&RepairRule] = &[&END_OF_TRANSMISSION];

/// R combinations per new symbol, and after the last symbol as many as the receiver is known to lack (EOT).
pub static END_OF_TRANSMISSION: RepairRule = RepairRule {
    number: 4,
    name: "end-of-transmission",
    takes_ratio: TakesRatio::Optional,
    is_short: |_| false,
    windows_in_block: 1.0,
    codes: &[],
};

/// Returns [`END_OF_TRANSMISSION`] with the given R.
#[must_use]
pub const fn end_of_transmission(ratio: Ratio) -> Redundancy {
    Redundancy::with_ratio(&END_OF_TRANSMISSION, ratio)
}
