//! Congestion control: how many packets may be in flight on a path, and how fast they leave.
//!
//! A [`Controller`] is told what happens to each packet and answers with a window in packets (the paper's
//! `tokens`) and a pacing rate. It knows nothing of what the packets hold: coding works inside its window
//! and hides no loss from it (RFC 9265).
//!
//! ```text
//!  on_sent   each packet that counts against the window
//!  on_ack    once per newly acknowledged packet, in ascending order
//!  on_loss   once per packet declared lost; one back-off per round trip is the controller's own affair
//!  on_timeout  the retransmission time-out of the path passed
//! ```

use core::fmt::{self, Debug};
use core::time::Duration;
use std::sync::Arc;

use ctcp_base::Instant;

pub use crate::recovery::rtt::{INITIAL_RTT, RttEstimator, RttView};
pub use ctcp::Ctcp;
pub use round::Round;

mod ctcp;
mod cubic;
#[cfg(test)]
mod model;
mod reno;
mod round;
mod steady;

use crate::PacketNumber;

/// The smallest window any controller keeps: two packets, so that an acknowledgement comes without delay.
pub const WINDOW_MIN: f64 = 2.0;

/// The largest: 2^16 packets are 7 Gbit/s at 100 ms. It keeps a controller that measures nonsense finite.
pub const WINDOW_MAX: f64 = 65_536.0;

/// What a congestion mark leaves of a window at most (RFC 8511 section 3, which has the same queues in mind: short ones).
pub(crate) const BACK_OFF_MARK: f64 = 0.8;

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its number.
    pub number: PacketNumber,
    /// Bytes of its datagram.
    pub size: u64,
    /// Packets in flight, with it.
    pub in_flight: u64,
    /// Round-trip times; before the first sample the initial guess.
    pub rtt: RttView,
    /// Nothing more was there to send though the window had room.
    pub is_app_limited: bool,
}

/// A packet was acknowledged for the first time, and it had not been declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When the ACK arrived.
    pub now: Instant,
    /// The packet.
    pub number: PacketNumber,
    /// When it had left.
    pub sent_time: Instant,
    /// Its own round trip, if it is known: not of a symbol that was sent again.
    pub sample: Option<Duration>,
    /// Bytes of its datagram.
    pub size: u64,
    /// Packets in flight behind the whole ACK.
    pub in_flight: u64,
    /// The largest packet number sent so far, which marks where the next round trip ends.
    pub largest_sent: PacketNumber,
    /// Round-trip times, this ACK's sample included.
    pub rtt: RttView,
    /// The paper's `p`, in `[0, 1]`.
    pub loss_average: f64,
    /// The packet left while the application had nothing more to send.
    pub is_app_limited: bool,
    /// The largest delivery rate of the last ten round trips in bytes a second, behind random loss.
    pub delivery_rate: Option<f64>,
    /// The ACK reported new congestion marks.
    pub ecn_ce: bool,
}

/// A packet was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When.
    pub now: Instant,
    /// The packet.
    pub number: PacketNumber,
    /// When it had left.
    pub sent_time: Instant,
    /// Bytes of its datagram.
    pub size: u64,
    /// Packets in flight without it.
    pub in_flight: u64,
    /// The largest packet number sent so far.
    pub largest_sent: PacketNumber,
    /// Round-trip times.
    pub rtt: RttView,
    /// The paper's `p`, this loss included.
    pub loss_average: f64,
}

/// Nothing was heard for the retransmission time-out.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// When.
    pub now: Instant,
    /// Packets in flight.
    pub in_flight: u64,
    /// The largest packet number sent so far.
    pub largest_sent: PacketNumber,
    /// Round-trip times, as old as the last ACK.
    pub rtt: RttView,
}

/// What a controller is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking for the capacity.
    SlowStart,
    /// Near it.
    Avoidance,
    /// A back-off is less than a round trip old.
    Recovery,
}

/// A congestion control algorithm for one path.
pub trait Controller: Debug + Send {
    /// A packet that counts against the window left.
    fn on_sent(&mut self, sent: &Sent);

    /// A packet was acknowledged.
    fn on_ack(&mut self, acked: &Acked);

    /// A packet was lost.
    fn on_loss(&mut self, lost: &Lost);

    /// The retransmission time-out passed.
    fn on_timeout(&mut self, timed_out: &TimedOut);

    /// The full datagram of the path now has `bytes`.
    fn on_datagram_size(&mut self, bytes: u64);

    /// How many packets may be in flight (the paper's `tokens`), at least one.
    fn window(&self) -> f64;

    /// Bytes a second at which packets should leave; `None` before a round trip was measured.
    fn pacing_rate(&self) -> Option<f64>;

    /// What it is about.
    fn phase(&self) -> Phase;

    /// Its name, for logs and metrics.
    fn name(&self) -> &'static str;
}

/// How a congestion control is made, and what the rest of the transport must know of it. A new one is a constant of this type and its place in
/// a [`Catalogue`](crate::Catalogue).
pub struct AlgorithmSpec {
    /// On the wire (PROTOCOL.md section 3.1).
    pub number: u8,
    /// On the command line.
    pub name: &'static str,
    /// Makes a controller for a new path with full datagrams of so many bytes.
    pub make: fn(u64) -> Box<dyn Controller>,
    /// It takes a congestion mark for congestion.
    pub answers_to_marks: bool,
    /// Packets should leave when the pacer says and not a millisecond later: it answers to the queue of a burst as to any other.
    pub is_punctual: bool,
    /// It works on a window of symbols only ([`crate::scheme::WindowOf`]).
    pub needs_symbols: bool,
}

/// A congestion control algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm(&'static AlgorithmSpec);

impl Algorithm {
    /// Ours: the paper's back-off made robust against noise, fast and with a small queue (`steady`).
    pub const DEFAULT: Self = Self(&AlgorithmSpec {
        number: 0,
        name: "default",
        make: |datagram_size| Box::new(steady::Steady::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        needs_symbols: false,
    });

    /// Algorithm 2 of the CTCP paper, which grows less beside a queue.
    pub const CTCP: Self = Self(&AlgorithmSpec {
        number: 1,
        name: "ctcp",
        make: |datagram_size| Box::new(Ctcp::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: true,
        needs_symbols: false,
    });

    /// What standard TCP does (RFC 5681, RFC 6582), counted in packets.
    pub const RENO: Self = Self(&AlgorithmSpec {
        number: 4,
        name: "reno",
        make: |datagram_size| Box::new(reno::Reno::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        needs_symbols: false,
    });

    /// What most kernels run (RFC 9438).
    pub const CUBIC: Self = Self(&AlgorithmSpec {
        number: 5,
        name: "cubic",
        make: |datagram_size| Box::new(cubic::Cubic::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        needs_symbols: false,
    });

    /// One of a laboratory.
    #[must_use]
    pub const fn new(spec: &'static AlgorithmSpec) -> Self {
        Self(spec)
    }

    /// The name as a person writes it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.0.name
    }

    /// A controller for a new path with full datagrams of `datagram_size` bytes.
    #[must_use]
    pub fn controller(self, datagram_size: u64) -> Box<dyn Controller> {
        (self.0.make)(datagram_size)
    }

    /// Packets should leave when the pacer says and not a millisecond later.
    #[must_use]
    pub fn is_punctual(self) -> bool {
        self.0.is_punctual
    }

    pub(crate) fn number(self) -> u8 {
        self.0.number
    }

    pub(crate) fn answers_to_marks(self) -> bool {
        self.0.answers_to_marks
    }

    pub(crate) fn needs_symbols(self) -> bool {
        self.0.needs_symbols
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Algorithm {}

impl Debug for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Algorithm({self})")
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A controller from outside, used instead of the one that the profile names: for simulations that compare designs.
#[derive(Clone)]
pub struct ControllerFactory(Arc<dyn Fn(u64) -> Box<dyn Controller> + Send + Sync>);

impl ControllerFactory {
    /// `make` gets the size of a full datagram in bytes and makes a controller for a new path.
    #[must_use]
    pub fn new(make: impl Fn(u64) -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn controller(&self, datagram_size: u64) -> Box<dyn Controller> {
        (self.0)(datagram_size)
    }
}

impl Debug for ControllerFactory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ControllerFactory")
    }
}

/// Packets of `datagram` bytes that `rate` bytes a second are in `time`.
fn packets_in(rate: f64, time: Duration, datagram: u64) -> f64 {
    rate * time.as_secs_f64() / datagram.max(1) as f64
}

/// A pacing rate in bytes a second: `gain` times `window` packets of `datagram` bytes a round trip.
#[must_use]
pub fn pacing_rate(gain: f64, window: f64, datagram: u64, rtt: Duration) -> f64 {
    gain * window * datagram as f64 / rtt.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests;
