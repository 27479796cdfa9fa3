//! Proxies and files over real ctcp connections on this machine, without fixed ports, root or sleeping polls.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod files;
mod proxies;
mod setup;
mod udp;
