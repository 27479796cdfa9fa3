//! Packets of our own, to see what the emulated network does to them: ping, and datagrams at a rate.

mod datagrams;
mod ping;

pub use datagrams::{Arrivals, Datagrams};
pub use ping::ping;
