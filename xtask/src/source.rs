//! The repository as the chores see it: files, and Rust sources separated into code and comments.

pub(crate) mod functions;
pub(crate) mod mask;
pub(crate) mod rust;
pub(crate) mod tree;
