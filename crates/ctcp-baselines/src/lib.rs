//! The papers' baselines and proposals as printed: classical TCP, TCP/NC, EOT/PB, the thesis and Vegas; and BBR.
//!
//! Everything here plugs into `ctcp-proto` from outside and uses the same packets, decoder and runtime. Nothing here is
//! meant for networks shared with others. [`catalogue`] is for testbeds. [`simulated`] is for simulations, in which
//! sources send as in the papers.

/// Declares the files of a folder and lists their parts. A part is registered only by listing the name of its file.
macro_rules! parts {
    ($part:ty: $($file:ident),+) => {
        $(mod $file;)+

        /// The parts of each file.
        pub(crate) const ALL: &[&[$part]] = &[$($file::PARTS),+];
    };
}

pub mod coding;
mod controller;
mod registry;
mod rule;
mod scheme;
pub mod symbolic;

pub use controller::{BBR, BBR_TOLERANT, CTCP_CONSTANT_ALPHA, THESIS, VEGAS};
pub use registry::{SPARSE_PROFILE, TCP_NC, TCP_NC_EOT, TCP_NC_PB, catalogue, everything, simulated};
pub use rule::{END_OF_TRANSMISSION, PSEUDO_BLOCK, end_of_transmission, pseudo_block};
pub use scheme::{
    CLASSIC, SPARSE, SPARSE_BLOCK_SIZE, SPARSE_BLOCKS, VEGAS_SOURCE, WINDOW, WINDOW_EOT, WINDOW_EOT_ESTIMATED,
};
