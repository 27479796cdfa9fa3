//! One direction of a path: the parts of the model in their order.

use core::time::Duration;

use ctcp_base::{Instant, Prng, Probability, Rate};

use crate::delay::{DelayLine, Flying};
use crate::loss::LossProcess;
use crate::queue::{DropTailQueue, Waiting};
use crate::rate::Transmitter;
use crate::{Change, LinkConfig, LinkStats, LossModel, LossPlace};

/// A link that packets of type `P` cross.
///
/// Any call order is legal, and time never runs backwards: an instant before the latest one seen
/// counts as the latest one.
#[derive(Clone, Debug)]
pub struct Link<P> {
    config: LinkConfig,
    is_down: bool,
    loss: LossProcess,
    queue: DropTailQueue,
    transmitter: Transmitter,
    delay_line: DelayLine<P>,
    draws: Draws,
    stats: LinkStats,
    now: Instant,
}

/// A generator for each kind of event, so that asking for jitter does not move the losses.
#[derive(Clone, Debug)]
struct Draws {
    loss: Prng,
    corruption: Prng,
    duplication: Prng,
    jitter: Prng,
    reordering: Prng,
}

impl<P: AsRef<[u8]> + AsMut<[u8]> + Clone> Link<P> {
    /// A link at rest. All that is random about it follows from `prng`.
    #[must_use]
    pub fn new(config: LinkConfig, prng: Prng) -> Self {
        Self {
            is_down: false,
            loss: LossProcess::new(&config.loss),
            queue: DropTailQueue::new(config.queue),
            transmitter: Transmitter::new(config.rate),
            delay_line: DelayLine::new(),
            draws: Draws {
                loss: prng.fork("loss"),
                corruption: prng.fork("corruption"),
                duplication: prng.fork("duplication"),
                jitter: prng.fork("jitter"),
                reordering: prng.fork("reordering"),
            },
            stats: LinkStats::default(),
            now: Instant::ZERO,
            config,
        }
    }

    /// Takes a packet that arrives at the link at `now`.
    pub fn handle_packet(&mut self, now: Instant, packet: P) {
        self.advance(now);
        self.stats.offered += 1;
        self.stats.bytes_offered += packet.as_ref().len() as u64;
        let lost = self.is_lost_at(LossPlace::BeforeQueue, self.now);
        if self.is_down || lost {
            self.stats.lost += 1;
            self.stats.lost_while_down += u64::from(self.is_down);
            return;
        }
        if strikes(self.config.duplicate, &mut self.draws.duplication) {
            self.stats.duplicated += 1;
            self.enqueue(packet.clone());
        }
        self.enqueue(packet);
    }

    /// The next packet due at or before `now`, in the order of delivery; at the same instant, in the
    /// order of arrival. Asked late, it delivers all that has become due, one a call.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<P> {
        self.advance(now);
        let delivery = self.delay_line.poll(self.now)?;
        self.stats.delivered += 1;
        self.stats.bytes_delivered += delivery.packet.as_ref().len() as u64;
        self.stats.reordered += u64::from(delivery.was_overtaken);
        Some(delivery.packet)
    }

    /// When the next packet is due; `None` when nothing is waiting or under way.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.delay_line.next_delivery()
    }

    /// Makes it another link from `now` on. Packets that wait are transmitted at the new rate; their
    /// delay is the one of their arrival. A shorter delay does not let new packets overtake old ones.
    ///
    /// The loss process starts again only when its model is another one.
    pub fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.set_rate(now, config.rate);
        self.queue.set_limit(config.queue);
        if config.loss != self.config.loss {
            self.loss = LossProcess::new(&config.loss);
        }
        self.config = config;
    }

    /// Transmits at `rate` from `now` on, the rest of the packet being transmitted included.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.advance(now);
        let before = self.transmitter.rate();
        self.config.rate = rate;
        if rate == before {
            return;
        }
        let now = self.now;
        self.transmitter.restart(now, rate);
        for (index, waiting) in self.queue.iter_mut().enumerate() {
            waiting.departure = if index == 0 {
                self.transmitter.transmit_rest(now, waiting.departure - now, before)
            } else {
                self.transmitter.transmit(now, waiting.bytes)
            };
        }
        let still_there = self.queue.iter().filter(|waiting| !waiting.is_lost);
        self.delay_line.reschedule(now, still_there.map(|waiting| waiting.departure));
    }

    /// Loses packets by `loss` from the next one on. The process starts from its beginning.
    pub fn set_loss(&mut self, loss: LossModel) {
        self.loss = LossProcess::new(&loss);
        self.config.loss = loss;
    }

    /// A blackout begins or ends: every packet offered while the link is down is lost. Those it has
    /// taken before are still delivered.
    pub fn set_down(&mut self, is_down: bool) {
        self.is_down = is_down;
    }

    /// Applies a change of a [`Schedule`](crate::Schedule).
    pub fn apply(&mut self, now: Instant, change: Change) {
        match change {
            Change::Config(config) => self.set_config(now, config),
            Change::Rate(rate) => self.set_rate(now, rate),
            Change::Loss(loss) => self.set_loss(loss),
            Change::Delay(delay) => self.config.delay = delay,
            Change::Down(is_down) => self.set_down(is_down),
        }
    }

    /// What the link is like now.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Whether a blackout is on.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Packets that wait for transmission or are being transmitted at `now`, which may be any instant since the last call.
    #[must_use]
    pub fn queued_packets(&self, now: Instant) -> u64 {
        self.queue.packets_at(now)
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        LinkStats {
            held: self.delay_line.len() as u64,
            queue_max_packets: self.queue.max_packets(),
            queue_max_bytes: self.queue.max_bytes(),
            ..self.stats
        }
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.queue.on_time(self.now);
    }

    /// Puts one packet, original or copy, through corruption, queue, transmitter and delay.
    fn enqueue(&mut self, mut packet: P) {
        self.corrupt(&mut packet);
        let payload = packet.as_ref().len();
        let bytes = self.config.charge.of(payload, self.config.overhead);
        if !self.queue.has_room(bytes) {
            self.stats.dropped += 1;
            return;
        }
        if !self.delay_line.has_room(payload) {
            self.stats.overflowed += 1;
            return;
        }
        let departure = self.transmitter.transmit(self.now, bytes);
        let is_lost = self.is_lost_at(LossPlace::BehindQueue, departure);
        if departure > self.now {
            self.queue.push(Waiting { departure, bytes, is_lost });
        }
        if is_lost {
            self.stats.lost += 1;
            return;
        }
        let propagation = self.config.delay.saturating_add(self.draws.jitter_up_to(self.config.jitter));
        let is_held_back = strikes(self.config.reorder, &mut self.draws.reordering);
        let held_back = if is_held_back { self.config.reorder_extra } else { Duration::ZERO };
        self.delay_line.push(Flying { departure, propagation, held_back, packet });
    }

    /// Asks the loss process, if this is where packets are lost.
    fn is_lost_at(&mut self, place: LossPlace, now: Instant) -> bool {
        self.config.loss_place == place && self.loss.is_lost(now, &mut self.draws.loss)
    }

    /// Changes one byte with the link's probability of corruption. An empty packet has none.
    fn corrupt(&mut self, packet: &mut P) {
        if !strikes(self.config.corrupt, &mut self.draws.corruption) {
            return;
        }
        let bytes = packet.as_mut();
        let place = self.draws.corruption.below(bytes.len() as u64) as usize;
        if let Some(byte) = bytes.get_mut(place) {
            // Between 1 and 255, so that at least one bit flips.
            *byte ^= 1 + self.draws.corruption.below(255) as u8;
            self.stats.corrupted += 1;
        }
    }
}

impl Draws {
    fn jitter_up_to(&mut self, limit: Duration) -> Duration {
        if limit.is_zero() {
            return Duration::ZERO;
        }
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.jitter.below(nanos.saturating_add(1)))
    }
}

/// Draws only for what can happen at all: most links do nothing to most packets.
fn strikes(probability: Probability, prng: &mut Prng) -> bool {
    probability > Probability::ZERO && prng.chance(probability)
}

#[cfg(test)]
mod tests;
