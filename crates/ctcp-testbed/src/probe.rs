//! Packets of our own, to see what the emulated network does to them, and messages, to see what a transport does to those.

mod datagrams;
mod messages;
mod ping;

pub use datagrams::{Arrivals, Datagrams};
pub(crate) use messages::AFTERWARDS;
pub use messages::{Delivery, MessageServer, Messages};
pub use ping::ping;
