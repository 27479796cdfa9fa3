//! Repair rules from the papers. To add one, create a file here with its `PARTS`, and add its name to this list.

use ctcp_proto::scheme::RepairRule;

parts!(&RepairRule: end_of_transmission, pseudo_block);

pub use end_of_transmission::{END_OF_TRANSMISSION, end_of_transmission};
pub use pseudo_block::{PSEUDO_BLOCK, pseudo_block};
