//! Parts that fuzz targets and tests outside of this crate drive directly. Not part of the API: no promise of
//! stability.

pub use crate::stream::{
    Assembler, Control, Pace, PagePool, SEND_BUFFER_MAX, SEND_TOTAL_MAX, StreamEvent, Streams, StreamsConfig,
};
