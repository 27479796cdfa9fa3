//! Congestion controls that only the papers have. A new one is a file here, with its `PARTS`, and its name in this list.

use ctcp_proto::congestion::Algorithm;

parts!(Algorithm: constant_alpha, thesis, vegas);

pub use constant_alpha::CTCP_CONSTANT_ALPHA;
pub use thesis::THESIS;
pub use vegas::VEGAS;
