//! `cargo xtask trials`: congestion control on random networks in virtual time, compared with an oracle or with as many
//! Reno flows, alongside other flows, and after pauses.

mod crowd;
mod oracle;
mod path;
mod pauses;
mod run;
mod shared;

use core::time::Duration;
use std::io;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig, QueueLimit};

pub(crate) use run::run;

/// A link that flows share, with a queue in bandwidth-delay products but at least ten packets, and loss on the way out.
fn bottleneck(megabits: u64, rtt: Duration, queue: f64, loss: f64) -> PathConfig {
    let rate = Rate::from_megabits_per_second(megabits);
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a share"));
    let path = PathConfig::new(rate, rtt, loss).with_lossless_return();
    let queue = QueueLimit::bandwidth_delay_products(queue, rate, rtt).at_least(10);
    PathConfig { forward: path.forward.with_queue(queue), ..path }
}

/// The transport of a design, given by its name on the command line.
fn transport(design: &str) -> io::Result<ctcp_proto::TransportConfig> {
    let (profile, congestion) = design.split_once('/').unwrap_or((design, ""));
    let catalogue = ctcp_baselines::catalogue();
    let mut profile = catalogue.profile(profile).map_err(io::Error::other)?;
    if !congestion.is_empty() {
        profile.congestion = catalogue.control(congestion).map_err(io::Error::other)?;
    }
    Ok(ctcp_proto::TransportConfig {
        profile,
        // Flow control is not part of the trial.
        stream_credit: 64 << 20,
        stream_credit_max: 256 << 20,
        connection_credit: 256 << 20,
        connection_credit_max: 256 << 20,
        ..ctcp_proto::TransportConfig::default()
    })
}
