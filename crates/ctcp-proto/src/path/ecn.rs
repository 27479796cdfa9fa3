//! Whether packets leave as ECN-capable, and what the peer reports of them (RFC 3168, RFC 9000 section 13.4).
//!
//! ```text
//!              an ACK reports the packets rightly
//!   Testing ---------------------------------------> Capable
//!      | ten packets, or three time-outs     ^          |
//!      v                                     |          | an ACK reports them wrongly
//!   Waiting ---------------------------------+          v
//!      +------ all were lost -----------------------> Off
//! ```
//!
//! Marked packets leave in the states Testing and Capable. Another way through the network is tested anew, because the
//! devices that clear or drop marked packets are on the way.

use crate::id::PacketNumber;
use crate::wire::EcnCounts;

/// Packets that test a way (RFC 9000 section 13.4.2).
const TEST_PACKETS: u32 = 10;

/// Probe time-outs in a row after which packets are not marked, in case a device drops those that are (RFC 9000
/// section 13.4.2).
const TIMEOUTS_MAX: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `sent` packets of the test left, `lost` of them were lost.
    Testing { sent: u32, lost: u32 },
    /// The test is over, and none of its packets is acknowledged.
    Waiting { sent: u32, lost: u32 },
    /// The peer reports marks as it should.
    Capable,
    /// Marks do not pass, the peer does not report them, or congestion control does not answer to them.
    Off,
}

impl State {
    const BEGIN: Self = Self::Testing { sent: 0, lost: 0 };
}

/// ECN of one path.
#[derive(Clone, Debug)]
pub(crate) struct EcnState {
    state: State,
    /// Packets sent as ECT(0) since the path began.
    sent: u64,
    /// The peer's newest counts.
    counts: EcnCounts,
    /// Its counts when the present way began.
    counts_before: EcnCounts,
    /// Packets sent as ECT(0) on the present way that are acknowledged.
    acked: u64,
    /// New congestion marks were reported that congestion control has not heard of.
    has_new_marks: bool,
    /// The acknowledged packet with which it hears of them.
    bearer: Option<PacketNumber>,
}

impl EcnState {
    /// `is_wanted`: congestion control answers to marks. A sender that does not must not claim it (RFC 3168 section 6.1).
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

    /// The path leads through another network now.
    pub(crate) fn on_new_way(&mut self, is_wanted: bool) {
        let (sent, counts) = (self.sent, self.counts);
        *self = Self { sent, counts, counts_before: counts, ..Self::new(is_wanted) };
    }

    /// Whether the peer reports marks as it should.
    pub(crate) fn is_capable(&self) -> bool {
        self.state == State::Capable
    }

    /// Packets that the peer says arrived with congestion marks.
    pub(crate) fn congestion_marks(&self) -> u64 {
        self.counts.ce
    }

    /// A packet leaves after so many probe time-outs in a row. True: as ECT(0).
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

    /// A packet of the present way that left as ECT(0) was lost.
    pub(crate) fn on_lost(&mut self) {
        if let State::Testing { lost, .. } | State::Waiting { lost, .. } = &mut self.state {
            *lost += 1;
        }
        self.give_up_if_all_are_lost();
    }

    /// An ACK arrived that is the first to acknowledge `newly` packets of the present way which left as ECT(0).
    /// `is_newest`: it acknowledges a larger number than all before; others may be old and prove nothing (RFC 9000
    /// section 13.4.2.1). If it reports new congestion marks, congestion control is to hear of them with the packet `bearer`, or, where there is
    /// none, with that of a later ACK.
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

    /// Whether congestion control hears of new marks with this packet.
    pub(crate) fn is_bearer(&self, number: PacketNumber) -> bool {
        self.bearer == Some(number)
    }

    #[cfg(test)]
    pub(crate) fn has_unheard_marks(&self) -> bool {
        self.has_new_marks
    }

    /// Takes the counts of an ACK. True: it reports new congestion marks.
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

    /// RFC 9000 section 13.4.2.1: counts never shrink, rise by at least one for each packet acknowledged, by no more than
    /// packets were sent, and not for a codepoint that was never sent.
    ///
    /// The sum since the way began is compared and not that of each ACK, because an ACK that is too long leaves out packets that
    /// its counts include, and a later one acknowledges them.
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
