//! Whole connections over real sockets of this machine, without fixed ports, root or sleeping polls.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bad_paths;
mod carried;
mod early;
mod ends;
mod handshakes;
mod messages;
mod relay;
mod setup;
mod streams;
mod transfers;
