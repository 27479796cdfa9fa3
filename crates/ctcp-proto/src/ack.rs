//! The receiving half of acknowledgements: which packet numbers arrived, and when to say so.
#![allow(dead_code, reason = "the connection that joins these policies grows on top of them")]

pub(crate) mod ranges;
pub(crate) mod receiver;
