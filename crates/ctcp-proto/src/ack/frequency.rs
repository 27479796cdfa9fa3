//! How often a peer acknowledges packets, and what the sender asks for (after draft-ietf-quic-ack-frequency, PROTOCOL.md section 4.1).
//!
//! Each acknowledgement costs about 75 bytes, more where packets are lost, and processor time on both sides. With one for every second
//! packet, that is 3 % of what it acknowledges, in a direction that is often the slower one. A bulk transfer with a large window needs only
//! some twenty per round trip. Everything else is acknowledged as before: slow start, small windows, competition with others,
//! latency-sensitive data, and the end of a transfer.

use core::time::Duration;

use ctcp_base::Instant;

use super::receiver::{MAX_ACK_DELAY, PACKETS_PER_ACK};
use crate::wire::{AckFrequency, Frame};

/// Acknowledgements per window of a bulk transfer: enough to notice losses and queues soon.
const ACKS_A_WINDOW: f64 = 20.0;

/// Bounds of the number of packets per acknowledgement. With the lower one they take 2 % of what they acknowledge.
const PACKETS_MIN: f64 = 3.0;
const PACKETS_MAX: f64 = 32.0;

/// The smallest window of a bulk transfer.
const WINDOW_MIN: f64 = 36.0;

/// Fraction of the round trip by which an acknowledgement may be delayed, and the maximum delay.
const DELAY_SHARE: u32 = 8;
const DELAY_MAX: Duration = Duration::from_millis(50);

/// How many acknowledgements the largest of them is remembered for. It counts at most so many times the packets asked for: more is a stall, not
/// the loss of an acknowledgement.
const BATCH_MEMORY: f64 = 32.0;
const BATCH_MAX: f64 = 4.0;

/// How long a flow must have used its window until it counts as a bulk transfer: so many round trips, and at least this time.
const BULK_ROUNDS: u32 = 2;
const BULK_MIN: Duration = Duration::from_millis(100);

/// What was asked for is changed when it is wrong by this factor.
const CHANGE: f64 = 1.5;

/// What a receiver does until it is asked for something else.
pub(crate) const UNASKED: AckFrequency =
    AckFrequency { packets: PACKETS_PER_ACK as u64, delay: MAX_ACK_DELAY, hurries_at_gaps: true };

/// What is known of a flow after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) now: Instant,
    /// Packets that may be in flight.
    pub(crate) window: f64,
    pub(crate) rtt: Duration,
    /// Packets that were acknowledged and had not been taken for lost.
    pub(crate) acked: usize,
    /// The window grows quickly, or the flow must react quickly for another reason.
    pub(crate) is_alert: bool,
}

/// What the sender of a path asks its peer for.
#[derive(Debug)]
pub(crate) struct AckRequests {
    told: AckFrequency,
    /// The number of frames sent.
    sent: u64,
    /// The longest delay of the last request that the peer acknowledged while it was the newest, and of those after it.
    longest: Duration,
    wanted: AckFrequency,
    is_lost: bool,
    /// The longest delay that the peer was ever told.
    delay_max: Duration,
    /// Since when the flow has used its window.
    busy_since: Option<Instant>,
    /// The largest number of packets that one acknowledgement newly acknowledged lately. It is larger than asked for if acknowledgements are
    /// lost.
    batch: f64,
}

impl AckRequests {
    pub(crate) fn new() -> Self {
        Self {
            told: UNASKED,
            sent: 0,
            longest: MAX_ACK_DELAY,
            wanted: UNASKED,
            is_lost: false,
            delay_max: MAX_ACK_DELAY,
            busy_since: None,
            batch: 0.0,
        }
    }

    /// The flow does not use its window, or latency-sensitive data was sent.
    pub(crate) fn on_interruption(&mut self) {
        self.busy_since = None;
        self.wanted = UNASKED;
    }

    /// What is in flight is lost, or went to another address.
    pub(crate) fn reset(&mut self) {
        self.on_interruption();
        self.batch = 0.0;
    }

    /// Packets were acknowledged.
    pub(crate) fn on_ack(&mut self, flow: &Flow) {
        let acked = (flow.acked as f64).min(self.told.packets as f64 * BATCH_MAX);
        self.batch = acked.max(self.batch + (acked - self.batch) / BATCH_MEMORY);
        if flow.is_alert || flow.window < WINDOW_MIN {
            self.on_interruption();
            return;
        }
        let since = *self.busy_since.get_or_insert(flow.now);
        if flow.now - since < (flow.rtt * BULK_ROUNDS).max(BULK_MIN) {
            return;
        }
        let packets = (flow.window / ACKS_A_WINDOW).clamp(PACKETS_MIN, PACKETS_MAX) as u64;
        let delay = (flow.rtt / DELAY_SHARE).clamp(MAX_ACK_DELAY, DELAY_MAX);
        let is_wrong = |told: f64, wanted: f64| told > wanted * CHANGE || wanted > told * CHANGE;
        let told = self.told;
        if told.hurries_at_gaps
            || is_wrong(told.packets as f64, packets as f64)
            || is_wrong(told.delay.as_secs_f64(), delay.as_secs_f64())
        {
            self.wanted = AckFrequency { packets, delay, hurries_at_gaps: false };
        } else {
            self.wanted = told;
        }
    }

    /// Whether the peer should be told.
    pub(crate) fn is_due(&self) -> bool {
        self.is_lost || self.told != self.wanted
    }

    /// The frame to send.
    pub(crate) fn frame(&self) -> Frame<'static> {
        Frame::AckFrequency(self.wanted)
    }

    /// The frame was sent. Returns its number.
    pub(crate) fn on_sent(&mut self) -> u64 {
        self.told = self.wanted;
        self.sent += 1;
        self.longest = self.longest.max(self.told.delay);
        self.delay_max = self.delay_max.max(self.told.delay);
        self.is_lost = false;
        self.sent
    }

    /// A packet with the frame `number` was acknowledged. The peer may not have the newer ones yet.
    pub(crate) fn on_acked(&mut self, number: u64) {
        if number == self.sent {
            self.longest = self.told.delay;
        }
    }

    /// A packet with such a frame was lost.
    pub(crate) fn on_lost(&mut self) {
        self.is_lost = true;
    }

    /// How many packets may have arrived although no acknowledgement covers them yet. They count as in flight, but are not on the path (as in
    /// BBR, draft-ietf-ccwg-bbr section 5.5.9).
    pub(crate) fn waiting(&self) -> u64 {
        let is_asked = self.told != UNASKED;
        let most = self.told.packets as f64 * BATCH_MAX;
        if is_asked { (self.batch.min(most) as u64).saturating_sub(1) } else { 0 }
    }

    /// How long the peer may delay an acknowledgement now, whichever of the last frames have arrived.
    pub(crate) fn delay(&self) -> Duration {
        self.longest
    }

    /// The longest delay that an acknowledgement may state.
    pub(crate) fn delay_max(&self) -> Duration {
        self.delay_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(80);

    fn flow(millis: u64, window: f64) -> Flow {
        Flow { now: Instant::from_millis(millis), window, rtt: RTT, acked: 10, is_alert: false }
    }

    /// Requests after a flow with this window has lasted for so long.
    fn after(millis: u64, window: f64) -> AckRequests {
        let mut requests = AckRequests::new();
        (0..=millis).for_each(|millis| requests.on_ack(&flow(millis, window)));
        requests
    }

    #[test]
    fn a_bulk_transfer_asks_for_twenty_acknowledgements_per_window() {
        let packets = |window| after(500, window).wanted.packets;
        assert_eq!([35.0, 40.0, 240.0, 5_000.0].map(packets), [2, 3, 12, 32]);
        let asked = after(500, 240.0).wanted;
        assert_eq!((asked.delay, asked.hurries_at_gaps), (RTT / 8, false));
        assert!(!after(159, 240.0).is_due(), "only after two round trips");
        assert!(after(160, 240.0).is_due());
    }

    #[test]
    fn small_changes_are_not_worth_a_packet() {
        let mut requests = after(500, 240.0);
        let _ = requests.on_sent();
        requests.on_ack(&flow(501, 350.0));
        assert!(!requests.is_due());
        requests.on_ack(&flow(502, 400.0));
        assert!(requests.is_due());
    }

    #[test]
    fn what_may_wait_is_what_one_acknowledgement_covers_and_is_forgotten_after_a_while() {
        let mut requests = after(500, 240.0);
        assert_eq!(requests.waiting(), 0, "the peer was not asked yet");
        let _ = requests.on_sent();
        requests.on_ack(&Flow { acked: 24, ..flow(501, 240.0) });
        assert_eq!(requests.waiting(), 23, "an acknowledgement was lost");
        requests.on_ack(&Flow { acked: 10_000, ..flow(502, 240.0) });
        assert_eq!(requests.waiting(), 4 * 12 - 1, "the peer withholds them");
        (503..703).for_each(|millis| requests.on_ack(&Flow { acked: 12, ..flow(millis, 240.0) }));
        assert_eq!(requests.waiting(), 11);
        requests.reset();
        assert_eq!(requests.waiting(), 0);
    }

    #[test]
    fn the_longer_delay_counts_until_the_peer_has_acknowledged_the_shorter_one() {
        let mut requests = after(500, 240.0);
        let longer = requests.on_sent();
        requests.on_interruption();
        let shorter = requests.on_sent();
        assert_eq!((requests.delay(), requests.delay_max()), (RTT / 8, RTT / 8), "none is acknowledged");
        requests.on_acked(longer);
        assert_eq!(requests.delay(), RTT / 8, "the peer may not have the newer one");
        requests.on_acked(shorter);
        assert_eq!((requests.delay(), requests.delay_max()), (MAX_ACK_DELAY, RTT / 8));
    }

    #[test]
    fn an_interruption_returns_to_what_is_usual_and_a_lost_frame_is_sent_again() {
        let mut requests = after(500, 240.0);
        assert!(requests.is_due());
        let _ = requests.on_sent();
        assert!(!requests.is_due());
        assert_eq!(requests.delay(), RTT / 8);
        requests.on_lost();
        assert!(requests.is_due());
        let _ = requests.on_sent();
        requests.on_interruption();
        assert_eq!(requests.frame(), Frame::AckFrequency(UNASKED));
        let _ = requests.on_sent();
        requests.on_ack(&flow(501, 240.0));
        assert!(!requests.is_due(), "the flow has to last again");
        requests.on_ack(&Flow { is_alert: true, ..flow(900, 240.0) });
        assert!(!requests.is_due(), "slow start");
    }
}
