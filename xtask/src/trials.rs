//! `cargo xtask trials`: congestion control on random networks in virtual time, compared with an oracle or with as many
//! Reno flows, alongside other flows, and after pauses.

mod crowd;
mod oracle;
mod path;
mod pauses;
mod run;
mod shared;

use std::io;

pub(crate) use run::run;

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
