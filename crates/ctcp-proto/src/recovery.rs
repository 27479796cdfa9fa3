//! What one path knows about the packets it sent: which arrived, which are lost, how long a round trip takes,
//! when to ask again and when the next packet may leave.
//!
//! Every part is a policy of its own without a clock, a socket or a connection: `now` is an argument. The
//! connection joins them:
//!
//! ```text
//!   send   pacer -> sent (ledger), delivery_rate (snapshot), timeout (armed)
//!   ACK    sent -> newly acked -> rtt, delivery_rate, loss average, congestion
//!                -> detect_losses (loss thresholds) -> loss average, congestion, owed degrees of freedom
//!   timer  loss time | probe time-out | retransmission time-out
//! ```

pub(crate) mod bursts;
pub(crate) mod delivery_rate;
pub(crate) mod loss;
pub(crate) mod pacer;
pub(crate) mod rtt;
pub(crate) mod sent;
pub(crate) mod sliding;
pub(crate) mod timeout;
