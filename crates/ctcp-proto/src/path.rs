//! The state of one network path: address validation, datagram size, ECN, measurements, congestion control and timers.

mod admission;
pub(crate) mod ecn;
mod measured;
pub(crate) mod migration;
pub(crate) mod mtu;
mod owed;
pub(crate) mod scheduler;
mod set;
mod state;
pub(crate) mod validation;

pub(crate) use set::{PathUse, Paths};
pub(crate) use state::Path;
