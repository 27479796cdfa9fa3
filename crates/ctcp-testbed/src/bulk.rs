//! A server that sends as many bytes as requested, and the download that measures their arrival.
//!
//! ```text
//!   client:  bytes wanted, 8 bytes in network order; u64::MAX: without end
//!   server:  that many bytes of a known pattern, then its end of the stream
//! ```
//!
//! Every received byte is compared with the pattern, so that lost or reordered bytes are noticed.

mod download;
mod pattern;
mod server;
mod socket;
mod upload;

pub use download::{Download, Request, Sample, Transfer};
pub use server::BulkServer;
pub(crate) use server::{ENDLESS, send_pattern};
pub use socket::SocketPlan;
pub(crate) use socket::is_timeout;
pub use upload::{Sink, upload};
