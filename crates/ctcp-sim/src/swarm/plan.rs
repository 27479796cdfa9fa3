//! What a seed stands for.

use core::fmt;
use core::time::Duration;

use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::ProfileName;

use crate::application::script::Script;

/// A network, what happens to it, and what the applications do on it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The profile that the client asks for.
    pub profile: ProfileName,
    /// The network.
    pub network: NetworkPlan,
    /// The applications.
    pub script: Script,
    /// When the network heals, counted from the start.
    pub heals_after: Duration,
    /// Both hosts call their endpoints more often than they must.
    pub is_noisy: bool,
    /// The server closes at the end, not the client.
    pub server_closes: bool,
    /// The connection's limits are small.
    pub has_small_limits: bool,
}

/// A path and its changes, all counted from the start.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Both directions.
    pub path: PathConfig,
    /// Times at which a way is down: from, how long, forward, backward.
    pub blackouts: Vec<(Duration, Duration, [bool; 2])>,
    /// Times at which the way to the server gets another rate.
    pub rates: Vec<(Duration, ctcp_base::Rate)>,
    /// Times at which both ways get another delay.
    pub delays: Vec<(Duration, Duration)>,
    /// Times at which the client gets another address.
    pub moves: Vec<Move>,
}

/// A change of the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When, counted from the start.
    pub at: Duration,
    /// The host gets another IP address, too, not only another port.
    pub changes_host: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, network, script, .. } = self;
        write!(formatter, "{profile}{}", if self.is_noisy { ", noisy" } else { "" })?;
        write!(formatter, "{}, ", if self.has_small_limits { ", small limits" } else { "" })?;
        for (name, way) in [("up", &network.path.forward), ("down", &network.path.backward)] {
            write!(formatter, "{name} {} {:?}+{:?}", way.rate, way.delay, way.jitter)?;
            match way.queue {
                QueueLimit::Packets(packets) => write!(formatter, " queue {packets}")?,
                other => write!(formatter, " queue {other:?}")?,
            }
            match &way.loss {
                LossModel::None => {}
                LossModel::Bernoulli(loss) => write!(formatter, " loss {loss}")?,
                LossModel::GilbertElliott(chain) => write!(formatter, " bursts {:.3}", chain.mean())?,
                LossModel::OnOff { period, on, loss } => {
                    write!(formatter, " on/off {loss} for {on:?} of {period:?}")?;
                }
                LossModel::Pattern(_) => write!(formatter, " pattern")?,
            }
            let shares = [("reorder", way.reorder), ("double", way.duplicate), ("damage", way.corrupt)];
            for (what, share) in shares.into_iter().filter(|(_, share)| share.as_f64() > 0.0) {
                write!(formatter, " {what} {share}")?;
            }
            formatter.write_str("; ")?;
        }
        for (from, length, _) in &network.blackouts {
            write!(formatter, "down at {from:.1?} for {length:.1?}, ")?;
        }
        for (at, rate) in &network.rates {
            write!(formatter, "{rate} at {at:.1?}, ")?;
        }
        for (at, delay) in &network.delays {
            write!(formatter, "delay {delay:?} at {at:.1?}, ")?;
        }
        for Move { at, .. } in &network.moves {
            write!(formatter, "moves at {at:.1?}, ")?;
        }
        let (client, server) = (script.client.len(), script.server.len());
        write!(
            formatter,
            "{client}+{server} streams of {} bytes, heals at {:.1?}",
            script.size(),
            self.heals_after
        )
    }
}
