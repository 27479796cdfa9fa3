//! Flows of full packets over one link in virtual time, to judge controllers by: the real ledger, estimators, pacer
//! and acknowledgements of this crate, and nothing of a connection.
//!
//! ```text
//!   flow -> pacer -> [random loss] -> [drop-tail queue] -> [rate] -> receiver -> [random loss] -> flow
//!     \___________ wakes late by noise           propagation: one round trip in all, read late by noise ___/
//! ```

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ctcp_base::{Instant, Prng, Rate};

use super::{Acked, Controller, Lost, Sent, TimedOut};
use crate::PacketNumber;
use crate::ack::frequency::MAX_ACK_DELAY;
use crate::ack::receiver::AckScheduler;
use crate::recovery::delivery_rate::DeliveryRate;
use crate::recovery::loss::{INITIAL_LOSS, LossAverage, LossDetector, MU};
use crate::recovery::pacer::Pacer;
use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};
use crate::recovery::sent::{SentPacket, SentPackets};
use crate::recovery::timeout::{GAMMA, ProbeTimeout, RetransmissionTimeout};

/// Bytes of a datagram, and what the link counts for it.
pub(super) const DATAGRAM: u64 = 1_472;
const ON_THE_LINK: u64 = 1_500;

/// What the link is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) megabits: u64,
    pub(super) rtt: Duration,
    /// The queue in bandwidth-delay products, at least one packet.
    pub(super) queue: f64,
    pub(super) loss: f64,
    /// Mean lateness of a wake-up and of reading an ACK; uniform from nothing to twice this.
    pub(super) noise: Duration,
}

impl Conditions {
    pub(super) fn new(megabits: u64, rtt_millis: u64, queue: f64, loss: f64) -> Self {
        let rtt = Duration::from_millis(rtt_millis);
        Self { megabits, rtt, queue, loss, noise: Duration::ZERO }
    }

    pub(super) fn with_noise(self, micros: u64) -> Self {
        Self { noise: Duration::from_micros(micros), ..self }
    }

    fn rate(&self) -> Rate {
        Rate::from_megabits_per_second(self.megabits)
    }

    /// How many packets the link carries in `time`.
    pub(super) fn packets_in(&self, time: Duration) -> f64 {
        self.rate().bytes_in(time) as f64 / ON_THE_LINK as f64
    }
}

/// What a flow got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) arrived: u64,
    pub(super) sent: u64,
}

#[derive(Debug)]
enum Event {
    Wake,
    Arrive(u64),
    AckDue,
    Ack { largest: u64, delay: Duration, ranges: Vec<(u64, u64)> },
    Confirm(u64),
}

struct Flow {
    controller: Box<dyn Controller>,
    start: Instant,
    sent: SentPackets<()>,
    rtt: RttEstimator,
    detector: LossDetector,
    loss: LossAverage,
    rate: DeliveryRate,
    pacer: Pacer,
    probe: ProbeTimeout,
    timeout: RetransmissionTimeout,
    loss_deadline: Option<Instant>,
    probes_due: u32,
    wake_at: Option<Instant>,
    acks: AckScheduler,
    last_read: Instant,
    measured: Measured,
}

impl Flow {
    fn new(controller: Box<dyn Controller>, start: Instant, every_packet: bool) -> Self {
        Self {
            controller,
            start,
            sent: SentPackets::new(),
            rtt: RttEstimator::new(INITIAL_RTT),
            detector: LossDetector::new(),
            loss: LossAverage::new(INITIAL_LOSS, MU),
            rate: DeliveryRate::new(start),
            pacer: Pacer::new(start, DATAGRAM),
            probe: ProbeTimeout::new(),
            timeout: RetransmissionTimeout::new(GAMMA),
            loss_deadline: None,
            probes_due: 0,
            wake_at: None,
            acks: AckScheduler::new(every_packet),
            last_read: start,
            measured: Measured::default(),
        }
    }

    fn largest_sent(&self) -> PacketNumber {
        PacketNumber(self.sent.next_number().0.saturating_sub(1))
    }

    /// The deadlines of the sender beside the pacer's.
    fn next_timeout(&self) -> Option<Instant> {
        let probe = self.sent.has_ack_eliciting_outstanding().then(|| {
            let last = self.sent.last_ack_eliciting_sent().unwrap_or(self.start);
            self.probe.deadline(last, &self.rtt, MAX_ACK_DELAY)
        });
        let timeout = self.timeout.deadline(&self.rtt, MAX_ACK_DELAY);
        [self.loss_deadline, probe, timeout].into_iter().flatten().min()
    }

    fn on_timers(&mut self, now: Instant) {
        if self.timeout.deadline(&self.rtt, MAX_ACK_DELAY).is_some_and(|deadline| deadline <= now) {
            self.timeout.on_timeout(now);
            let (in_flight, largest_sent) = (self.sent.packets_in_flight(), self.largest_sent());
            self.controller.on_timeout(&TimedOut { now, in_flight, largest_sent, rtt: self.rtt.view(now) });
            self.probes_due = 1;
        }
        let last = self.sent.last_ack_eliciting_sent().unwrap_or(self.start);
        if self.sent.has_ack_eliciting_outstanding()
            && self.probe.deadline(last, &self.rtt, MAX_ACK_DELAY) <= now
        {
            self.probe.on_timeout();
            self.probes_due = 1;
        }
        if self.loss_deadline.is_some_and(|deadline| deadline <= now) {
            self.detect(now);
        }
    }

    fn detect(&mut self, now: Instant) {
        let thresholds = self.detector.thresholds(now, &self.rtt);
        let mut lost = Vec::new();
        self.loss_deadline = self.sent.detect_losses(now, thresholds, &mut lost);
        for lost in lost {
            self.loss.on_loss(lost.packet.number);
            self.controller.on_loss(&Lost {
                now,
                number: lost.packet.number,
                sent_time: lost.packet.time,
                size: lost.packet.size,
                in_flight: self.sent.packets_in_flight(),
                largest_sent: self.largest_sent(),
                rtt: self.rtt.view(now),
                loss_average: self.loss.value(),
            });
        }
    }

    fn on_ack(&mut self, now: Instant, delay: Duration, ranges: Vec<(u64, u64)>) {
        let mut acked = Vec::new();
        let summary = self.sent.on_ack(now, ranges, &mut acked).expect("the model is honest");
        if let Some(sent) = summary.rtt_sample_from {
            self.rtt.on_sample(now, now - sent, delay.min(MAX_ACK_DELAY));
        }
        for newly in &acked {
            self.rate.on_packet_acked(now, newly.packet.delivery, newly.packet.time, newly.packet.size);
            match newly.was_lost {
                Some(spurious) => {
                    self.loss.on_spurious_loss(spurious.outcomes_since);
                    self.detector.on_spurious_loss(now, spurious, &self.rtt);
                }
                None => self.loss.on_ack(),
            }
        }
        self.rate.finish_ack(now, self.rtt.minimum(now));
        let sampled = summary.rtt_sample_from.and_then(|_| acked.last()).map(|newly| newly.packet.number);
        for newly in acked.iter().filter(|newly| newly.was_lost.is_none()) {
            self.controller.on_ack(&Acked {
                now,
                number: newly.packet.number,
                sent_time: newly.packet.time,
                sample: (sampled == Some(newly.packet.number)).then(|| now - newly.packet.time),
                size: newly.packet.size,
                in_flight: self.sent.packets_in_flight(),
                largest_sent: self.largest_sent(),
                rtt: self.rtt.view(now),
                loss_average: self.loss.value(),
                is_app_limited: false,
                delivery_rate: self.rate.maximum(),
                ecn_ce: false,
            });
        }
        self.detect(now);
        self.probe.on_ack();
        self.timeout.on_ack(now, self.sent.has_ack_eliciting_outstanding());
        self.pacer.set_rate(now, self.controller.pacing_rate());
    }

    /// Whether a packet may leave now; otherwise when to look again, if the pacer says so.
    fn poll_send(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        if self.probes_due > 0 {
            self.probes_due -= 1;
            return Ok(());
        }
        if self.sent.packets_in_flight() as f64 + 1.0 > self.controller.window().max(1.0) {
            return Err(None);
        }
        self.pacer.next_time(now, DATAGRAM).map_or(Ok(()), |time| Err(Some(time)))
    }

    fn record(&mut self, now: Instant) -> u64 {
        let number = self.sent.next_number();
        let delivery = self.rate.on_sent(now, self.sent.bytes_in_flight());
        self.sent.on_sent(SentPacket {
            number,
            time: now,
            size: DATAGRAM,
            ack_eliciting: true,
            in_flight: true,
            is_mtu_probe: false,
            delivery,
            contents: (),
        });
        self.pacer.on_sent(now, DATAGRAM);
        self.timeout.on_sent(now);
        let in_flight = self.sent.packets_in_flight();
        let rtt = self.rtt.view(now);
        self.controller.on_sent(&Sent { now, number, size: DATAGRAM, in_flight, rtt, is_app_limited: false });
        if !self.pacer.has_rate() {
            self.pacer.set_rate(now, self.controller.pacing_rate());
        }
        self.measured.sent += 1;
        number.0
    }
}

/// The link and its flows.
pub(super) struct Model {
    pub(super) conditions: Conditions,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Instant, u64, usize, EventSlot)>>,
    order: u64,
    prng: Prng,
    /// When the link has sent all it holds.
    free_at: Instant,
    queue_limit: u64,
    pub(super) now: Instant,
    pub(super) is_down: bool,
    /// Sum and count of queueing delays, for their mean.
    queueing: (f64, u64),
}

/// An event that does not take part in the order of the heap.
#[derive(Debug)]
struct EventSlot(Event);

impl PartialEq for EventSlot {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for EventSlot {}
impl PartialOrd for EventSlot {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for EventSlot {
    fn cmp(&self, _: &Self) -> core::cmp::Ordering {
        core::cmp::Ordering::Equal
    }
}

impl Model {
    pub(super) fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            flows: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            prng: Prng::new(seed),
            free_at: Instant::ZERO,
            queue_limit: ((conditions.packets_in(conditions.rtt) * conditions.queue) as u64).max(1)
                * ON_THE_LINK,
            now: Instant::ZERO,
            is_down: false,
            queueing: (0.0, 0),
        }
    }

    /// Adds a flow that begins at `start`.
    pub(super) fn flow(mut self, controller: Box<dyn Controller>, start: Instant) -> Self {
        let every_packet = controller.name().starts_with("ctcp");
        self.flows.push(Flow::new(controller, start, every_packet));
        self.schedule(start, self.flows.len() - 1, Event::Wake);
        self
    }

    fn schedule(&mut self, time: Instant, flow: usize, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, flow, EventSlot(event))));
    }

    /// Runs until `until` and returns what each flow got since the last call.
    pub(super) fn run(&mut self, until: Instant) -> Vec<Measured> {
        while self.events.peek().is_some_and(|Reverse(next)| next.0 <= until) {
            let Some(Reverse((now, _, flow, EventSlot(event)))) = self.events.pop() else { break };
            self.now = now;
            self.handle(flow, event);
        }
        self.now = until;
        self.flows.iter_mut().map(|flow| core::mem::take(&mut flow.measured)).collect()
    }

    /// The mean queueing delay since the last call.
    pub(super) fn queueing(&mut self) -> Duration {
        let (sum, count) = core::mem::take(&mut self.queueing);
        Duration::from_secs_f64(sum / count.max(1) as f64)
    }

    pub(super) fn controller(&self, flow: usize) -> &dyn Controller {
        self.flows[flow].controller.as_ref()
    }

    pub(super) fn rtt(&self, flow: usize) -> super::RttView {
        self.flows[flow].rtt.view(self.now)
    }

    fn lateness(&mut self) -> Duration {
        Duration::from_nanos(self.prng.below(2 * self.conditions.noise.as_nanos() as u64 + 1))
    }

    fn handle(&mut self, index: usize, event: Event) {
        let now = self.now;
        match event {
            Event::Wake => {
                let flow = &mut self.flows[index];
                // A wake-up that an earlier one replaced.
                if flow.wake_at.is_some_and(|time| time > now) {
                    return;
                }
                flow.wake_at = None;
                if !flow.rtt.has_sample() {
                    // The handshake took a datagram of 1200 bytes over the link, through the queue of the others.
                    let sending = self.conditions.rate().time_to_send(1_228);
                    flow.rtt.on_sample(
                        now,
                        (self.free_at - now) + sending + self.conditions.rtt,
                        Duration::ZERO,
                    );
                }
                flow.on_timers(now);
                self.send(index);
            }
            Event::Arrive(number) => {
                let flow = &mut self.flows[index];
                flow.measured.arrived += u64::from(flow.acks.on_packet(now, number, true, None));
                if flow.acks.is_due(now) {
                    self.acknowledge(index);
                } else if let Some(due) = flow.acks.next_timeout() {
                    self.schedule(due, index, Event::AckDue);
                }
            }
            Event::AckDue if self.flows[index].acks.is_due(now) => self.acknowledge(index),
            Event::AckDue => {}
            Event::Ack { largest, delay, ranges } => {
                self.flows[index].on_ack(now, delay, ranges);
                self.schedule(now + self.conditions.rtt / 2, index, Event::Confirm(largest));
                self.send(index);
            }
            Event::Confirm(largest) => {
                let flow = &mut self.flows[index];
                let smoothed = flow.rtt.smoothed();
                flow.acks.set_round_trip(smoothed);
                flow.acks.on_ack_of_ack(largest);
            }
        }
    }

    fn acknowledge(&mut self, index: usize) {
        let lost = self.prng.unit() < self.conditions.loss || self.is_down;
        let late = self.lateness();
        let now = self.now;
        let flow = &mut self.flows[index];
        let (Some(largest), delay) = (flow.acks.largest(), flow.acks.delay(now)) else { return };
        let ranges = flow.acks.ranges().take(256).collect();
        flow.acks.on_ack_sent(now, true);
        if !lost {
            let time = (now + self.conditions.rtt / 2 + late).max(flow.last_read);
            flow.last_read = time;
            self.schedule(time, index, Event::Ack { largest, delay, ranges });
        }
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        let pacer = loop {
            match self.flows[index].poll_send(now) {
                Ok(()) => {
                    let number = self.flows[index].record(now);
                    self.transmit(index, number);
                }
                Err(time) => break time,
            }
        };
        let flow = &self.flows[index];
        let Some(next) = pacer.into_iter().chain(flow.next_timeout()).min() else { return };
        if flow.wake_at.is_none_or(|time| next < time) {
            let time = next.max(now) + self.lateness();
            self.flows[index].wake_at = Some(time);
            self.schedule(time, index, Event::Wake);
        }
    }

    fn transmit(&mut self, index: usize, number: u64) {
        if self.prng.unit() < self.conditions.loss || self.is_down {
            return;
        }
        let now = self.now;
        let waiting = self.free_at - now;
        // The packet in transmission does not take room in the queue.
        let backlog = self.conditions.rate().bytes_in(waiting);
        if backlog > self.queue_limit {
            return;
        }
        self.queueing.0 += waiting.as_secs_f64();
        self.queueing.1 += 1;
        self.free_at = self.free_at.max(now) + self.conditions.rate().time_to_send(ON_THE_LINK);
        self.schedule(self.free_at + self.conditions.rtt / 2, index, Event::Arrive(number));
    }
}

/// Jain's index of fairness: 1 when all are equal, `1 / n` when one has all.
pub(super) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| share as f64 * share as f64).sum();
    sum * sum / (shares.len() as f64 * squares.max(1.0))
}
