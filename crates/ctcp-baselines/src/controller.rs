//! Congestion controllers from the papers. To add one, create a file here with its `PARTS`, and add its name to this
//! list.

use ctcp_proto::congestion::Algorithm;

parts!(Algorithm: constant_alpha, thesis, vegas);

pub use constant_alpha::CTCP_CONSTANT_ALPHA;
pub use thesis::THESIS;
pub use vegas::VEGAS;
