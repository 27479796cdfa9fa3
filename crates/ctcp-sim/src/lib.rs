//! Random and scripted networks in virtual time: real endpoints of `ctcp-proto`, emulated links of `ctcp-netem`, and
//! checkers that watch everything that happens.
//!
//! ```text
//!   Host ---- DuplexLink ---- Router ---- DuplexLink ---- Host        Simulation: one agenda ordered by (time, links first)
//!   Endpoint     taps         routes         taps      Endpoint
//!   Connections                                        Connections    Recorder: a hash over every datagram
//!   Application                                        Application    Ledger:   what was written, what was read
//! ```
//!
//! A figure of a paper is a [`Chain`](topology::Chain) of hops with flows on it. This is TCP/NC, Fig. 5: four hops of 1
//! Mbit/s, with a second flow that starts a thousand seconds later.
//!
//! ```
//! use core::time::Duration;
//! use ctcp_base::Rate;
//! use ctcp_netem::{Charge, LinkConfig, LossPlace, PathConfig, QueueLimit};
//! use ctcp_proto::TransportConfig;
//! use ctcp_sim::application::script::Script;
//! use ctcp_sim::network::FlowConfig;
//! use ctcp_sim::topology::Chain;
//!
//! let hop = LinkConfig::default()
//!     .with_rate(Rate::from_megabits_per_second(1))
//!     .with_delay(Duration::from_millis(100))
//!     .with_queue(QueueLimit::Packets(200))
//!     .with_charge(Charge::PAPERS)
//!     .with_loss_place(LossPlace::BehindQueue);
//! let mut chain = Chain::new(1, &vec![PathConfig::symmetric(hop); 4]);
//! let transport = TransportConfig::default();
//! let first = chain.flow(FlowConfig::new(Script::endless(), &transport));
//! let late = FlowConfig::new(Script::endless(), &transport).starting_after(Duration::from_secs(1_000));
//! let second = chain.flow(late);
//! let mut network = chain.build();
//! network.run_for(Duration::from_secs(10));
//! assert!(network.bytes_read(first) > 100_000 && network.bytes_read(second) == 0);
//! ```
//!
//! Nothing here reads a clock, and all randomness is derived from one seed. The same seed gives exactly the same trace.
//! [`swarm::run`] draws a whole network from a seed, so a failure can be replayed with that number alone.

mod agenda;
pub mod application;
pub mod checker;
pub mod ledger;
pub mod link;
pub mod measure;
pub mod messages;
pub mod mischief;
pub mod network;
pub mod node;
pub mod recorder;
mod routes;
pub mod series;
pub mod simulation;
pub mod swarm;
pub mod topology;

pub use simulation::{Scrutiny, Simulation, Stop};
