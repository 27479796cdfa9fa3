//! What belongs to one path beside its packets: whether its address is real, and how large its datagrams may be.
#![allow(dead_code, reason = "the connection that joins these policies grows on top of them")]

pub(crate) mod mtu;
mod state;
pub(crate) mod validation;

pub(crate) use state::Path;
