//! Internals for fuzz targets and tests of other crates. Not part of the public API, and not stable.

pub use crate::stream::{
    Assembler, Control, Interactive, Lane, Pace, PagePool, SEND_BUFFER_MAX, SEND_TOTAL_MAX, StreamEvent,
    Streams, StreamsConfig,
};
