//! The built command, as a researcher meets it.

mod repro;
mod setup;
#[cfg(target_os = "linux")]
mod testbed;
