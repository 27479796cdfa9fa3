//! Basic types shared by all ctcp crates: an instant that is a plain number, typed units, a seeded random number
//! generator, and escaping of text received from a peer.
//!
//! Nothing here reads a clock or asks the operating system for entropy. Both are arguments, so a simulation and a real
//! connection run the same code, and the same seed gives the same run.

mod prng;
mod text;
mod time;
mod units;

pub use prng::{Prng, mix};
pub use text::Escaped;
pub use time::Instant;
pub use units::{ParseUnitError, Probability, Rate, parse_bytes, parse_duration};
