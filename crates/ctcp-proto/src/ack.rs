//! The receiving half of acknowledgements: which packet numbers arrived, and when to send an ACK. The sender may ask for fewer.

pub(crate) mod frequency;
pub(crate) mod ranges;
pub(crate) mod receiver;
