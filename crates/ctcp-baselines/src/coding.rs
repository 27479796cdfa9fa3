//! What the papers combine and how often, and the thesis's own decoder: policies and a decoder that no connection of the product uses.

mod credit;
mod sparse;
mod window_code;

pub use credit::{CombinationCredit, RATIO_MAX};
pub use sparse::{SparseChoice, SparseCode, SparseDecoder, SparseRepairs, coding_window};
pub use window_code::{KeyedRange, WindowCode};
