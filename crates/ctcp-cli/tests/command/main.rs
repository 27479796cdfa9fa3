//! The built command on loopback, as a user meets it.

mod first_hour;
#[cfg(target_os = "linux")]
mod limits;
mod messages;
mod repro;
mod setup;
#[cfg(target_os = "linux")]
mod testbed;
