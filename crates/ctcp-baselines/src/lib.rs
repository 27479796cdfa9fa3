//! What the papers compare with, and what they propose exactly as they print it: classical TCP, TCP/NC, EOT/PB, the thesis, Vegas.
//!
//! Everything here plugs into `ctcp-proto` from outside, over the same packets, the same decoder and the same runtime. None of it is for
//! networks that others use: [`catalogue`] is for testbeds, [`simulated`] for simulations, where sources send as the papers'.

/// Declares the files of a folder and lists what is in them: a part is registered by the name of its file, and by nothing else.
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

pub use controller::{CTCP_CONSTANT_ALPHA, THESIS, VEGAS};
pub use registry::{SPARSE_PROFILE, TCP_NC, TCP_NC_EOT, TCP_NC_PB, catalogue, everything, simulated};
pub use rule::{END_OF_TRANSMISSION, PSEUDO_BLOCK, end_of_transmission, pseudo_block};
pub use scheme::{CLASSIC, SPARSE, VEGAS_SOURCE, WINDOW, WINDOW_EOT, WINDOW_EOT_ESTIMATED};
