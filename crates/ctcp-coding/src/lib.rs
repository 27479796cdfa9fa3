#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod coefficients;
mod credit;
mod decoder;
mod echelon;
mod encoder;
pub mod gf256;
mod recoder;
mod slots;
mod sparse;
mod sweep;
mod symbol_range;
#[cfg(test)]
mod test_random;
mod window_code;

pub use credit::{CombinationCredit, RATIO_MAX};
pub use decoder::{Arrival, DecodeError, Decoder, DecoderConfig, MissingInterval, Witness};
pub use echelon::Work;
pub use encoder::{CombineError, Encoder, PushError};
pub use recoder::{RecodeError, Recoder, RecoderConfig};
pub use sparse::{SparseChoice, SparseCode, SparseDecoder, SparseRepairs, coding_window};
pub use symbol_range::{MAX_SPAN, SymbolRange};
pub use window_code::{KeyedRange, WindowCode};
