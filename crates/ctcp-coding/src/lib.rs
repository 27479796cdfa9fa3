#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod coefficients;
mod decoder;
pub mod echelon;
mod encoder;
pub mod gf256;
mod recoder;
mod slots;
mod sweep;
mod symbol_range;
#[cfg(test)]
mod test_random;

pub use decoder::{
    Arrival, DecodeError, Decoder, DecoderConfig, MissingInterval, Witness, check_combination,
};
pub use echelon::Work;
pub use encoder::{CombineError, Encoder, PushError};
pub use recoder::{RecodeError, Recoder, RecoderConfig};
pub use symbol_range::{MAX_SPAN, SymbolRange};
