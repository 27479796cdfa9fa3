//! The configuration of a [`Link`](crate::Link) and of a path.

use core::time::Duration;

use ctcp_base::{Probability, Rate};

use crate::{Charge, Discipline, LossModel, PolicerConfig, QueueLimit};

/// Size of an IPv4 header (20 bytes) and a UDP header (8 bytes), added to a datagram's payload.
pub const IPV4_UDP_OVERHEAD: u64 = 28;

/// The smallest queue, in packets, that [`PathConfig::new`] gives to the backward direction. Acknowledgements are
/// small, and one bandwidth-delay product of full packets would hold only a handful of them.
const MIN_BACKWARD_QUEUE: u64 = 100;

/// The place on a link where packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// Before the queue: a lost packet uses no capacity (CTCP paper, Fig. 3).
    #[default]
    BeforeQueue,
    /// After the queue and the rate, as on a radio: a lost packet has used its place in the queue and its time on the
    /// link (TCP/NC, Figs. 6 to 8). There is one draw for each packet that entered the queue, at the instant when its
    /// last bit leaves.
    BehindQueue,
}

/// The configuration of one direction of a path. The default is a perfect link without loss, limit or delay.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// The rate at which the queue is drained. Zero means unlimited.
    pub rate: Rate,
    /// The time from the end of a packet's transmission to its delivery.
    pub delay: Duration,
    /// The maximum additional delay, drawn uniformly for each packet. Jitter alone never reorders packets: a packet
    /// that would overtake is delivered together with the one before it.
    pub jitter: Duration,
    /// The loss model.
    pub loss: LossModel,
    /// Where packets are lost. Packets are always lost before the queue while the link is down.
    pub loss_place: LossPlace,
    /// The capacity of the queue, including the packet being transmitted.
    pub queue: QueueLimit,
    /// How the queue is managed: which packets it marks or drops before it is full, and in which order they leave.
    pub discipline: Discipline,
    /// An optional policer in front of the queue.
    pub policer: Option<PolicerConfig>,
    /// The probability that a packet is held back by `reorder_extra`, so that later packets overtake it.
    pub reorder: Probability,
    /// How long a packet is held back if `reorder` applies to it.
    pub reorder_extra: Duration,
    /// The probability that a packet enters the queue twice.
    pub duplicate: Probability,
    /// The probability that one byte of a packet is changed. Each copy of a duplicate has its own draw.
    pub corrupt: Probability,
    /// Bytes charged per packet in addition to its payload, to the rate and the queue.
    pub overhead: u64,
    /// Whether packets are charged their true sizes or a paper's.
    pub charge: Charge,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::default(),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: LossModel::None,
            loss_place: LossPlace::BeforeQueue,
            queue: QueueLimit::Unlimited,
            discipline: Discipline::DropTail,
            policer: None,
            reorder: Probability::ZERO,
            reorder_extra: Duration::ZERO,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            overhead: IPV4_UDP_OVERHEAD,
            charge: Charge::True,
        }
    }
}

impl LinkConfig {
    /// Returns the link with the given rate.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Returns the link with the given one-way delay.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Returns the link with up to `jitter` additional delay.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// Returns the link with the given loss model.
    #[must_use]
    pub fn with_loss(self, loss: LossModel) -> Self {
        Self { loss, ..self }
    }

    /// Returns the link with the given place of loss.
    #[must_use]
    pub fn with_loss_place(self, loss_place: LossPlace) -> Self {
        Self { loss_place, ..self }
    }

    /// Returns the link with the given queue limit.
    #[must_use]
    pub fn with_queue(self, queue: QueueLimit) -> Self {
        Self { queue, ..self }
    }

    /// Returns the link with the given queue discipline.
    #[must_use]
    pub fn with_discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// Returns the link with a policer in front of its queue.
    #[must_use]
    pub fn with_policer(self, policer: PolicerConfig) -> Self {
        Self { policer: Some(policer), ..self }
    }

    /// Returns the link with packets held back by `extra` with the given probability.
    #[must_use]
    pub fn with_reorder(self, reorder: Probability, extra: Duration) -> Self {
        Self { reorder, reorder_extra: extra, ..self }
    }

    /// Returns the link with packets duplicated with the given probability.
    #[must_use]
    pub fn with_duplicate(self, duplicate: Probability) -> Self {
        Self { duplicate, ..self }
    }

    /// Returns the link with packets corrupted with the given probability.
    #[must_use]
    pub fn with_corrupt(self, corrupt: Probability) -> Self {
        Self { corrupt, ..self }
    }

    /// Returns the link with `overhead` bytes charged per packet in addition to its payload.
    #[must_use]
    pub fn with_overhead(self, overhead: u64) -> Self {
        Self { overhead, ..self }
    }

    /// Returns the link with packets charged according to `charge`.
    #[must_use]
    pub fn with_charge(self, charge: Charge) -> Self {
        Self { charge, ..self }
    }
}

/// The configuration of both directions of a path: `forward` carries the data, `backward` the acknowledgements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathConfig {
    /// From the sender to the receiver.
    pub forward: LinkConfig,
    /// From the receiver to the sender.
    pub backward: LinkConfig,
}

impl PathConfig {
    /// Creates a path with the same link in both directions.
    #[must_use]
    pub fn symmetric(way: LinkConfig) -> Self {
        Self { forward: way.clone(), backward: way }
    }

    /// Creates a path as described in the papers: `rate` and half of `rtt` in each direction, a queue of one
    /// bandwidth-delay product, and `loss` in both directions.
    #[must_use]
    pub fn new(rate: Rate, rtt: Duration, loss: LossModel) -> Self {
        let queue = QueueLimit::bandwidth_delay_products(1.0, rate, rtt);
        let forward =
            LinkConfig::default().with_rate(rate).with_delay(rtt / 2).with_loss(loss).with_queue(queue);
        let backward = forward.clone().with_queue(match queue {
            QueueLimit::Packets(packets) => QueueLimit::Packets(packets.max(MIN_BACKWARD_QUEUE)),
            other => other,
        });
        Self { forward, backward }
    }

    /// Returns the path with up to `jitter` additional delay in each direction.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Self { forward: self.forward.with_jitter(jitter), backward: self.backward.with_jitter(jitter) }
    }

    /// The same path seen from its other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { forward: self.backward, backward: self.forward }
    }

    /// Returns the path without loss in the backward direction.
    #[must_use]
    pub fn with_lossless_return(self) -> Self {
        Self { backward: self.backward.with_loss(LossModel::None), ..self }
    }
}
