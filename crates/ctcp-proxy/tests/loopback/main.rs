//! Proxies and files over real ctcp connections on this machine. No fixed ports, no root, no sleeping polls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod files;
mod proxies;
mod setup;
