//! What a link is like: the values a [`Link`](crate::Link) is made of.

use core::time::Duration;

use ctcp_base::{Probability, Rate};

use crate::{Charge, Discipline, LossModel, PolicerConfig, QueueLimit};

/// Bytes that an IPv4 header (20) and a UDP header (8) add to a datagram's payload.
pub const IPV4_UDP_OVERHEAD: u64 = 28;

/// The smallest queue, in packets, that [`PathConfig::new`] gives to the way back: acknowledgements
/// are small, and one bandwidth-delay product of full packets would be only a handful of them.
const MIN_BACKWARD_QUEUE: u64 = 100;

/// Where on a link packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// Before the queue: a lost packet uses no capacity (CTCP paper, Fig. 3).
    #[default]
    BeforeQueue,
    /// Behind the queue and the rate: a lost packet has taken its place in the queue and its time on the link, as on a radio
    /// (TCP/NC, Figs. 6 to 8). Each packet the queue took has one draw, for the instant at which its last bit leaves.
    BehindQueue,
}

/// One direction of a path. The default is a perfect link: no loss, no limit, no delay.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// The rate at which the queue is drained; the rate zero means "unlimited".
    pub rate: Rate,
    /// The time from the end of a packet's transmission to its delivery.
    pub delay: Duration,
    /// The most that is added to `delay`, drawn uniformly for each packet. Jitter alone never
    /// changes the order: a packet that would overtake is delivered together with the one before it.
    pub jitter: Duration,
    /// Which packets are lost.
    pub loss: LossModel,
    /// Where they are lost. A blackout is always before the queue.
    pub loss_place: LossPlace,
    /// How much waits for transmission, the packet being transmitted included.
    pub queue: QueueLimit,
    /// Which packets the queue marks or drops before it is full, and in which order they leave.
    pub discipline: Discipline,
    /// A policer in front of the queue, if there is one.
    pub policer: Option<PolicerConfig>,
    /// The probability that a packet is held back by `reorder_extra`, so that later ones overtake it.
    pub reorder: Probability,
    /// How long a packet is held back when `reorder` strikes.
    pub reorder_extra: Duration,
    /// The probability that a packet enters the queue twice.
    pub duplicate: Probability,
    /// The probability that a packet has one byte changed; each copy of a duplicate has its own draw.
    pub corrupt: Probability,
    /// Bytes charged to the rate and the queue for each packet besides its payload.
    pub overhead: u64,
    /// Whether packets are charged their own sizes or a paper's.
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
    /// The same link, drained at `rate`.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// The same link with the one-way `delay`.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same link with up to `jitter` more delay.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// The same link losing packets by `loss`.
    #[must_use]
    pub fn with_loss(self, loss: LossModel) -> Self {
        Self { loss, ..self }
    }

    /// The same link losing its packets at `place`.
    #[must_use]
    pub fn with_loss_place(self, loss_place: LossPlace) -> Self {
        Self { loss_place, ..self }
    }

    /// The same link with the queue `queue`.
    #[must_use]
    pub fn with_queue(self, queue: QueueLimit) -> Self {
        Self { queue, ..self }
    }

    /// The same link with its queue managed by `discipline`.
    #[must_use]
    pub fn with_discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// The same link with a policer in front of its queue.
    #[must_use]
    pub fn with_policer(self, policer: PolicerConfig) -> Self {
        Self { policer: Some(policer), ..self }
    }

    /// The same link holding a packet back by `extra` with the given probability.
    #[must_use]
    pub fn with_reorder(self, reorder: Probability, extra: Duration) -> Self {
        Self { reorder, reorder_extra: extra, ..self }
    }

    /// The same link doubling a packet with the given probability.
    #[must_use]
    pub fn with_duplicate(self, duplicate: Probability) -> Self {
        Self { duplicate, ..self }
    }

    /// The same link damaging a packet with the given probability.
    #[must_use]
    pub fn with_corrupt(self, corrupt: Probability) -> Self {
        Self { corrupt, ..self }
    }

    /// The same link charging `overhead` bytes for each packet besides its payload.
    #[must_use]
    pub fn with_overhead(self, overhead: u64) -> Self {
        Self { overhead, ..self }
    }

    /// The same link charging packets by `charge`.
    #[must_use]
    pub fn with_charge(self, charge: Charge) -> Self {
        Self { charge, ..self }
    }
}

/// Both directions of a path: `forward` carries the data, `backward` the acknowledgements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathConfig {
    /// From the sender to the receiver.
    pub forward: LinkConfig,
    /// From the receiver to the sender.
    pub backward: LinkConfig,
}

impl PathConfig {
    /// The same link in both directions.
    #[must_use]
    pub fn symmetric(way: LinkConfig) -> Self {
        Self { forward: way.clone(), backward: way }
    }

    /// A path as the papers describe one: `rate` each way, half of `rtt` each way, a queue of one
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

    /// The same path with up to `jitter` more delay in each direction.
    #[must_use]
    pub fn with_jitter(self, jitter: Duration) -> Self {
        Self { forward: self.forward.with_jitter(jitter), backward: self.backward.with_jitter(jitter) }
    }

    /// The same path without loss on the way back.
    #[must_use]
    pub fn with_lossless_return(self) -> Self {
        Self { backward: self.backward.with_loss(LossModel::None), ..self }
    }
}
