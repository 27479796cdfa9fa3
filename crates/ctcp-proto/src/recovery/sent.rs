//! The packets that one path sent: their contents, and whether they are acknowledged, lost or outstanding.
//!
//! ```text
//!                 acknowledged                      acknowledged nevertheless (spurious loss)
//!   Outstanding ---------------> Acked   <--------------------------------+
//!        |                                                                |
//!        |  3 newer ones acknowledged, or 9/8 round trips passed          |
//!        +--------------------------------------------------> Lost -------+
//!                                                              |  kept for a while
//!                                                              v
//!                                                           removed
//! ```
//!
//! Slots are in a queue by packet number, so that look-ups are by index. Skipped numbers have a slot, too: acknowledging one, or one that
//! was not sent yet, is an optimistic ACK and a protocol violation.
//!
//! An ACK repeats the ranges of earlier ones. Each acknowledged slot therefore stores where its run of acknowledged numbers ends, so that a
//! repeated range costs one step instead of its length.

use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::Instant;

use super::delivery_rate::DeliverySnapshot;
use super::loss::LossThresholds;
use crate::id::PacketNumber;

/// Maximum span of packet numbers. The congestion window stays far below it. The limit stops a sender whose packets are neither
/// acknowledged nor lost. At about 100 bytes per slot it is 13 MB.
pub(crate) const SPAN_MAX: usize = 1 << 17;

/// Number of slots above which the oldest packets that are not ack-eliciting are removed: more than a round trip of ACKs at 100 Mbit/s.
const UNASKED_MAX: usize = 1024;

/// Number of slots above which an ack-eliciting packet is given up if most slots after it are not ack-eliciting. Otherwise a peer that
/// sends but never acknowledges would keep all slots after the first such packet alive.
const DEBT_MAX: usize = 8 * UNASKED_MAX;

/// How long a lost packet is kept, in loss delays, so that a late ACK of it reveals reordering.
const MEMORY_OF_LOST: u32 = 4;

/// A sent packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentPacket<C> {
    /// Its number on its path.
    pub(crate) number: PacketNumber,
    /// When it was sent.
    pub(crate) time: Instant,
    /// The size of its datagram in bytes.
    pub(crate) size: u64,
    /// Whether the peer must acknowledge it.
    pub(crate) ack_eliciting: bool,
    /// Whether it counts against the congestion window.
    pub(crate) in_flight: bool,
    /// Whether it is an MTU probe, whose loss does not count.
    pub(crate) is_mtu_probe: bool,
    /// Whether it was sent as ECT(0).
    pub(crate) is_ecn_capable: bool,
    /// The delivery counters when it was sent.
    pub(crate) delivery: DeliverySnapshot,
    /// Its contents.
    pub(crate) contents: C,
}

/// A newly acknowledged packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AckedPacket<C> {
    /// The packet.
    pub(crate) packet: SentPacket<C>,
    /// It no longer counted as in flight: [`SentPackets::poll_expired`] had returned it, or it had been declared lost.
    pub(crate) was_expired: bool,
    /// It had been declared lost, but was only reordered.
    pub(crate) was_lost: Option<SpuriousLoss>,
}

/// How wrong a declaration of loss was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpuriousLoss {
    /// How far the largest acknowledged number was ahead of the packet.
    pub(crate) distance: u64,
    /// The time from sending to the ACK.
    pub(crate) age: Duration,
    /// How many packets (except MTU probes) were acknowledged or lost since it was declared lost, used to take the loss out of an average.
    pub(crate) outcomes_since: u64,
}

/// A packet declared lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostPacket<C> {
    /// The packet.
    pub(crate) packet: SentPacket<C>,
    /// [`SentPackets::poll_expired`] had returned it.
    pub(crate) was_expired: bool,
}

/// Summary of an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckSummary {
    /// When the largest acknowledged packet was sent, if it is newly acknowledged and any newly acknowledged packet is ack-eliciting: the
    /// sample of RFC 9002 section 5.1.
    pub(crate) rtt_sample_from: Option<Instant>,
    /// The number of newly acknowledged packets.
    pub(crate) newly_acked: u64,
    /// Whether any of them was ack-eliciting.
    pub(crate) has_ack_eliciting: bool,
}

/// The peer acknowledged a packet number that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptimisticAck {
    /// The number.
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
enum Slot<C> {
    /// The number was skipped.
    Skipped,
    /// Neither acknowledged nor lost.
    Outstanding(SentPacket<C>),
    /// Declared lost at `since`, when `outcome` packets had been resolved.
    Lost { packet: SentPacket<C>, outcome: u64, since: Instant },
    /// Acknowledged. The numbers up to `next` (exclusive) are acknowledged or were never sent.
    Acked { next: u64 },
}

/// The packets sent on one path. `C` is the type of their contents.
#[derive(Clone, Debug)]
pub(crate) struct SentPackets<C> {
    slots: VecDeque<Slot<C>>,
    /// The number of the first slot.
    base: u64,
    /// All outstanding numbers are at or above this.
    first_outstanding: u64,
    /// Outstanding packets below this were returned as expired.
    expired_until: u64,
    largest_acked: Option<u64>,
    packets_in_flight: u64,
    bytes_in_flight: u64,
    /// Packets below this no longer count as in flight, see [`Self::give_up_flight`].
    flight_begins: u64,
    ack_eliciting_outstanding: u64,
    last_ack_eliciting: Option<Instant>,
    /// The number of packets resolved so far.
    outcomes: u64,
    /// The ranges of the current ACK in ascending order; a scratch buffer.
    ranges: Vec<(u64, u64)>,
    /// Packets given up without an ACK, until [`Self::detect_losses`] returns them.
    given_up: Vec<LostPacket<C>>,
}

impl<C> SentPackets<C> {
    /// Creates an empty one whose first packet number is 0.
    pub(crate) fn new() -> Self {
        Self {
            slots: VecDeque::new(),
            base: 0,
            first_outstanding: 0,
            expired_until: 0,
            largest_acked: None,
            packets_in_flight: 0,
            bytes_in_flight: 0,
            flight_begins: 0,
            ack_eliciting_outstanding: 0,
            last_ack_eliciting: None,
            outcomes: 0,
            ranges: Vec::new(),
            given_up: Vec::new(),
        }
    }

    /// The smallest number that the next packet may have.
    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber(self.base + self.slots.len() as u64)
    }

    /// Whether another packet can be recorded. False only if far more packets are unresolved than any window allows.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.len() < SPAN_MAX
    }

    /// Records a packet. Numbers must increase; omitted numbers count as skipped.
    pub(crate) fn on_sent(&mut self, packet: SentPacket<C>) {
        let number = packet.number.0;
        assert!(number >= self.next_number().0, "packet numbers must increase");
        self.forget_unasked();
        while self.next_number().0 < number {
            self.slots.push_back(Slot::Skipped);
        }
        if packet.in_flight {
            self.packets_in_flight += 1;
            self.bytes_in_flight += packet.size;
        }
        if packet.ack_eliciting {
            self.ack_eliciting_outstanding += 1;
            self.last_ack_eliciting = Some(packet.time);
        }
        self.slots.push_back(Slot::Outstanding(packet));
    }

    /// Skips the next number (RFC 9000 section 21.4). A peer that acknowledges it did not receive it.
    pub(crate) fn skip_number(&mut self) {
        self.slots.push_back(Slot::Skipped);
    }

    /// Removes the oldest packets that are not ack-eliciting if there are many, since a side that sends only ACKs may never get an ACK. An
    /// ack-eliciting packet is given up if the slots after it are many and mostly not ack-eliciting, or if it no longer counts as in flight: a
    /// path that is dead for hours is probed again and again.
    fn forget_unasked(&mut self) {
        while self.slots.len() > UNASKED_MAX {
            let is_unasked = self.ack_eliciting_outstanding < self.slots.len() as u64 / 2;
            let is_debt_old = self.slots.len() > DEBT_MAX && (is_unasked || self.base < self.flight_begins);
            match self.slots.front() {
                Some(Slot::Outstanding(packet)) if packet.ack_eliciting && !is_debt_old => return,
                Some(Slot::Lost { .. }) if !is_debt_old => return,
                Some(_) => {}
                None => return,
            }
            let was_expired = self.base < self.expired_until;
            self.base += 1;
            if let Some(Slot::Outstanding(packet)) = self.slots.pop_front() {
                self.resolve(&packet);
                if packet.ack_eliciting {
                    self.given_up.push(LostPacket { packet, was_expired });
                }
            }
        }
    }

    /// Whether packets were given up since the last call of [`Self::detect_losses`].
    pub(crate) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Processes an ACK. `ranges` are inclusive `(first, last)` pairs in descending order. Newly acknowledged packets are appended to
    /// `acked` in ascending order.
    ///
    /// # Errors
    /// Returns [`OptimisticAck`] if the ACK contains a number that was never sent. Then nothing has changed.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ranges: impl IntoIterator<Item = (u64, u64)>,
        acked: &mut Vec<AckedPacket<C>>,
    ) -> Result<AckSummary, OptimisticAck> {
        let mut upwards = core::mem::take(&mut self.ranges);
        upwards.clear();
        upwards.extend(ranges);
        upwards.reverse();
        let outcome = self.check_ranges(&upwards).map(|()| self.apply_ranges(now, &upwards, acked));
        self.ranges = upwards;
        outcome
    }

    fn check_ranges(&self, ranges: &[(u64, u64)]) -> Result<(), OptimisticAck> {
        for &(first, last) in ranges {
            if last >= self.next_number().0 {
                return Err(OptimisticAck { number: last });
            }
            let mut number = first.max(self.base);
            while number <= last {
                number = match self.slot(number) {
                    Some(Slot::Skipped) => return Err(OptimisticAck { number }),
                    Some(Slot::Acked { next }) => (*next).max(number + 1),
                    _ => number + 1,
                };
            }
        }
        Ok(())
    }

    fn apply_ranges(
        &mut self,
        now: Instant,
        ranges: &[(u64, u64)],
        acked: &mut Vec<AckedPacket<C>>,
    ) -> AckSummary {
        let largest = ranges.last().map(|range| range.1);
        self.largest_acked = self.largest_acked.max(largest);
        let mut summary = AckSummary::default();
        let mut largest_sent = None;
        for &(first, last) in ranges {
            let mut number = first.max(self.base);
            while number <= last {
                let (next, newly) = self.acknowledge(now, number, last);
                number = next;
                let Some(newly) = newly else { continue };
                summary.newly_acked += 1;
                summary.has_ack_eliciting |= newly.packet.ack_eliciting;
                if Some(newly.packet.number.0) == largest {
                    largest_sent = Some(newly.packet.time);
                }
                acked.push(newly);
            }
        }
        if summary.has_ack_eliciting {
            summary.rtt_sample_from = largest_sent;
        }
        self.advance();
        summary
    }

    /// Acknowledges `number` in a range that ends at `last`. Returns the next number to process.
    fn acknowledge(&mut self, now: Instant, number: u64, last: u64) -> (u64, Option<AckedPacket<C>>) {
        let index = (number - self.base) as usize;
        let Some(slot) = self.slots.get_mut(index) else { return (last + 1, None) };
        if let Slot::Acked { next } = slot {
            let jump = *next;
            *next = jump.max(last + 1);
            return (jump.max(number + 1), None);
        }
        let was_expired = number < self.expired_until;
        let newly = match core::mem::replace(slot, Slot::Acked { next: last + 1 }) {
            Slot::Outstanding(packet) => {
                self.resolve(&packet);
                AckedPacket { packet, was_expired, was_lost: None }
            }
            Slot::Lost { packet, outcome, .. } => {
                let spurious = SpuriousLoss {
                    distance: self.largest_acked.unwrap_or(number).saturating_sub(number),
                    age: now - packet.time,
                    outcomes_since: self.outcomes - outcome,
                };
                AckedPacket { packet, was_expired: true, was_lost: Some(spurious) }
            }
            Slot::Skipped | Slot::Acked { .. } => return (number + 1, None),
        };
        (number + 1, Some(newly))
    }

    /// A packet is no longer outstanding: it was acknowledged, lost or given up.
    fn resolve(&mut self, packet: &SentPacket<C>) {
        self.outcomes += u64::from(!packet.is_mtu_probe);
        if packet.in_flight && packet.number.0 >= self.flight_begins {
            self.packets_in_flight -= 1;
            self.bytes_in_flight -= packet.size;
        }
        self.ack_eliciting_outstanding -= u64::from(packet.ack_eliciting);
    }

    /// The first outstanding number at or after `number`.
    fn next_outstanding(&self, number: u64) -> u64 {
        let mut number = number.max(self.base);
        loop {
            number = match self.slot(number) {
                None | Some(Slot::Outstanding(_)) => return number,
                Some(Slot::Acked { next }) => (*next).max(number + 1),
                Some(Slot::Skipped | Slot::Lost { .. }) => number + 1,
            };
        }
    }

    /// Advances the cursors past resolved packets and removes slots at the front that are no longer needed.
    fn advance(&mut self) {
        self.first_outstanding = self.next_outstanding(self.first_outstanding).min(self.next_number().0);
        while matches!(self.slots.front(), Some(Slot::Acked { .. } | Slot::Skipped)) {
            // The newest slot stays, because the next number follows from it.
            if self.slots.len() == 1 {
                break;
            }
            self.slots.pop_front();
            self.base += 1;
        }
    }

    fn slot(&self, number: u64) -> Option<&Slot<C>> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slots.get(index)
    }

    fn outstanding_at(&self, number: u64) -> Option<&SentPacket<C>> {
        match self.slot(number)? {
            Slot::Outstanding(packet) => Some(packet),
            _ => None,
        }
    }

    /// The outstanding packets.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &SentPacket<C>> {
        let known = self.first_outstanding.saturating_sub(self.base) as usize;
        self.slots.iter().skip(known).filter_map(|slot| match slot {
            Slot::Outstanding(packet) => Some(packet),
            _ => None,
        })
    }

    /// The same, to be changed, and whether [`Self::poll_expired`] has returned them.
    pub(crate) fn outstanding_mut(&mut self) -> impl Iterator<Item = (bool, &mut SentPacket<C>)> {
        let expired_until = self.expired_until;
        let known = self.first_outstanding.saturating_sub(self.base) as usize;
        self.slots.iter_mut().skip(known).filter_map(move |slot| match slot {
            Slot::Outstanding(packet) => Some((packet.number.0 < expired_until, packet)),
            _ => None,
        })
    }

    /// Returns the next packet that has been outstanding since before `before` and was not returned yet. It no longer counts as on its way
    /// to the receiver, though it is not lost yet (CTCP section 4.5). Call until `None`.
    pub(crate) fn poll_expired(&mut self, before: Instant) -> Option<&SentPacket<C>> {
        let number = self.next_outstanding(self.expired_until);
        let is_old = self.outstanding_at(number).is_some_and(|packet| packet.time < before);
        self.expired_until = if is_old { number + 1 } else { number };
        if is_old { self.outstanding_at(number) } else { None }
    }

    /// Gives up all packets, because the path is closed.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = LostPacket<C>> {
        let (base, expired_until) = (self.base, self.expired_until);
        let slots = core::mem::take(&mut self.slots).into_iter().zip(base..);
        slots.filter_map(move |(slot, number)| match slot {
            Slot::Outstanding(packet) => Some(LostPacket { packet, was_expired: number < expired_until }),
            _ => None,
        })
    }

    /// When the packet was sent that [`Self::poll_expired`] will return next.
    pub(crate) fn next_to_expire(&self) -> Option<Instant> {
        self.outstanding_at(self.next_outstanding(self.expired_until)).map(|packet| packet.time)
    }

    /// When the oldest outstanding packet after `number` was sent.
    pub(crate) fn first_outstanding_after(&self, number: PacketNumber) -> Option<Instant> {
        let next = self.next_outstanding(self.first_outstanding.max(number.0 + 1));
        self.outstanding_at(next).map(|packet| packet.time)
    }

    /// The largest acknowledged number.
    pub(crate) fn largest_acked(&self) -> Option<PacketNumber> {
        self.largest_acked.map(PacketNumber)
    }

    /// The number of packets that count against the congestion window.
    pub(crate) fn packets_in_flight(&self) -> u64 {
        self.packets_in_flight
    }

    /// The size of these packets in bytes.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Stops counting packets below `end` against the window. They are treated as lost, though only an ACK can tell. Acknowledgements and
    /// losses of them are reported as usual.
    pub(crate) fn give_up_flight(&mut self, end: PacketNumber) {
        for number in self.flight_begins.max(self.base)..end.0 {
            let size =
                self.outstanding_at(number).filter(|packet| packet.in_flight).map(|packet| packet.size);
            self.packets_in_flight -= u64::from(size.is_some());
            self.bytes_in_flight -= size.unwrap_or(0);
        }
        self.flight_begins = self.flight_begins.max(end.0);
    }

    /// Whether an ACK is due.
    pub(crate) fn has_ack_eliciting_outstanding(&self) -> bool {
        self.ack_eliciting_outstanding > 0
    }

    /// When the last ack-eliciting packet was sent, the start of the probe timeout.
    pub(crate) fn last_ack_eliciting_sent(&self) -> Option<Instant> {
        self.last_ack_eliciting
    }
}

impl<C: Clone> SentPackets<C> {
    /// Declares packets lost according to `thresholds` and appends them to `lost` in ascending order. The copies in the slots are kept for
    /// a while. Returns when to call this again, if a packet older than an acknowledged one is still within its time.
    pub(crate) fn detect_losses(
        &mut self,
        now: Instant,
        thresholds: LossThresholds,
        lost: &mut Vec<LostPacket<C>>,
    ) -> Option<Instant> {
        lost.append(&mut self.given_up);
        let largest = self.largest_acked?;
        let mut deadline = None;
        let mut number = self.next_outstanding(self.first_outstanding);
        while number < largest {
            let Some(packet) = self.outstanding_at(number) else { break };
            let due = packet.time + thresholds.delay;
            if due > now && largest - number < thresholds.packets {
                // Later packets were sent later, so this one is due first.
                deadline = Some(due);
                break;
            }
            lost.extend(self.lose(now, number));
            number = self.next_outstanding(number + 1);
        }
        self.forget_lost(now, thresholds.delay * MEMORY_OF_LOST);
        self.advance();
        deadline
    }

    fn lose(&mut self, now: Instant, number: u64) -> Option<LostPacket<C>> {
        let packet = self.outstanding_at(number)?.clone();
        self.resolve(&packet);
        let was_expired = number < self.expired_until;
        let slot = self.slots.get_mut((number - self.base) as usize)?;
        *slot = Slot::Lost { packet: packet.clone(), outcome: self.outcomes, since: now };
        Some(LostPacket { packet, was_expired })
    }

    /// Removes lost packets at the front that were declared lost longer than `memory` ago.
    fn forget_lost(&mut self, now: Instant, memory: Duration) {
        while let Some(slot) = self.slots.front() {
            let is_over = match slot {
                Slot::Lost { since, .. } => now - *since > memory,
                Slot::Acked { .. } | Slot::Skipped => true,
                Slot::Outstanding(_) => false,
            };
            if !is_over || self.slots.len() == 1 {
                break;
            }
            self.slots.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests;
