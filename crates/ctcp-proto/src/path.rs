//! What belongs to one path beside its packets: whether its address is real, and how large its datagrams may be.

pub(crate) mod mtu;
mod state;
pub(crate) mod validation;

pub(crate) use state::Path;
