//! Recovery of one path: which sent packets arrived or are lost, how long a round trip takes, when to probe and when the next packet may be
//! sent.
//!
//! Each part is independent of clocks, sockets and the connection: `now` is an argument. The connection combines them:
//!
//! ```text
//!   send   pacer -> sent (ledger), delivery_rate (snapshot), timeout (armed)
//!   ACK    sent -> newly acked -> rtt, delivery_rate, loss average, congestion
//!                -> detect_losses (loss thresholds) -> loss average, congestion, owed degrees of freedom
//!   timer  loss time | probe timeout | retransmission timeout
//! ```

pub(crate) mod bursts;
pub(crate) mod delivery_rate;
pub(crate) mod loss;
pub(crate) mod pacer;
pub(crate) mod rtt;
pub(crate) mod sent;
pub(crate) mod sliding;
pub(crate) mod timeout;
