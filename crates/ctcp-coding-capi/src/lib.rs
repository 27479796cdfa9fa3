//! [`ctcp_coding`] for programs in C. The header is `include/ctcp_coding.h`, with an example in `examples/`.
//!
//! A crate of its own instead of a feature of the library: the library stays free of `unsafe` outside its kernels and of symbols
//! that nobody in Rust calls, keeps `no_std`, and is not built as an archive each time somebody depends on it.
//!
//! Rules of the border, for all functions: an object belongs to the caller until its `_free`, and one thread at a time may use it; null for an
//! object or an answer's place is an error and not a crash; null for bytes means none, if their count is 0; what is returned are
//! the numbers of [`status`]. A panic would end the process, and none is meant to happen.

mod decoder;
mod encoder;
mod memory;
mod recoder;
pub mod status;

/// Most bytes in a symbol: no datagram holds more.
pub const SYMBOL_SIZE_MAX: usize = 65_535;

/// Most symbols in a window.
pub const WINDOW_MAX: usize = 1 << 20;

pub use decoder::*;
pub use encoder::*;
pub use recoder::*;
