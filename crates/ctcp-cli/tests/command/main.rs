//! Tests of the built command on loopback, as users run it.

#[cfg(unix)]
mod clients;
mod first_hour;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod memory;
mod messages;
mod metrics;
#[cfg(target_os = "linux")]
mod relays;
mod setup;
