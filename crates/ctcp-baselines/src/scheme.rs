//! Coding schemes from the papers, and the classical TCP they compare with. To add one, create a file here with its
//! `PARTS`, and add its name to this list.

use ctcp_proto::scheme::Code;

parts!(Code: classic, sparse);

pub(crate) use classic::UNPACED;
pub use classic::{CLASSIC, VEGAS_SOURCE, WINDOW, WINDOW_EOT, WINDOW_EOT_ESTIMATED};
pub use sparse::{BLOCK_SIZE as SPARSE_BLOCK_SIZE, BLOCKS as SPARSE_BLOCKS, SPARSE};
