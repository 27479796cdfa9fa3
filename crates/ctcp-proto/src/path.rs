//! What belongs to one path besides its packets: whether its address is real, how large its datagrams may be, and whether they
//! may be marked.

mod admission;
pub(crate) mod ecn;
mod measured;
pub(crate) mod mtu;
mod owed;
mod state;
pub(crate) mod validation;

pub(crate) use state::Path;
