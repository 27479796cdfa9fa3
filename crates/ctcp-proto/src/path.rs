//! What belongs to one path besides its packets: whether its address is real, how large its datagrams may be, and whether they
//! may be marked.

pub(crate) mod ecn;
pub(crate) mod mtu;
mod state;
pub(crate) mod validation;

pub(crate) use state::Path;
