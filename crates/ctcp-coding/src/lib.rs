#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod block;
pub mod coefficients;
mod decoder;
mod encoder;
pub mod gf256;
mod slots;
mod sweep;
mod symbol_range;
#[cfg(test)]
mod test_random;

pub use block::{BlockDecoder, Combination, RecoverError};
pub use decoder::{Arrival, DecodeError, Decoder, DecoderConfig, MissingInterval};
pub use encoder::{CombineError, Encoder, PushError};
pub use symbol_range::{MAX_SPAN, SymbolRange};
