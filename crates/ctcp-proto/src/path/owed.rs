//! Timers and probes of a path: probe timeouts, MTU probes and skipped packet numbers.

use core::time::Duration;

use ctcp_base::Instant;

use super::mtu::{BASE, MtuDiscovery};
use crate::crypto::random::SecretRng;
use crate::id::PacketNumber;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent::SentPackets;
use crate::recovery::timeout::{GAMMA, ProbeTimeout, RetransmissionTimeout};

/// Probes that do not wait for the pacer (RFC 9002 section 6.2.4).
pub(crate) const PROBES_AT_ONCE: u8 = 2;

/// Consecutive probe timeouts after which packets shrink to [`BASE`]. As many as the MTU probes of a size that must be lost before it
/// counts as too big.
const LARGE_PROBES: u32 = crate::path::mtu::PROBES_MAX;

/// Number of probes that use the shorter timeout of `hasty_rtt`, before anything is acknowledged.
const HASTY_PROBES: u32 = 2;

/// The first packet number is skipped within this many packets. That is during slow start, when acknowledging unreceived packets would pay
/// most.
const SKIP_FIRST: u64 = 128;

/// Minimum distance between skipped numbers, and the range of its variation. A gap costs each ACK two bytes until it is old.
const SKIP_MIN: u64 = 256;
const SKIP_RANGE: u64 = 1024;

/// Timers and probes of one path.
pub(crate) struct Owed {
    pub(crate) probe: ProbeTimeout,
    /// Probes to send even if the congestion window is full.
    pub(crate) probes: u8,
    pub(crate) retransmission: RetransmissionTimeout,
    /// When [`SentPackets::detect_losses`] must be called again.
    pub(crate) loss_deadline: Option<Instant>,
    pub(crate) mtu: MtuDiscovery,
    /// A lower bound of the round trip, for the first probes.
    hasty_rtt: Option<Duration>,
    /// The next packet number to skip.
    skips: Option<PacketNumber>,
}

impl Owed {
    pub(super) fn new(now: Instant, datagram_ceiling: u64) -> Self {
        Self {
            probe: ProbeTimeout::new(),
            probes: 0,
            retransmission: RetransmissionTimeout::new(GAMMA),
            loss_deadline: None,
            mtu: MtuDiscovery::new(now, datagram_ceiling),
            hasty_rtt: None,
            skips: None,
        }
    }

    #[cfg(test)]
    pub(super) fn skips(&self) -> Option<PacketNumber> {
        self.skips
    }

    /// Skips a packet number now and then, at distances drawn from `rng`. A peer that acknowledges a skipped number did not receive it.
    pub(super) fn skip_number_sometimes<C>(&mut self, sent: &mut SentPackets<C>, rng: &mut SecretRng) {
        let next = sent.next_number();
        let skips = *self.skips.get_or_insert_with(|| PacketNumber(next.0 + rng.below(SKIP_FIRST)));
        if next >= skips {
            sent.skip_number();
            self.skips = Some(PacketNumber(next.0 + SKIP_MIN + rng.below(SKIP_RANGE)));
        }
    }

    /// The largest datagram to send now. After several unanswered probes this is [`BASE`], which every path carries: all of them may have
    /// been too large, and without an answer no loss would be detected.
    pub(super) fn datagram_size(&self) -> u64 {
        if self.probe.count() >= LARGE_PROBES { BASE } else { self.mtu.current() }
    }

    /// When to send a probe. `None` if no packet is waiting for an acknowledgement, which the peer may delay by `ack_delay`. The time counts
    /// from the last packet, or from `unanswered_since` if that is earlier.
    pub(super) fn probe_deadline<C>(
        &self,
        sent: &SentPackets<C>,
        rtt: &RttEstimator,
        ack_delay: Duration,
        unanswered_since: Option<Instant>,
    ) -> Option<Instant> {
        let outstanding = sent.has_ack_eliciting_outstanding();
        let last = sent.last_ack_eliciting_sent().filter(|_| outstanding)?;
        let last = unanswered_since.map_or(last, |since| last.min(since));
        let deadline = self.probe.deadline(last, rtt, ack_delay);
        let hasty =
            self.hasty_rtt.filter(|_| sent.largest_acked().is_none() && self.probe.count() < HASTY_PROBES);
        Some(hasty.map_or(deadline, |rtt| deadline.min(last + 2 * rtt + ack_delay)))
    }

    /// Sets a lower bound of the handshake's round trip. Until something is acknowledged, an unnecessary probe costs less than a lost
    /// request.
    pub(super) fn set_hasty_rtt(&mut self, rtt: Duration) {
        self.hasty_rtt = Some(rtt);
    }
}
