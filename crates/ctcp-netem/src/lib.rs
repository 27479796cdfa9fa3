//! Seeded models of lossy links, driven in virtual or in real time.
//!
//! A [`Link`] is one direction of a path. It does no I/O and reads no clock. Its driver passes packets in with the
//! instant of their arrival and polls for packets that are due. The same seed, packets and instants give the same
//! deliveries. A simulation is therefore exactly repeatable, and the loopback demo runs the same model as the tests.
//!
//! ```text
//!            lost        flipped, copied     too fast: dropped   full: dropped         or lost here
//!              ^                ^                  ^           long: marked  ^                 ^
//!              |                |                  |                |        |                 |
//! packet -> [loss] -> [corrupt, duplicate] -> [policer] ---------> [queue, rate] -------> [loss after] ---+
//!                                                                                                         |
//! packet <------------------------------------------------------ [delay, jitter, reorder] <--------------+
//! ```
//!
//! By default the queue is a drop-tail queue without a policer. A [`Discipline`] can mark packets before the queue is
//! full, or serve flows in turn. For this, a [`Packet`] states whether it can be marked and to which flow it belongs.
//!
//! By default packets are lost before the rate ([`LossPlace`]), as in the experiments of the CTCP paper (Fig. 3). A
//! lost packet uses no capacity, so an ideal sender reaches the full rate at any loss. The figures of TCP/NC need loss
//! after the rate: there a lost packet has used its share of the link.
//!
//! ```
//! use core::time::Duration;
//! use ctcp_base::{Instant, Prng, Rate};
//! use ctcp_netem::{Link, LinkConfig};
//!
//! let config = LinkConfig::default()
//!     .with_rate(Rate::from_megabits_per_second(12))
//!     .with_delay(Duration::from_millis(10));
//! let mut link = Link::new(config, Prng::new(1));
//! link.handle_packet(Instant::ZERO, vec![0_u8; 1_472]);
//! // 1,472 bytes and 28 of headers take 1 ms at 12 Mbit/s, then 10 ms to arrive.
//! assert_eq!(link.poll_timeout(), Some(Instant::from_millis(11)));
//! assert!(link.poll_delivery(Instant::from_millis(10)).is_none());
//! assert!(link.poll_delivery(Instant::from_millis(11)).is_some());
//! ```

mod charge;
mod codel;
mod config;
mod delay;
mod discipline;
mod flow_queue;
mod hops;
mod link;
mod loss;
mod packet;
mod policer;
mod preset;
mod queue;
mod rate;
mod schedule;
mod stats;
mod trace;

pub use charge::Charge;
pub use config::{IPV4_UDP_OVERHEAD, LinkConfig, LossPlace, PathConfig};
pub use delay::{MAX_HELD_BYTES, MAX_HELD_PACKETS};
pub use discipline::{CodelConfig, Discipline, PolicerConfig};
pub use hops::{Hop, Hops};
pub use link::Link;
pub use loss::{GilbertElliott, LossModel};
pub use packet::Packet;
pub use preset::{Preset, UnknownPreset};
pub use queue::{FULL_PACKET_BYTES, QueueLimit};
pub use schedule::{Change, Schedule};
pub use stats::LinkStats;
pub use trace::{Trace, TraceError, parse_changes};
