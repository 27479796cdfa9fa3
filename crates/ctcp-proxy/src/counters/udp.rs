//! The counters of UDP datagrams, also of those that were dropped and why.

use core::fmt;

use tracing::debug;

use super::{Count, Level};
use crate::seldom::{Seldom, WARNING_PAUSE};

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Its header or its message could not be parsed.
    Malformed,
    /// It is a fragment of SOCKS5, which RFC 1928 lets a relay refuse.
    Fragment,
    /// It did not come from the program that owns the association.
    Sender,
    /// The rules forbid its target.
    Forbidden,
    /// The name of its target has no address.
    Unresolved,
    /// The target could not be reached: no route, or nothing listens there.
    Unreachable,
    /// It came from an address that was not contacted.
    Unasked,
    /// The client exceeds its rate.
    Rate,
    /// A queue, a buffer or a table was full.
    Full,
    /// It does not fit into a message, or not into a datagram.
    TooLong,
    /// It waited too long, for its name or its association.
    Late,
    /// There is no such association, or it ended.
    Unknown,
}

/// The reasons with their label of `ctcp_proxy_udp_dropped_total`, in order.
const REASONS: [(DropReason, &str); 12] = [
    (DropReason::Malformed, "malformed"),
    (DropReason::Fragment, "fragment"),
    (DropReason::Sender, "sender"),
    (DropReason::Forbidden, "forbidden"),
    (DropReason::Unresolved, "unresolved"),
    (DropReason::Unreachable, "unreachable"),
    (DropReason::Unasked, "unasked"),
    (DropReason::Rate, "rate"),
    (DropReason::Full, "full"),
    (DropReason::TooLong, "too-long"),
    (DropReason::Late, "late"),
    (DropReason::Unknown, "unknown"),
];

/// The counters of UDP datagrams.
#[derive(Debug)]
pub struct UdpCounters {
    /// `ctcp_proxy_udp_associations`: open associations.
    pub associations: Level,
    /// `ctcp_proxy_udp_datagrams_total{direction="upstream"}`: datagrams towards targets.
    pub upstream: Count,
    /// `ctcp_proxy_udp_datagrams_total{direction="downstream"}`: datagrams from targets.
    pub downstream: Count,
    /// `ctcp_proxy_udp_bytes_total{direction="upstream"}`: their bytes, without headers.
    pub bytes_upstream: Count,
    /// `ctcp_proxy_udp_bytes_total{direction="downstream"}`: their bytes, without headers.
    pub bytes_downstream: Count,
    dropped: [(Count, Seldom); REASONS.len()],
}

impl Default for UdpCounters {
    fn default() -> Self {
        Self {
            associations: Level::default(),
            upstream: Count::default(),
            downstream: Count::default(),
            bytes_upstream: Count::default(),
            bytes_downstream: Count::default(),
            dropped: core::array::from_fn(|_| (Count::default(), Seldom::new(WARNING_PAUSE))),
        }
    }
}

impl UdpCounters {
    /// `ctcp_proxy_udp_dropped_total`: datagrams dropped for this reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize].0.value()
    }

    /// The datagrams dropped for each reason, with its label.
    pub fn all_dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        REASONS.iter().map(|(reason, label)| (*label, self.dropped(*reason)))
    }

    /// Counts a datagram towards a target.
    pub(crate) fn on_upstream(&self, bytes: usize) {
        self.upstream.add(1);
        self.bytes_upstream.add(bytes as u64);
    }

    /// Counts a datagram from a target.
    pub(crate) fn on_downstream(&self, bytes: usize) {
        self.downstream.add(1);
        self.bytes_downstream.add(bytes as u64);
    }

    /// Counts a dropped datagram, and logs one per reason and minute.
    pub(crate) fn on_dropped(&self, reason: DropReason, why: impl fmt::Display) {
        let (count, line) = &self.dropped[reason as usize];
        count.add(1);
        if let Some(suppressed) = line.is_due() {
            debug!(?reason, suppressed, "a UDP datagram is dropped: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_reason_has_its_own_count_and_label() {
        let counters = UdpCounters::default();
        for (index, (reason, _)) in REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            for _ in 0..=index {
                counters.on_dropped(*reason, "a test");
            }
        }
        let counts: Vec<_> = counters.all_dropped().map(|(_, count)| count).collect();
        assert_eq!(counts, (1..=REASONS.len() as u64).collect::<Vec<_>>());
        assert_eq!(counters.dropped(DropReason::Unknown), REASONS.len() as u64);
    }
}
