//! The libraries, each used in the way that its documentation calls fastest.
//!
//! All get the same input: the packets that arrived, in memory, aligned, with coefficients or numbers. A run ends when
//! all symbols of the block can be read. Whether uncoded packets are copied into memory of the decoder is part of a
//! library's design, and stated with its name.

pub mod ctcp;
pub mod isal;
pub mod raptorq;
pub mod reed_solomon;
pub mod rlnc;

use crate::case::Case;

/// A library with one case set up.
pub trait Contestant {
    fn library(&self) -> String;

    /// Prepares `runs` runs; not timed.
    fn arm(&mut self, _runs: usize) {}

    /// Decodes the block once.
    fn run(&mut self);

    /// Compares every symbol that the last run recovered.
    fn check(&self, case: &Case);
}
