//! CTCP's congestion control (CTCP section 4.3, Algorithm 2).
//!
//! ```text
//!   slow start   each ACK:  tokens += 1, until tokens > ss_threshold
//!   avoidance    loss, once a round trip:  tokens *= RTTmin / RTT
//!                else each ACK:            tokens += alpha / tokens
//!   RTO          tokens = initial, slow start
//! ```
//!
//! Where the text is wrong or silent, and where its figures ask for something else than it says:
//! - It says one back-off per round trip; Algorithm 2 as printed backs off at every gap. Here: one per round trip.
//! - An ACK that reveals a gap backs off *instead of* growing. Where it does not back off, as the round trip has its back-off, it
//!   grows, and for the packets that it reveals as lost as well: alpha is one token a round trip "when appropriate byte
//!   counting is used", and so it is in Eq. 4, whatever part of the packets is lost.
//! - RTT at a back-off is the shortest of the last round trip. With the RTT of one acknowledgement, and a loss in every round trip,
//!   tokens settle at `1 / (1 - RTTmin / RTT)`: 0.4 ms of anything but a queue starve a path of 20 ms. A queue that stands lengthens
//!   all round trips.
//! - The clock's resolution is one millisecond (RFC 9002's granularity), or a twentieth of a shorter path: a round trip longer than
//!   RTTmin by less is RTTmin, unless twice as much is under way as is delivered: then a queue too short to be seen overflows.
//! - While a queue stands that is no longer than the path, alpha is a third. There beta is above the half of TCP, so that by Eq. 6
//!   equal growth takes more than TCP gets.
//! - Nothing ever sets `ss_threshold`, and slow start ignores loss. It starts infinite here, and the queue sets it:
//!   when `RTTmin / RTT` of the last round trip says that a quarter of the packets in flight stand in a queue (but
//!   at least four milliseconds: noise), the link is full, and the first back-off is taken at once. On a
//!   link without queue the first loss *after* the rate stopped growing does it (see [`Plateau`]).
//!
//! - It knows no congestion marks. Here a mark is answered once a round trip like a loss, but always by a fifth at least: it is no
//!   random loss, and the queue is there even where the round trip does not show it. In slow start it ends slow start.
//!
//! RTTmin is that of the whole connection. Requirement: C4

use core::time::Duration;

use super::round::{Plateau, Round};
use super::{
    Acked, BACK_OFF_MARK, Controller, Lost, Phase, Sent, TimedOut, WINDOW_MAX, WINDOW_MIN, pacing_rate,
    packets_in,
};
use crate::PacketNumber;
use crate::recovery::rtt::{GRANULARITY, RttView};

/// The paper's "initial token number", which it leaves open: TCP's initial window (RFC 6928).
const INITIAL_TOKENS: f64 = 10.0;

/// Tokens gained in a round trip while no queue stands,
const ALPHA: f64 = 1.0;

/// and while one does: more of them would carry nothing more, and take from who fills it.
const ALPHA_BESIDE_QUEUE: f64 = 1.0 / 3.0;

/// Of so many times the empty path's round trip a back-off is TCP's half, and of longer ones more than that.
const LONG_QUEUE: u32 = 2;

/// This part of a round trip is told from none, where it is less than a millisecond.
const RESOLUTION: u32 = 20;

/// Of what is delivered in a round trip so many times is too much under way.
const OVERFLOW: f64 = 2.0;

/// Slow start ends when RTTmin / RTT falls below it,
const FULL_LINK: f64 = 0.75;

/// unless the difference is within what a sleepy scheduler explains.
const QUEUE_MIN: Duration = Duration::from_millis(4);

/// Pacing spreads the window over the round trip; the surplus lets the window, not the pacer, be the limit. No more than that:
/// packets that catch up with each other make a queue, which Algorithm 2 takes for congestion.
const PACING_GAIN: f64 = 1.02;

/// In slow start the window doubles within the round trip.
const PACING_GAIN_SLOW_START: f64 = 2.0;

/// Algorithm 2.
#[derive(Debug)]
pub struct Ctcp {
    tokens: f64,
    ss_threshold: f64,
    /// Tokens gained in a round trip while a queue stands.
    alpha_beside_queue: f64,
    name: &'static str,
    /// Since the last back-off.
    backed_off: Round,
    plateau: Plateau,
    is_recovering: bool,
    datagram: u64,
    /// Of the path, in bytes a second.
    delivery_rate: Option<f64>,
    rtt: Option<RttView>,
    /// The packet acknowledged last left while there was nothing more to send.
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

    /// The same with one alpha for all times.
    #[must_use]
    pub fn with_constant_alpha(datagram: u64) -> Self {
        Self { alpha_beside_queue: ALPHA, name: "ctcp-constant-alpha", ..Self::new(datagram) }
    }

    fn is_slow_start(&self) -> bool {
        self.tokens <= self.ss_threshold
    }

    /// Whether so much more is under way than is delivered that a queue too short to be seen must be losing it.
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

    /// Answers to a congestion mark (RFC 3168 section 6.1.2: as to a loss).
    fn on_mark(&mut self, acked: &Acked) {
        let (kept, is_slow_start) = (self.tokens * BACK_OFF_MARK, self.is_slow_start());
        self.back_off(&acked.rtt, acked.largest_sent);
        self.tokens = self.tokens.min(kept).max(WINDOW_MIN);
        if is_slow_start {
            // Below the tokens: slow start is over.
            self.ss_threshold = self.tokens / 2.0;
        }
    }

    /// By what a packet has of a round trip.
    fn grow(&mut self, rtt: &RttView) {
        // Not RTTmin: on a route that became longer no queue stands for ever.
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
            // Below the tokens: slow start is over.
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
        let is_new_round = self.backed_off.is_behind(acked.number);
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
        if self.backed_off.is_behind(lost.number) {
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
        // Behind a stall of seconds the average is history, and the window would be spread over it.
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
