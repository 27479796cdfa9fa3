//! What every ctcp crate shares: an instant that is only a number, units that cannot be mixed
//! up, a seeded random number generator, and how a peer's text is shown.
//!
//! Nothing here reads a clock or asks the operating system for entropy: both are arguments, so
//! that a simulation and a real connection run the same code and the same seed gives the same run.

mod prng;
mod text;
mod time;
mod units;

pub use prng::{Prng, mix};
pub use text::Escaped;
pub use time::Instant;
pub use units::{ParseUnitError, Probability, Rate, parse_bytes, parse_duration};
