//! Acknowledgements: which packet numbers arrived, when to say so, and how often the other side wants to hear it.

pub(crate) mod frequency;
pub(crate) mod ranges;
pub(crate) mod receiver;
