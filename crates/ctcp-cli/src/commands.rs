//! One command a file.

pub(crate) mod client;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod files;
pub(crate) mod keygen;
pub(crate) mod server;
