//! What a path owes: probes of a path that is silent, larger datagrams to try, packet numbers to leave out.

use core::time::Duration;

use ctcp_base::Instant;

use super::mtu::{BASE, MtuDiscovery};
use crate::ack::receiver::MAX_ACK_DELAY;
use crate::crypto::random::SecretRng;
use crate::id::PacketNumber;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent::SentPackets;
use crate::recovery::timeout::{GAMMA, ProbeTimeout, RetransmissionTimeout};

/// Probe time-outs in a row before which packets are as large as ever: as many as probes of a size must be lost for it
/// to count as too big.
const LARGE_PROBES: u32 = crate::path::mtu::PROBES_MAX;

/// Probes that do not wait for the whole time-out, before anything is acknowledged.
const HASTY_PROBES: u32 = 2;

/// Within so many packets the first number is left out, in the middle of slow start, where a lie would pay most.
const SKIP_FIRST: u64 = 128;

/// The least distance of numbers left out, and by how much it varies: a gap costs each ACK two bytes until it is old.
const SKIP_MIN: u64 = 256;
const SKIP_RANGE: u64 = 1024;

/// Timers and probes of one path.
pub(crate) struct Owed {
    pub(crate) probe: ProbeTimeout,
    pub(crate) retransmission: RetransmissionTimeout,
    /// When [`SentPackets::detect_losses`] wants to be asked again.
    pub(crate) loss_deadline: Option<Instant>,
    pub(crate) mtu: MtuDiscovery,
    /// The least that the round trip can be, for the first probes.
    hasty_rtt: Option<Duration>,
    /// The next packet number to leave out.
    skips: Option<PacketNumber>,
}

impl Owed {
    pub(super) fn new(now: Instant, datagram_ceiling: u64) -> Self {
        Self {
            probe: ProbeTimeout::new(),
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

    /// Leaves out a packet number now and then, where `rng` says, which no peer can guess: one that acknowledges it lies.
    pub(super) fn skip_number_sometimes<C>(&mut self, sent: &mut SentPackets<C>, rng: &mut SecretRng) {
        let next = sent.next_number();
        let skips = *self.skips.get_or_insert_with(|| PacketNumber(next.0 + rng.below(SKIP_FIRST)));
        if next >= skips {
            sent.skip_number();
            self.skips = Some(PacketNumber(next.0 + SKIP_MIN + rng.below(SKIP_RANGE)));
        }
    }

    /// The largest datagram to send now. After several probes without an answer only what every path carries: it may be
    /// that all were too large, and without an answer nothing would ever be known to be lost.
    pub(super) fn datagram_size(&self) -> u64 {
        if self.probe.count() >= LARGE_PROBES { BASE } else { self.mtu.current() }
    }

    /// When to probe; `None` when nothing is to be acknowledged.
    pub(super) fn probe_deadline<C>(&self, sent: &SentPackets<C>, rtt: &RttEstimator) -> Option<Instant> {
        let outstanding = sent.has_ack_eliciting_outstanding();
        let last = sent.last_ack_eliciting_sent().filter(|_| outstanding)?;
        let deadline = self.probe.deadline(last, rtt, MAX_ACK_DELAY);
        let hasty =
            self.hasty_rtt.filter(|_| sent.largest_acked().is_none() && self.probe.count() < HASTY_PROBES);
        Some(hasty.map_or(deadline, |rtt| deadline.min(last + 2 * rtt + MAX_ACK_DELAY)))
    }

    /// The handshake's round trip was at least this, though it may have been longer: until something is acknowledged, a probe that
    /// turns out to be needless costs less than a lost request.
    pub(super) fn set_hasty_rtt(&mut self, rtt: Duration) {
        self.hasty_rtt = Some(rtt);
    }
}
