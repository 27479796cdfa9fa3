//! PB (2013): pseudo blocks.

use ctcp_proto::scheme::{RepairRule, TakesRatio};
use ctcp_proto::{Ratio, Redundancy};

pub(super) const PARTS: &[&RepairRule] = &[&PSEUDO_BLOCK];

/// R combinations per new symbol. After every hundredth symbol and after the last one, it adds as many as the receiver
/// is known to lack (PB).
pub static PSEUDO_BLOCK: RepairRule = RepairRule {
    number: 5,
    name: "pseudo-block",
    takes_ratio: TakesRatio::Optional,
    is_short: |_| false,
    windows_in_block: 1.0,
    codes: &[],
};

/// Returns [`PSEUDO_BLOCK`] with the given R.
#[must_use]
pub const fn pseudo_block(ratio: Ratio) -> Redundancy {
    Redundancy::with_ratio(&PSEUDO_BLOCK, ratio)
}
