//! The papers' measurements on real sockets. Two network namespaces are joined by paths that this process emulates.
//! Unchanged programs and the transports that a user would choose instead of ours run on them.
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
//! | [`plan`] | descriptions of networks: paths, hops, loss, queues, traces |
//! | [`namespace`] | a namespace and a thread inside it; an unnamed one disappears when the process ends |
//! | [`emulator`] | moves packets in real time and reports how late it was |
//! | [`network`] | both namespaces, the devices and the emulator in one value |
//! | [`process`] | programs of peers, which end with this process |
//! | [`peer`] | the transports under test, one file each, behind one small trait |
//! | [`bulk`] | the server and the download that measure |
//! | [`probe`] | ping and datagrams, to measure the network itself |
//! | [`testbed`] | runs measurements, repeats those for which the emulator was too late, keeps records |
//! | [`compare`] | all peers on the same networks in one run |
//! | [`figure`] | the figures, one file each |
//!
//! Everything here needs root and Linux; on other systems the crate is empty.
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
pub use stop::{LOOK_EVERY, Stop};
