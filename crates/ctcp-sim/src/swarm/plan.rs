//! The plan that is drawn from a seed.

use core::fmt;
use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::{SPARSE_BLOCK_SIZE, SPARSE_BLOCKS, SPARSE_PROFILE};
use ctcp_netem::{LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{Role, TransportConfig};

use crate::application::script::Script;

/// A network, its changes, and the script of the applications. All times count from the start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The network.
    pub network: NetworkPlan,
    /// Further links of the client, each with an address of its own. With them, the server is at a router.
    pub further: Vec<NetworkPlan>,
    /// What happens to the hosts, sorted by time.
    pub happenings: Vec<(Duration, Happening)>,
    /// The applications.
    pub script: Script,
    /// The transport configuration of the client.
    pub client: TransportConfig,
    /// The transport configuration of the server.
    pub server: TransportConfig,
    /// When the network heals.
    pub heals_after: Duration,
    /// The path on which nothing passes from then on.
    pub dead: Option<usize>,
    /// Whether both hosts call their endpoints more often than necessary.
    pub is_noisy: bool,
    /// The side that closes at the end.
    pub closer: Role,
}

/// A path and its changes.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// The configuration of both directions.
    pub path: PathConfig,
    /// Whether the server is at a router behind the link instead of at its end.
    pub is_routed: bool,
    /// The probability that the attacker sends a datagram when one passes.
    pub mischief: Option<Probability>,
    /// The size of the largest datagram that passes.
    pub mtu: Option<usize>,
    /// Blackouts: start, duration, and whether the forward and the backward direction are down.
    pub blackouts: Vec<(Duration, Duration, [bool; 2])>,
    /// Times at which both directions change their rate.
    pub rates: Vec<(Duration, Rate)>,
    /// Times at which both directions change their delay.
    pub delays: Vec<(Duration, Duration)>,
}

/// An event that concerns a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The client gets another port and possibly another IP address.
    Move {
        /// Whether the IP address changes, too.
        changes_host: bool,
    },
    /// The server loses all state and restarts with the same key.
    Restart,
    /// An application closes the connection in the middle.
    Close(Role),
    /// What happens to one of the client's paths, counted from 0.
    Path(usize, PathHappening),
}

/// An event that concerns one of several paths of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathHappening {
    /// Its address gets another port.
    Rebind,
    /// The client loses its address.
    Leave,
    /// The client has its address again.
    Return,
    /// The client has an address on it again, another one.
    ReturnElsewhere,
    /// The client's application closes it.
    Abandon,
}

impl Plan {
    /// Returns all links of the client.
    pub fn networks(&self) -> impl Iterator<Item = &NetworkPlan> {
        core::iter::once(&self.network).chain(&self.further)
    }

    /// Returns how many of the plan's happenings satisfy `what`.
    #[must_use]
    pub fn count(&self, what: impl Fn(&Happening) -> bool) -> usize {
        self.happenings.iter().filter(|(_, happening)| what(happening)).count()
    }

    /// Returns the bytes of content per round trip that the agreed limits allow: the smaller of both sides in each.
    #[must_use]
    pub fn bytes_a_round_trip(&self) -> u64 {
        let (client, server) = (&self.client, &self.server);
        let mut agreed = TransportConfig {
            symbol_size_max: client.symbol_size_max.min(server.symbol_size_max),
            symbol_window: client.symbol_window.min(server.symbol_window),
            block_size: client.block_size.min(server.block_size),
            blocks: client.blocks.min(server.blocks),
            connection_credit: client.connection_credit.min(server.connection_credit),
            stream_credit: client.stream_credit.min(server.stream_credit),
            ..client.clone()
        };
        if client.profile == SPARSE_PROFILE {
            agreed.block_size = agreed.block_size.min(SPARSE_BLOCK_SIZE);
            agreed.blocks = agreed.blocks.min(SPARSE_BLOCKS);
        }
        bytes_a_round_trip(&agreed)
    }
}

/// Returns the bytes of content per round trip that the limits of one side allow. The size of a script is drawn with it.
pub(super) fn bytes_a_round_trip(limits: &TransportConfig) -> u64 {
    let symbol = u64::from(limits.symbol_size_max.min(1_150));
    let blocks = u64::from(limits.block_size) * u64::from(limits.blocks);
    // The window code has at most as many symbols in flight as a combination spans.
    let is_window = limits.profile.code.spans_window();
    let symbols = if is_window { u64::from(limits.block_size) } else { blocks };
    let symbols = symbols.min(u64::from(limits.symbol_window));
    limits.connection_credit.min(limits.stream_credit).min(symbol * symbols)
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, script, .. } = self;
        write!(formatter, "{}{}, ", self.client.profile.name, if self.is_noisy { ", noisy" } else { "" })?;
        write!(formatter, "{network}")?;
        for (number, further) in self.further.iter().enumerate() {
            write!(formatter, "path {}: {further}", number + 1)?;
        }
        if !self.further.is_empty() {
            write!(formatter, "at most {} paths, {}, ", self.server.paths, self.client.path_mode)?;
        }
        if let Some(path) = self.dead {
            write!(formatter, "path {path} dies in the end, ")?;
        }
        for (at, happening) in &self.happenings {
            write!(formatter, "{happening:?} at {at:.1?}, ")?;
        }
        for (name, limits) in [("client", &self.client), ("server", &self.server)] {
            write_limits(formatter, name, limits)?;
        }
        let (client, server) = (script.client.len(), script.server.len());
        let size = script.size();
        write!(formatter, "{client}+{server} streams of {size} bytes, heals at {:.1?}", self.heals_after)
    }
}

impl fmt::Display for NetworkPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_way(formatter, "up", &self.path.forward)?;
        write_way(formatter, "down", &self.path.backward)?;
        if self.is_routed {
            write!(formatter, "routed, ")?;
        }
        if let Some(rate) = self.mischief {
            write!(formatter, "mischief {rate}, ")?;
        }
        if let Some(mtu) = self.mtu {
            write!(formatter, "mtu {mtu}, ")?;
        }
        for (from, length, ways) in &self.blackouts {
            write!(formatter, "down{ways:?} at {from:.1?} for {length:.1?}, ")?;
        }
        for (at, rate) in &self.rates {
            write!(formatter, "{rate} at {at:.1?}, ")?;
        }
        for (at, delay) in &self.delays {
            write!(formatter, "delay {delay:?} at {at:.1?}, ")?;
        }
        Ok(())
    }
}

fn write_way(formatter: &mut fmt::Formatter<'_>, name: &str, way: &LinkConfig) -> fmt::Result {
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
        LossModel::Collisions { interval, vulnerable } => {
            write!(formatter, " collisions every {interval:?} over {vulnerable:?}")?;
        }
        LossModel::Steps { step, .. } => write!(formatter, " loss by {step:?}")?,
        LossModel::Pattern(_) => write!(formatter, " pattern")?,
    }
    if way.loss_place == LossPlace::BehindQueue {
        formatter.write_str(" behind the queue")?;
    }
    let shares = [("reorder", way.reorder), ("double", way.duplicate), ("damage", way.corrupt)];
    for (what, share) in shares.into_iter().filter(|(_, share)| share.as_f64() > 0.0) {
        write!(formatter, " {what} {share}")?;
    }
    formatter.write_str("; ")
}

/// Writes the limits that differ from the defaults.
fn write_limits(formatter: &mut fmt::Formatter<'_>, name: &str, limits: &TransportConfig) -> fmt::Result {
    let usual = TransportConfig::default();
    let pairs = [
        ("symbol", u64::from(limits.symbol_size_max), u64::from(usual.symbol_size_max)),
        ("window", u64::from(limits.symbol_window), u64::from(usual.symbol_window)),
        ("blksize", u64::from(limits.block_size), u64::from(usual.block_size)),
        ("numblks", u64::from(limits.blocks), u64::from(usual.blocks)),
        ("credit", limits.connection_credit, usual.connection_credit),
        ("stream credit", limits.stream_credit, usual.stream_credit),
        ("streams", limits.streams, usual.streams),
        ("datagram", u64::from(limits.datagram_size_max), u64::from(usual.datagram_size_max)),
    ];
    for (index, (what, value, _)) in pairs.iter().filter(|(_, value, usual)| value != usual).enumerate() {
        write!(
            formatter,
            "{}{what} {value}",
            if index == 0 { format!("{name}'s ") } else { ", ".to_owned() }
        )?;
    }
    if pairs.iter().any(|(_, value, usual)| value != usual) { formatter.write_str("; ") } else { Ok(()) }
}
