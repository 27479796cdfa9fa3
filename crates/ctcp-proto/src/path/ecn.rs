//! Whether packets are sent as ECN-capable, and validation of the peer's ECN counts (RFC 3168, RFC 9000 section 13.4).
//!
//! ```text
//!              an ACK with valid counts
//!   Testing ---------------------------------------> Capable
//!      | ten packets, or three timeouts      ^          |
//!      v                                     |          | an ACK with invalid counts
//!   Waiting ---------------------------------+          v
//!      +------ all were lost -----------------------> Off
//! ```
//!
//! Packets are sent as ECT(0) in the states Testing and Capable. A new network path is tested afresh, because the devices that clear ECN
//! codepoints or drop such packets are on the path.

use crate::id::PacketNumber;
use crate::wire::EcnCounts;

/// Number of packets that test a path (RFC 9000 section 13.4.2).
const TEST_PACKETS: u32 = 10;

/// Consecutive probe timeouts after which packets are sent without ECT(0), in case a device drops such packets (RFC 9000 section 13.4.2).
const TIMEOUTS_MAX: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `sent` test packets were sent, of which `lost` were lost.
    Testing { sent: u32, lost: u32 },
    /// All test packets were sent, and none is acknowledged yet.
    Waiting { sent: u32, lost: u32 },
    /// The peer reports valid counts.
    Capable,
    /// Codepoints do not pass, the peer does not report them, or the congestion controller ignores marks.
    Off,
}

impl State {
    const BEGIN: Self = Self::Testing { sent: 0, lost: 0 };
}

/// ECN state of one path.
#[derive(Clone, Debug)]
pub(crate) struct EcnState {
    state: State,
    /// Packets sent as ECT(0) since the path was created.
    sent: u64,
    /// The peer's latest counts.
    counts: EcnCounts,
    /// The peer's counts when the current network path began.
    counts_before: EcnCounts,
    /// Acknowledged packets that were sent as ECT(0) on the current network path.
    acked: u64,
    /// New congestion marks were reported that the congestion controller has not been notified of.
    has_new_marks: bool,
    /// The acknowledged packet that delivers new marks to the congestion controller.
    bearer: Option<PacketNumber>,
}

impl EcnState {
    /// `is_wanted` if the congestion controller responds to marks. A sender that ignores them must not claim ECN capability (RFC 3168
    /// section 6.1).
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            state: if is_wanted { State::BEGIN } else { State::Off },
            sent: 0,
            counts: EcnCounts::default(),
            counts_before: EcnCounts::default(),
            acked: 0,
            has_new_marks: false,
            bearer: None,
        }
    }

    /// The packets take a new network path.
    pub(crate) fn on_new_route(&mut self, is_wanted: bool) {
        let (sent, counts) = (self.sent, self.counts);
        *self = Self { sent, counts, counts_before: counts, ..Self::new(is_wanted) };
    }

    /// Whether the peer reports valid counts.
    pub(crate) fn is_capable(&self) -> bool {
        self.state == State::Capable
    }

    /// Packets that arrived with congestion marks, according to the peer.
    pub(crate) fn congestion_marks(&self) -> u64 {
        self.counts.ce
    }

    /// Called for each packet sent, with the number of consecutive probe timeouts. Returns whether to send it as ECT(0).
    pub(crate) fn marks_next(&mut self, timeouts: u32) -> bool {
        if timeouts >= TIMEOUTS_MAX {
            self.end_test();
            return false;
        }
        match &mut self.state {
            State::Testing { sent, .. } => {
                *sent += 1;
                if *sent >= TEST_PACKETS {
                    self.end_test();
                }
            }
            State::Capable => {}
            State::Waiting { .. } | State::Off => return false,
        }
        self.sent += 1;
        true
    }

    /// A packet sent as ECT(0) on the current network path was lost.
    pub(crate) fn on_lost(&mut self) {
        if let State::Testing { lost, .. } | State::Waiting { lost, .. } = &mut self.state {
            *lost += 1;
        }
        self.give_up_if_all_are_lost();
    }

    /// An ACK newly acknowledges `newly` packets sent as ECT(0) on the current network path. `is_newest` if it raises the largest
    /// acknowledged number; other ACKs may be reordered and prove nothing (RFC 9000 section 13.4.2.1). New congestion marks are reported to
    /// the congestion controller with the packet `bearer`, or with that of a later ACK if there is none.
    pub(crate) fn on_ack(
        &mut self,
        is_newest: bool,
        newly: u64,
        counts: Option<EcnCounts>,
        bearer: Option<PacketNumber>,
    ) {
        self.has_new_marks |= self.reports_marks(is_newest, newly, counts);
        self.bearer = bearer.filter(|_| self.has_new_marks);
        self.has_new_marks &= self.bearer.is_none();
    }

    /// Whether this packet delivers new marks to the congestion controller.
    pub(crate) fn is_bearer(&self, number: PacketNumber) -> bool {
        self.bearer == Some(number)
    }

    #[cfg(test)]
    pub(crate) fn has_unheard_marks(&self) -> bool {
        self.has_new_marks
    }

    /// Processes the counts of an ACK. Returns whether it reports new congestion marks.
    fn reports_marks(&mut self, is_newest: bool, newly: u64, counts: Option<EcnCounts>) -> bool {
        self.acked += newly;
        let before = self.counts;
        let Some(counts) = counts else {
            if is_newest && (newly > 0 || before != EcnCounts::default()) {
                self.state = State::Off;
            }
            return false;
        };
        if is_newest && !self.is_plausible(&counts) {
            self.state = State::Off;
        }
        self.counts = EcnCounts {
            ect0: counts.ect0.max(before.ect0),
            ect1: counts.ect1.max(before.ect1),
            ce: counts.ce.max(before.ce),
        };
        if self.state == State::Off {
            return false;
        }
        if is_newest && newly > 0 {
            self.state = State::Capable;
        }
        counts.ce > before.ce
    }

    /// Checks of RFC 9000 section 13.4.2.1: counts never decrease, grow by at least one for each acknowledged packet and by no more than
    /// were sent, and stay constant for a codepoint that was never sent.
    ///
    /// The totals since the network path began are compared, not the increments of each ACK. A truncated ACK omits packets that its counts
    /// include, and a later ACK acknowledges them.
    fn is_plausible(&self, counts: &EcnCounts) -> bool {
        let (last, before) = (&self.counts, &self.counts_before);
        let is_growing = counts.ect0 >= last.ect0 && counts.ect1 >= last.ect1 && counts.ce >= last.ce;
        is_growing
            && (counts.ect0 - before.ect0).saturating_add(counts.ce - before.ce) >= self.acked
            && counts.ect0 <= self.sent
            && counts.ect1 == before.ect1
    }

    fn end_test(&mut self) {
        if let State::Testing { sent, lost } = self.state {
            self.state = State::Waiting { sent, lost };
        }
        self.give_up_if_all_are_lost();
    }

    fn give_up_if_all_are_lost(&mut self) {
        if let State::Waiting { sent, lost } = self.state
            && sent > 0
            && lost >= sent
        {
            self.state = State::Off;
        }
    }
}

#[cfg(test)]
mod tests;
