//! The papers' policies for what to combine and how often, and the thesis's own decoder. The product does not use them.

mod credit;
mod sparse;
mod window_code;

pub use credit::{CombinationCredit, RATIO_MAX};
pub use sparse::{SparseChoice, SparseCode, SparseDecoder, SparseRepairs, coding_window};
pub use window_code::{KeyedRange, WindowCode};
