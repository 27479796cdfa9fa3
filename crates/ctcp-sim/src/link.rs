//! A link between two nodes: an emulated link in each direction, each with a schedule of changes.

use ctcp_base::{Instant, Prng, Probability};
use ctcp_netem::{Link, LinkConfig, LinkStats, LossModel, PathConfig, Schedule};

use crate::mischief::Mischief;
use crate::node::{Datagram, NodeId};

/// Identifies a link of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub(crate) usize);

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
}

impl Direction {
    /// Returns the opposite direction.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

/// A link that connects two nodes in both directions.
#[derive(Debug)]
pub struct DuplexLink {
    ends: [NodeId; 2],
    ways: [Way; 2],
    /// An attacker that adds datagrams to those that pass.
    pub(crate) mischief: Option<Mischief>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Way {
    name: String,
    link: Link<Datagram>,
    schedule: Schedule,
    mtu: Option<usize>,
    oversized: u64,
}

impl DuplexLink {
    pub(crate) fn new(name: &str, ends: [NodeId; 2], path: &PathConfig, prng: &Prng) -> Self {
        let way = |arrow: &str, config: &LinkConfig| {
            let name = format!("{name}{arrow}");
            let link = Link::new(config.clone(), prng.fork(&name));
            Way { name, link, schedule: Schedule::default(), mtu: None, oversized: 0 }
        };
        Self { ends, mischief: None, ways: [way(">", &path.forward), way("<", &path.backward)] }
    }

    /// Returns the node that receives in this direction.
    #[must_use]
    pub fn receiver(&self, direction: Direction) -> NodeId {
        match direction {
            Direction::Forward => self.ends[1],
            Direction::Backward => self.ends[0],
        }
    }

    /// Returns the node that sends in this direction.
    #[must_use]
    pub fn sender(&self, direction: Direction) -> NodeId {
        self.receiver(direction.reverse())
    }

    /// Returns the direction in which `node` sends.
    pub(crate) fn direction_from(&self, node: NodeId) -> Direction {
        if self.ends[0] == node { Direction::Forward } else { Direction::Backward }
    }

    /// Returns one direction of the link.
    #[must_use]
    pub fn way(&self, direction: Direction) -> &Way {
        &self.ways[direction as usize]
    }

    pub(crate) fn way_mut(&mut self, direction: Direction) -> &mut Way {
        &mut self.ways[direction as usize]
    }
}

impl Way {
    /// Returns the name in the trace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.link.stats()
    }

    /// Returns the number of packets queued or being transmitted at `now`.
    #[must_use]
    pub fn queued_packets(&self, now: Instant) -> u64 {
        self.link.queued_packets(now)
    }

    /// Returns the present configuration.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        self.link.config()
    }

    /// Returns the number of datagrams dropped because they exceeded the link's MTU.
    #[must_use]
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    /// Sets the MTU. Larger datagrams are dropped.
    pub(crate) fn set_mtu(&mut self, mtu: Option<usize>) {
        self.mtu = mtu;
    }

    /// Replaces the schedule of changes.
    pub(crate) fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// Changes the configuration now.
    pub(crate) fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.link.set_config(now, config);
    }

    /// Removes all faults and future changes: nothing is lost, held back, duplicated or corrupted any more. Rate, delay
    /// and queue stay.
    pub(crate) fn heal(&mut self, now: Instant) {
        self.schedule = Schedule::default();
        let config = LinkConfig {
            loss: LossModel::None,
            reorder: Probability::ZERO,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            ..self.link.config().clone()
        };
        self.link.set_config(now, config);
        self.link.set_down(false);
    }

    pub(crate) fn handle_packet(&mut self, now: Instant, datagram: Datagram) {
        self.schedule.apply_due(now, &mut self.link);
        if self.mtu.is_some_and(|mtu| datagram.bytes.len() > mtu) {
            self.oversized += 1;
            return;
        }
        self.link.handle_packet(now, datagram);
    }

    pub(crate) fn poll_delivery(&mut self, now: Instant) -> Option<Datagram> {
        self.schedule.apply_due(now, &mut self.link);
        self.link.poll_delivery(now)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match (self.link.poll_timeout(), self.schedule.poll_timeout()) {
            (Some(delivery), Some(change)) => Some(delivery.min(change)),
            (one, None) | (None, one) => one,
        }
    }
}
