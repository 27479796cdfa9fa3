//! The libraries, each used as its documentation says is fastest.
//!
//! All get the same: the packets that arrived, in memory, aligned, with coefficients or numbers beside them. A run ends
//! when all symbols of the block can be read. Whether the ones that arrived uncoded are copied into memory of the
//! decoder is part of a library's design, and said with its name.

pub mod ctcp;
pub mod isal;
pub mod raptorq;
pub mod reed_solomon;
pub mod rlnc;

use crate::case::Case;

/// A library with one case set up.
pub trait Contestant {
    fn library(&self) -> String;

    /// Makes ready for `runs` runs; not timed.
    fn arm(&mut self, _runs: usize) {}

    /// Decodes the block once.
    fn run(&mut self);

    /// Compares every symbol that the last run recovered.
    fn check(&self, case: &Case);
}
