//! Coding schemes of the papers, and the TCP that they compare with. A new one is a file here, with its `PARTS`, and its name in this list.

use ctcp_proto::scheme::Code;

parts!(Code: classic, sparse);

pub(crate) use classic::UNPACED;
pub use classic::{CLASSIC, VEGAS_SOURCE, WINDOW, WINDOW_EOT, WINDOW_EOT_ESTIMATED};
pub use sparse::SPARSE;
