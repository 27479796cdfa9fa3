//! Congestion controllers from the papers, and BBR. To add one, create a file here with its `PARTS`, and add its name to this
//! list.

use ctcp_proto::congestion::Algorithm;

parts!(Algorithm: bbr, constant_alpha, thesis, vegas);

pub use bbr::{BBR, BBR_TOLERANT};
pub use constant_alpha::CTCP_CONSTANT_ALPHA;
pub use thesis::THESIS;
pub use vegas::VEGAS;
