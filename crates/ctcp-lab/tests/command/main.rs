//! Tests of the built command, as researchers run it.

mod repro;
mod setup;
#[cfg(target_os = "linux")]
mod testbed;
