//! A server that sends as much as it is asked for, and the download that measures how that arrives.
//!
//! ```text
//!   client:  bytes wanted, 8 bytes in network order; u64::MAX: without end
//!   server:  so many bytes of a known pattern, then its end of the stream
//! ```
//!
//! Every byte that arrives is compared with the pattern, so that a transport that loses or mixes up something is found out.

mod download;
mod pattern;
mod server;
mod socket;
mod upload;

pub use download::{Download, Request, Sample, Transfer};
pub use server::BulkServer;
pub use socket::SocketPlan;
pub(crate) use socket::is_timeout;
pub use upload::{Sink, upload};
