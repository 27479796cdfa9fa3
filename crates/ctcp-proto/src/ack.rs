//! The receiving half of acknowledgements: which packet numbers arrived, and when to send an ACK.

pub(crate) mod ranges;
pub(crate) mod receiver;
