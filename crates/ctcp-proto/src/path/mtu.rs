//! Discovery of the largest datagram that a path carries (datagram packetization layer path MTU discovery, RFC 8899).
//!
//! ```text
//!              probe acked: size rises       nothing left to try
//!   Searching <----------------+---------------------> Settled --- 600 s ---> Searching
//!       |                      |                          |
//!       +----- several large packets in a row lost -------+
//!                              v
//!                      Suspicious: a base probe must pass ...   (lost: start over, it may be an outage)
//!                        |          ^
//!                        v          | lost, fewer than PAIRS_MAX pairs in a row
//!                      Verifying: ... and a probe of the current size fail: PAIRS_MAX pairs, back to the base
//! ```
//!
//! Random loss looks like a black hole, and like a probe that is too big. So a size is excluded only after [`PROBES_MAX`] probes of it were
//! lost. The current size is abandoned only if probes of the base size pass each time while probes of the current size never do. Probes
//! consist of PING and PADDING. A lost probe does not count as packet loss.

use core::time::Duration;

use ctcp_base::Instant;

/// The size that every path must carry (RFC 8899 BASE_PLPMTU).
pub(crate) const BASE: u64 = 1200;

/// UDP payload of a 1500-byte link over IPv4. The first size tried.
pub(crate) const ETHERNET_V4: u64 = 1472;

/// UDP payload of a 1500-byte link over IPv6.
pub(crate) const ETHERNET_V6: u64 = 1452;

/// Number of lost probes after which a size counts as too big (RFC 8899 MAX_PROBES). At 30 % loss, three are lost by chance once in 37
/// searches. The raise timer corrects such an error.
pub(crate) const PROBES_MAX: u32 = 3;

/// Number of pairs in a row, a base probe that passes and then a probe of the current size that is lost, that indicate a black hole. With
/// loss that does not depend on size this happens in less than one suspicion in 200, at any loss rate. With three pairs it would be one in
/// twelve.
const PAIRS_MAX: u32 = 5;

/// Time after which a settled search tries larger sizes again (RFC 8899 PMTU_RAISE_TIMER).
pub(crate) const RAISE_INTERVAL: Duration = Duration::from_secs(600);

/// Number of packets larger than the base that must be lost in a row to suspect a black hole. This happens once in 10^5 packets at 30 %
/// random loss, and once in 10^4 at 40 %. It costs two probes.
const SUSPICIOUS_LOSSES: u32 = 10;

/// The search ends when the remaining range is smaller than this. More would gain less than one percent per packet.
const STEP: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `lost` probes of `size` were lost so far.
    Searching {
        size: u64,
        lost: u32,
    },
    Settled {
        raise_at: Instant,
    },
    /// A probe of the base is due. `pairs` counts how many times in a row the base passed and the current size did not.
    Suspicious {
        pairs: u32,
    },
    /// The base passed. A probe of the current size is due.
    Verifying {
        pairs: u32,
    },
}

/// The search for the largest datagram of one path.
#[derive(Clone, Debug)]
pub(crate) struct MtuDiscovery {
    current: u64,
    /// Upper limit of the search: what the peer accepts and this side can send.
    ceiling: u64,
    /// The smallest size known not to pass, or one more than the ceiling.
    too_big: u64,
    phase: Phase,
    /// Size of the probe in flight.
    probing: Option<u64>,
    large_losses: u32,
}

impl MtuDiscovery {
    /// A search from [`BASE`] up to `ceiling` (the smaller of the peer's `datagram_size_max` and this side's limit).
    pub(crate) fn new(now: Instant, ceiling: u64) -> Self {
        let ceiling = ceiling.max(BASE);
        let mut search = Self {
            current: BASE,
            ceiling,
            too_big: ceiling + 1,
            phase: Phase::Settled { raise_at: now },
            probing: None,
            large_losses: 0,
        };
        search.go_on(now);
        search
    }

    /// The largest datagram known to pass.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// The size of a probe to send now. Returns the same size until [`Self::on_probe_sent`] is called.
    pub(crate) fn poll_probe(&mut self, now: Instant) -> Option<u64> {
        if self.probing.is_some() {
            return None;
        }
        self.on_timeout(now);
        match self.phase {
            Phase::Searching { size, .. } => Some(size),
            Phase::Settled { .. } => None,
            Phase::Suspicious { .. } => Some(BASE),
            Phase::Verifying { .. } => Some(self.current),
        }
    }

    /// The probe of [`Self::poll_probe`] was sent.
    pub(crate) fn on_probe_sent(&mut self, size: u64) {
        self.probing = Some(size);
    }

    /// A probe was acknowledged.
    pub(crate) fn on_probe_acked(&mut self, now: Instant, size: u64) {
        self.probing = None;
        match self.phase {
            Phase::Suspicious { .. } | Phase::Verifying { .. } if size >= self.current => {
                self.clear_suspicion(now);
            }
            Phase::Suspicious { pairs } => self.phase = Phase::Verifying { pairs },
            // A base probe that had been declared lost.
            Phase::Verifying { .. } => {}
            Phase::Searching { .. } | Phase::Settled { .. } => {
                if size > self.current && size <= self.ceiling {
                    self.current = size;
                    self.too_big = self.too_big.max(size + 1);
                    self.large_losses = 0;
                }
                self.go_on(now);
            }
        }
    }

    /// A probe was lost.
    pub(crate) fn on_probe_lost(&mut self, now: Instant, size: u64) {
        self.probing = None;
        match self.phase {
            Phase::Searching { size: searched, lost } if searched == size => {
                self.phase = Phase::Searching { size, lost: lost + 1 };
                if lost + 1 >= PROBES_MAX {
                    self.on_too_big(now, size);
                }
            }
            Phase::Suspicious { .. } => self.phase = Phase::Suspicious { pairs: 0 },
            Phase::Verifying { pairs } if size == self.current => {
                self.phase = Phase::Suspicious { pairs: pairs + 1 };
                if pairs + 1 >= PAIRS_MAX {
                    self.too_big = self.current;
                    self.current = BASE;
                    self.large_losses = 0;
                    self.go_on(now);
                }
            }
            _ => {}
        }
    }

    /// The operating system refused a datagram of this size, or [`PROBES_MAX`] probes of it were lost.
    pub(crate) fn on_too_big(&mut self, now: Instant, size: u64) {
        self.probing = None;
        self.too_big = self.too_big.min(size.max(BASE + 1));
        if self.current >= self.too_big {
            self.current = BASE;
        }
        self.go_on(now);
    }

    /// An ordinary packet of `size` was acknowledged.
    pub(crate) fn on_packet_acked(&mut self, now: Instant, size: u64) {
        if size <= BASE {
            return;
        }
        self.large_losses = 0;
        // An acknowledged packet of the current size proves as much as a probe.
        if size >= self.current && matches!(self.phase, Phase::Suspicious { .. } | Phase::Verifying { .. }) {
            self.clear_suspicion(now);
        }
    }

    /// An ordinary packet of `size` was lost.
    pub(crate) fn on_packet_lost(&mut self, size: u64) {
        if size <= BASE || self.current <= BASE {
            return;
        }
        self.large_losses += 1;
        let is_calm = matches!(self.phase, Phase::Searching { .. } | Phase::Settled { .. });
        if is_calm && self.large_losses >= SUSPICIOUS_LOSSES {
            self.phase = Phase::Suspicious { pairs: 0 };
        }
    }

    /// Starts the search again if the raise timer has passed. A probe is sent as soon as the window permits.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Settled { raise_at } if raise_at <= now) {
            self.too_big = self.ceiling + 1;
            self.go_on(now);
        }
    }

    /// When to call [`Self::on_timeout`].
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Settled { raise_at } if self.current < self.ceiling => Some(raise_at),
            _ => None,
        }
    }

    fn clear_suspicion(&mut self, now: Instant) {
        self.large_losses = 0;
        self.go_on(now);
    }

    /// Chooses the next size to try: first the largest, since most paths carry it, then common sizes, then by bisection.
    fn go_on(&mut self, now: Instant) {
        let largest = self.too_big - 1;
        let size = if largest < self.current + STEP && largest < self.ceiling || largest <= self.current {
            None
        } else if largest == self.ceiling {
            Some(largest)
        } else {
            let usual =
                [ETHERNET_V4, ETHERNET_V6].into_iter().find(|&size| self.current < size && size <= largest);
            Some(usual.unwrap_or(self.current + (largest - self.current).div_ceil(2)))
        };
        self.phase = match size {
            Some(size) => Phase::Searching { size, lost: 0 },
            None => Phase::Settled { raise_at: now + RAISE_INTERVAL },
        };
    }
}

#[cfg(test)]
mod tests;
