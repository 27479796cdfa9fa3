//! The state of one network path: address validation, datagram size, ECN, measurements, congestion control and timers.

mod admission;
pub(crate) mod ecn;
mod measured;
pub(crate) mod mtu;
mod owed;
mod state;
pub(crate) mod validation;

pub(crate) use state::Path;
