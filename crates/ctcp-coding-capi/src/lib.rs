//! The C interface of [`ctcp_coding`]. The header is `include/ctcp_coding.h`; `examples/` has an example.
//!
//! This is a separate crate rather than a feature of the library. The library keeps `no_std`, has no `unsafe` outside
//! its kernels, exports no C symbols, and is not built as an archive for every dependent.
//!
//! Rules for all functions:
//!
//! - An object belongs to the caller until it is passed to its `_free` function. Only one thread at a time may use it.
//! - Null for an object or an output pointer is an error, not undefined behaviour.
//! - Null for input bytes is allowed if their count is 0.
//! - Functions that return `i32` return one of the numbers in [`status`].
//!
//! A panic would abort the process; none is expected.

mod decoder;
mod encoder;
mod memory;
mod recoder;
pub mod status;

/// The maximum size of a symbol in bytes. No datagram holds more.
pub const SYMBOL_SIZE_MAX: usize = 65_535;

/// The maximum number of symbols in a window.
pub const WINDOW_MAX: usize = 1 << 20;

pub use decoder::*;
pub use encoder::*;
pub use recoder::*;
