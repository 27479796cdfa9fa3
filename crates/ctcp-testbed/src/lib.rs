//! The papers' measurements on real sockets: two network namespaces, joined by paths that this process emulates, and on them
//! unchanged programs and the transports that a user would choose instead of ours.
//!
//! ```text
//!   server's namespace                    this process                     client's namespace
//!
//!   bulk server, web server                                                 download, curl
//!        |                            +-- emulator thread --+                     |
//!   peer's server (ctcp server)       |   ctcp_netem::Hops  |         peer's client (ctcp client)
//!        |                            |   for each way      |                     |
//!     [ TUN 10.71.1.1 ] --- read ---> | loss, queue, rate,  | --- write --> [ TUN 10.71.1.2 ]
//!                       <-- write --- | delay, as planned   | <-- read ---
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`plan`] | what a network is like: paths, hops, loss, queues, traces, in words that a figure writes down |
//! | [`namespace`] | a namespace and a thread inside it; without a name, nothing is left of it when the process ends |
//! | [`emulator`] | moves packets in real time and says how late it was |
//! | [`network`] | both namespaces, the devices and the emulator in one value |
//! | [`process`] | programs of peers, which end with us |
//! | [`peer`] | the transports under test, one file each, behind one small trait |
//! | [`bulk`] | the server and the download that measure |
//! | [`probe`] | ping and datagrams, to see what the network does |
//! | [`testbed`] | runs measurements, repeats those that the emulator was too late for, keeps records |
//! | [`compare`] | all peers on the same networks in one run |
//! | [`figure`] | what is measured, one file each |
//!
//! All of it needs root and Linux; on other systems the crate is empty.
#![cfg(target_os = "linux")]

mod awake;
pub mod bulk;
mod clock;
pub mod compare;
pub mod emulator;
mod error;
pub mod figure;
pub mod namespace;
pub mod network;
pub mod peer;
pub mod plan;
mod priority;
pub mod probe;
pub mod process;
mod stop;
pub mod testbed;

pub use clock::Clock;
pub use error::TestbedError;
pub use stop::Stop;
