//! The state of one network path: address validation, datagram size, ECN, measurements, congestion control and timers.

mod admission;
pub(crate) mod arrivals;
mod copies;
pub(crate) mod ecn;
mod measured;
pub(crate) mod migration;
mod mode;
pub(crate) mod mtu;
mod owed;
pub(crate) mod scheduler;
mod set;
mod silence;
mod state;
pub(crate) mod validation;

pub(crate) use copies::{Copies, CopyBudget};
pub use mode::{PREFERENCE_OF_FIRST, PathMode};
pub(crate) use owed::PROBES_AT_ONCE;
pub(crate) use set::{PathUse, Paths};
pub(crate) use state::Path;
pub use state::{RELAYED_PACKET, RELAYED_PAYLOAD};
