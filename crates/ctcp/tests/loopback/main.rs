//! Whole connections over real sockets of this machine. No fixed ports, no root, no sleeping polls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_paths;
mod ends;
mod handshakes;
mod relay;
mod setup;
mod streams;
mod transfers;
