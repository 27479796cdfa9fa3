//! The receiving half of acknowledgements: which packet numbers arrived, and when to say so.

pub(crate) mod ranges;
pub(crate) mod receiver;
