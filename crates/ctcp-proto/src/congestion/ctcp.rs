//! CTCP's congestion control (CTCP section 4.3, Algorithm 2).
//!
//! ```text
//!   slow start   each ACK:  tokens += 1, until tokens > ss_threshold
//!   avoidance    loss, once a round trip:  tokens *= RTTmin / RTT
//!                else each ACK:            tokens += alpha / tokens
//!   RTO          tokens = initial, slow start
//! ```
//!
//! Differences, where the text is wrong or silent, or where its figures require something else:
//! - The text says one back-off per round trip; Algorithm 2 as printed backs off at every gap. Here: one per round trip.
//! - An ACK that reveals a gap backs off *instead of* growing. If the round trip already had its back-off, the window grows, and it grows
//!   for the packets revealed as lost as well. Alpha is one token per round trip "when appropriate byte counting is used", and so it is in
//!   Eq. 4, whatever fraction of packets is lost.
//! - RTT at a back-off is the shortest of the last round trip. With the RTT of one acknowledgement, and a loss in every round trip, tokens
//!   settle at `1 / (1 - RTTmin / RTT)`: 0.4 ms of noise would starve a path of 20 ms. A standing queue lengthens all round trips.
//! - The resolution of RTT is one millisecond (the granularity of RFC 9002), or a twentieth of a shorter path. A smaller excess over RTTmin
//!   counts as none, unless twice as much is in flight as is delivered: then a queue too short to be seen overflows.
//! - While there is a queue that is no longer than the path, alpha is a third. There beta is above TCP's half, so by Eq. 6 equal growth
//!   would take more than TCP's share.
//! - The paper never sets `ss_threshold`, and its slow start ignores loss. Here it starts infinite, and the queue sets it. When
//!   `RTTmin / RTT` of the last round trip shows that a quarter of the packets in flight are queued, and at least four milliseconds, which
//!   excludes noise, the link is full. The first back-off follows at once. On a link without a queue the end of growth of the delivery rate
//!   sets it (see [`Plateau`]).
//! - The paper has no congestion marks. Here a mark is handled like a loss, once per round trip, but always with a reduction by at least a
//!   fifth: it is not random loss, and the queue exists even if the round trip does not show it. A mark ends slow start.
//!
//! RTTmin is the minimum over the whole connection. Requirement: C4

use core::time::Duration;

use super::round::{Plateau, Round};
use super::{
    Acked, BACK_OFF_MARK, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate,
    packets_in,
};
use crate::PacketNumber;
use crate::recovery::rtt::{GRANULARITY, RttView};

/// The paper's "initial token number", which it leaves open. This is TCP's initial window (RFC 6928).
const INITIAL_TOKENS: f64 = 10.0;

/// Tokens gained per round trip without a queue.
const ALPHA: f64 = 1.0;

/// Tokens gained per round trip with a queue. More would not increase goodput, and take capacity from other flows.
const ALPHA_BESIDE_QUEUE: f64 = 1.0 / 3.0;

/// Length of the round trip, relative to the empty path, at which a back-off equals TCP's half. Longer ones back off more.
const LONG_QUEUE: u32 = 2;

/// The smallest visible queue is this fraction of the round trip, or a millisecond if that is less.
const RESOLUTION: u32 = 20;

/// Packets in flight, relative to those delivered per round trip, above which an invisible queue must be overflowing.
const OVERFLOW: f64 = 2.0;

/// Slow start ends when RTTmin / RTT falls below this value ...
const FULL_LINK: f64 = 0.75;

/// ... and the queue is longer than scheduling delays explain.
const QUEUE_MIN: Duration = Duration::from_millis(4);

/// Pacing spreads the window over the round trip. The small surplus makes the window, not the pacer, the limit. A larger one would let
/// packets catch up with each other and form a queue, which Algorithm 2 takes for congestion.
const PACING_GAIN: f64 = 1.02;

/// In slow start the window doubles within a round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Algorithm 2.
#[derive(Debug)]
pub struct Ctcp {
    tokens: f64,
    ss_threshold: f64,
    /// Tokens gained per round trip while there is a queue.
    alpha_beside_queue: f64,
    name: &'static str,
    /// The round trip of the last back-off.
    backed_off: Round,
    plateau: Plateau,
    is_recovering: bool,
    datagram: u64,
    /// Delivery rate of the path, in bytes per second.
    delivery_rate: Option<f64>,
    rtt: Option<RttView>,
    /// The latest acknowledged packet was sent while there was no more data to send.
    is_app_limited: bool,
}

impl Ctcp {
    /// A controller in slow start.
    #[must_use]
    pub fn new(datagram: u64) -> Self {
        Self {
            tokens: INITIAL_TOKENS,
            ss_threshold: f64::INFINITY,
            alpha_beside_queue: ALPHA_BESIDE_QUEUE,
            name: "ctcp",
            backed_off: Round::default(),
            plateau: Plateau::default(),
            is_recovering: false,
            datagram,
            delivery_rate: None,
            rtt: None,
            is_app_limited: false,
        }
    }

    /// A controller with the same alpha with and without a queue.
    #[must_use]
    pub fn with_constant_alpha(datagram: u64) -> Self {
        Self { alpha_beside_queue: ALPHA, name: "ctcp-constant-alpha", ..Self::new(datagram) }
    }

    fn is_slow_start(&self) -> bool {
        self.tokens <= self.ss_threshold
    }

    /// Whether so much more is in flight than is delivered that a queue too short to be seen must be overflowing.
    fn overflows(&self, minimum: Duration) -> bool {
        let delivered = self.delivery_rate.map(|rate| packets_in(rate, minimum, self.datagram));
        delivered.is_some_and(|delivered| self.tokens > OVERFLOW * delivered)
    }

    fn back_off(&mut self, rtt: &RttView, largest_sent: PacketNumber) {
        let (minimum, shortest) = (rtt.minimum_ever, shortest_seen(rtt.minimum_ever));
        let seen = if self.overflows(minimum) { rtt.standing.max(shortest) } else { rtt.standing };
        if seen >= shortest {
            self.tokens = (self.tokens * minimum.as_secs_f64() / seen.as_secs_f64()).max(WINDOW_MIN);
        }
        self.backed_off.begin(largest_sent);
        self.is_recovering = true;
    }

    /// Backs off at a congestion mark (RFC 3168 section 6.1.2: as at a loss).
    fn on_mark(&mut self, acked: &Acked) {
        let (kept, is_slow_start) = (self.tokens * BACK_OFF_MARK, self.is_slow_start());
        self.back_off(&acked.rtt, acked.largest_sent);
        self.tokens = self.tokens.min(kept).max(WINDOW_MIN);
        if is_slow_start {
            // Below the tokens, so that slow start is over.
            self.ss_threshold = self.tokens / 2.0;
        }
    }

    /// Grows by one packet's share of a round trip.
    fn grow(&mut self, rtt: &RttView) {
        // Not RTTmin: on a route that became longer there would be a queue for ever.
        let base = rtt.minimum;
        let is_beside_queue = (shortest_seen(base)..=LONG_QUEUE * base).contains(&rtt.standing);
        let alpha = if is_beside_queue { self.alpha_beside_queue } else { ALPHA };
        self.tokens = (self.tokens + alpha / self.tokens).min(WINDOW_MAX);
    }

    fn on_slow_start_ack(&mut self, acked: &Acked) {
        if !acked.is_app_limited {
            self.tokens = (self.tokens + 1.0).min(WINDOW_MAX);
        }
        let rtt = &acked.rtt;
        let queue = rtt.standing.saturating_sub(rtt.minimum_ever);
        let is_queueing =
            queue > QUEUE_MIN && rtt.minimum_ever.as_secs_f64() < FULL_LINK * rtt.standing.as_secs_f64();
        if is_queueing || self.plateau.on_ack(acked) {
            self.back_off(rtt, acked.largest_sent);
            // Below the tokens, so that slow start is over.
            self.ss_threshold = self.tokens / 2.0;
        }
    }
}

/// The shortest round trip that shows a queue on a path of this `base`.
fn shortest_seen(base: Duration) -> Duration {
    base + GRANULARITY.min(base / RESOLUTION)
}

impl Controller for Ctcp {
    fn on_sent(&mut self, sent: &Sent) {
        self.rtt.get_or_insert(sent.rtt);
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.rtt = Some(acked.rtt);
        self.delivery_rate = acked.delivery_rate;
        self.is_app_limited = acked.is_app_limited;
        let is_new_round = self.backed_off.is_after(acked.number);
        if is_new_round {
            self.is_recovering = false;
        }
        if acked.ecn_ce && is_new_round {
            self.on_mark(acked);
        } else if self.is_slow_start() {
            self.on_slow_start_ack(acked);
        } else if !acked.is_app_limited {
            self.grow(&acked.rtt);
        }
    }

    fn on_loss(&mut self, lost: &Lost) {
        if self.is_slow_start() {
            return;
        }
        if self.backed_off.is_after(lost.number) {
            self.back_off(&lost.rtt, lost.largest_sent);
        } else if !self.is_app_limited {
            self.grow(&lost.rtt);
        }
    }

    fn on_timeout(&mut self, timed_out: &TimedOut) {
        self.tokens = INITIAL_TOKENS;
        self.ss_threshold = f64::INFINITY;
        self.plateau = Plateau::default();
        self.backed_off.begin(timed_out.largest_sent);
        self.is_recovering = false;
    }

    fn on_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes;
    }

    fn window(&self) -> f64 {
        self.tokens
    }

    fn pacing_rate(&self) -> Option<f64> {
        let rtt = self.rtt?;
        if self.is_slow_start() {
            return Some(pacing_rate(PACING_GAIN_SLOW_START, self.tokens, self.datagram, rtt.smoothed));
        }
        // After a stall of seconds the average is out of date, and the window would be spread over it.
        let time = rtt.smoothed.min(rtt.standing);
        Some(pacing_rate(PACING_GAIN, self.tokens, self.datagram, time))
    }

    fn phase(&self) -> Phase {
        match (self.is_slow_start(), self.is_recovering) {
            (true, _) => Phase::SlowStart,
            (false, true) => Phase::Recovery,
            (false, false) => Phase::Avoidance,
        }
    }

    fn name(&self) -> &'static str {
        self.name
    }
}
