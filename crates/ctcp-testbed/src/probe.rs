//! Probe packets, which measure the emulated network, and messages, which measure a transport.

mod datagrams;
mod messages;
mod ping;

pub use datagrams::{Arrivals, Datagrams};
pub(crate) use messages::AFTERWARDS;
pub use messages::{DEADLINE, DatagramTarget, Delivery, MessageServer, Messages};
pub use ping::ping;
