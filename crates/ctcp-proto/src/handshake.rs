//! The parts of the handshake (PROTOCOL.md section 3): Noise messages, cookies, and limits on half-open handshakes.
//!
//! ```text
//!  INITIATE ---> HalfOpen::admit ---> Responder::open ---> Responder::answer ---> HalfOpen::insert ---> RESPONSE
//!                  |  ^                                                               |
//!           COOKIE |  | CookieJar::is_valid                first sealed packet: HalfOpen::remove
//!                  v  |
//!            CookieJar::make
//! ```

mod census;
pub mod cookie;
mod gate;
pub mod half_open;
mod networks;
pub mod noise;
mod sketch;
mod token_bucket;

pub(crate) use census::Census;
pub use cookie::CookieJar;
pub use half_open::{Admission, HALF_OPEN_LIFETIME, HalfOpen};
pub use noise::{HandshakeError, Initiator, Responder, Secrets};
