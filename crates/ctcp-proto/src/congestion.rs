//! Congestion control: how many packets may be in flight on a path, and how fast they are sent.
//!
//! A [`Controller`] is notified of the fate of each packet. It returns a window in packets (the paper's `tokens`) and a pacing rate. It
//! knows nothing of the contents of packets: coding works within its window and hides no loss from it (RFC 9265).
//!
//! ```text
//!  on_sent   each packet that counts against the window
//!  on_ack    once per newly acknowledged packet, in ascending order
//!  on_loss   once per packet declared lost; limiting back-offs to one per round trip is up to the controller
//!  on_timeout  the retransmission timeout of the path expired
//! ```

use core::fmt::{self, Debug};
use core::time::Duration;
use std::sync::Arc;

use ctcp_base::Instant;

pub use crate::recovery::rtt::{INITIAL_RTT, RttEstimator, RttView};
pub use ctcp::Ctcp;
pub use round::Round;
pub(crate) use unlimited::Unlimited;

mod ctcp;
mod cubic;
mod cubic_growth;
mod reno;
mod round;
mod steady;
mod unlimited;

use crate::PacketNumber;

/// The smallest window of any controller: two packets, so that the receiver acknowledges without delay.
pub const WINDOW_MIN: f64 = 2.0;

/// The largest window: 2^16 packets are 7 Gbit/s at 100 ms. It bounds a controller with bad measurements.
pub const WINDOW_MAX: f64 = 65_536.0;

/// The largest factor for a window at a congestion mark (RFC 8511 section 3, which also assumes short queues).
pub(crate) const BACK_OFF_MARK: f64 = 0.8;

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The current time.
    pub now: Instant,
    /// The packet number.
    pub number: PacketNumber,
    /// The size of its datagram in bytes.
    pub size: u64,
    /// Packets in flight, including this one.
    pub in_flight: u64,
    /// Round-trip times; before the first sample the initial estimate.
    pub rtt: RttView,
}

/// A packet was newly acknowledged and had not been declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When the ACK arrived.
    pub now: Instant,
    /// The packet number.
    pub number: PacketNumber,
    /// When it was sent.
    pub sent_time: Instant,
    /// Its own round trip, if known. It is not known for a symbol that was retransmitted.
    pub sample: Option<Duration>,
    /// The size of its datagram in bytes.
    pub size: u64,
    /// Packets in flight after the whole ACK.
    pub in_flight: u64,
    /// The largest packet number sent so far, which marks the end of the next round trip.
    pub largest_sent: PacketNumber,
    /// Round-trip times, including the sample of this ACK.
    pub rtt: RttView,
    /// The paper's `p`, in `[0, 1]`.
    pub loss_average: f64,
    /// The packet was sent while there was no more data to send.
    pub is_app_limited: bool,
    /// The maximum delivery rate of the last ten round trips in bytes per second, after random loss.
    pub delivery_rate: Option<f64>,
    /// The ACK reported new congestion marks.
    pub ecn_ce: bool,
}

/// A packet was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// The current time.
    pub now: Instant,
    /// The packet number.
    pub number: PacketNumber,
    /// When it was sent.
    pub sent_time: Instant,
    /// The size of its datagram in bytes.
    pub size: u64,
    /// Packets in flight without this one.
    pub in_flight: u64,
    /// The largest packet number sent so far.
    pub largest_sent: PacketNumber,
    /// Round-trip times.
    pub rtt: RttView,
    /// The paper's `p`, including this loss.
    pub loss_average: f64,
}

/// The retransmission timeout expired.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// The current time.
    pub now: Instant,
    /// Packets in flight.
    pub in_flight: u64,
    /// The largest packet number sent so far.
    pub largest_sent: PacketNumber,
    /// Round-trip times as of the last ACK.
    pub rtt: RttView,
}

/// The phase of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Searching for the capacity.
    SlowStart,
    /// Near the capacity.
    Avoidance,
    /// The last back-off was less than a round trip ago.
    Recovery,
}

/// A congestion control algorithm for one path.
pub trait Controller: Debug + Send {
    /// A packet that counts against the window was sent.
    fn on_sent(&mut self, sent: &Sent);

    /// A packet was acknowledged.
    fn on_ack(&mut self, acked: &Acked);

    /// A packet was lost.
    fn on_loss(&mut self, lost: &Lost);

    /// The retransmission timeout expired.
    fn on_timeout(&mut self, timed_out: &TimedOut);

    /// The size of a full datagram changed to `bytes`.
    fn on_datagram_size(&mut self, bytes: u64);

    /// How many packets may be in flight (the paper's `tokens`), at least one.
    fn window(&self) -> f64;

    /// The pacing rate in bytes per second; `None` before a round trip was measured.
    fn pacing_rate(&self) -> Option<f64>;

    /// The current phase.
    fn phase(&self) -> Phase;

    /// The mean number of packets in a burst of losses, if the path itself loses packets in bursts; 1 otherwise. After a timeout it takes
    /// about so many packets until one arrives.
    fn burst_length(&self) -> u32 {
        1
    }

    /// Whether it has lately seen a queue that others cause, so that it competes for a share of a bottleneck.
    fn is_competing(&self, _now: Instant) -> bool {
        false
    }

    /// Whether it needs an acknowledgement of every second packet: it grows fast, competes, or measures a delay that varies.
    fn needs_samples(&self, now: Instant) -> bool {
        self.phase() == Phase::SlowStart || self.is_competing(now)
    }

    /// How large its share is to be while it competes, relative to that of one connection: less than 1 if further paths of its connection
    /// may share the bottleneck. `None` if its connection has no further paths. Controllers other than `default` ignore it.
    fn set_share(&mut self, _share: Option<f64>) {}

    /// The name for logs and metrics.
    fn name(&self) -> &'static str;
}

/// What a congestion window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOf {
    /// Packets. Congestion control is notified of each packet.
    Packets,
    /// Symbols that have not been acknowledged as seen, with a window and a timer of the scheme: classical TCP, TCP/NC. Congestion control
    /// is notified only by [`Signal`](crate::scheme::Signal)s.
    Symbols,
}

/// A constructor for a congestion controller and its properties that matter to the rest of the transport. To add one, define a constant of
/// this type and list it in a [`Catalogue`](crate::Catalogue).
pub struct AlgorithmSpec {
    /// The number on the wire (PROTOCOL.md section 3.1).
    pub number: u8,
    /// The name on the command line.
    pub name: &'static str,
    /// Creates a controller for a new path, given the size of a full datagram in bytes.
    pub make: fn(u64) -> Box<dyn Controller>,
    /// Whether it treats congestion marks as congestion.
    pub answers_to_marks: bool,
    /// Whether packets should be sent exactly when the pacer allows, because the controller reacts to the queue of a burst as to any other.
    pub is_punctual: bool,
    /// The kind of window it works with; `None` for any.
    pub window: Option<WindowOf>,
}

/// A congestion control algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm(&'static AlgorithmSpec);

impl Algorithm {
    /// The default: the paper's back-off made robust against noise, fast and with a small queue (`steady`).
    pub const DEFAULT: Self = Self(&AlgorithmSpec {
        number: 0,
        name: "default",
        make: |datagram_size| Box::new(steady::Steady::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        window: Some(WindowOf::Packets),
    });

    /// Algorithm 2 of the CTCP paper, with slower growth while there is a queue.
    pub const CTCP: Self = Self(&AlgorithmSpec {
        number: 1,
        name: "ctcp",
        make: |datagram_size| Box::new(Ctcp::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: true,
        window: Some(WindowOf::Packets),
    });

    /// Standard TCP (RFC 5681, RFC 6582), counted in packets.
    pub const RENO: Self = Self(&AlgorithmSpec {
        number: 4,
        name: "reno",
        make: |datagram_size| Box::new(reno::Reno::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        window: None,
    });

    /// CUBIC (RFC 9438), the default of most kernels.
    pub const CUBIC: Self = Self(&AlgorithmSpec {
        number: 5,
        name: "cubic",
        make: |datagram_size| Box::new(cubic::Cubic::new(datagram_size)),
        answers_to_marks: true,
        is_punctual: false,
        window: None,
    });

    /// An algorithm defined outside this crate.
    #[must_use]
    pub const fn new(spec: &'static AlgorithmSpec) -> Self {
        Self(spec)
    }

    /// The name in configuration and on the command line.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.0.name
    }

    /// Creates a controller for a new path with full datagrams of `datagram_size` bytes.
    #[must_use]
    pub fn controller(self, datagram_size: u64) -> Box<dyn Controller> {
        (self.0.make)(datagram_size)
    }

    /// Whether packets should be sent exactly when the pacer allows.
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

    /// Whether it works with windows of this kind.
    pub(crate) fn works_with(self, window: WindowOf) -> bool {
        self.0.window.is_none_or(|needed| needed == window)
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

/// An external controller that replaces the one of the profile, for simulations that compare designs.
#[derive(Clone)]
pub struct ControllerFactory(Arc<dyn Fn(u64) -> Box<dyn Controller> + Send + Sync>);

impl ControllerFactory {
    /// Creates a factory. `make` creates a controller for a new path, given the size of a full datagram in bytes.
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

/// The number of packets of `datagram` bytes that `rate` bytes per second deliver in `time`.
fn packets_in(rate: f64, time: Duration, datagram: u64) -> f64 {
    rate * time.as_secs_f64() / datagram.max(1) as f64
}

/// A pacing rate in bytes per second: `gain` times `window` packets of `datagram` bytes per round trip.
#[must_use]
pub fn pacing_rate(gain: f64, window: f64, datagram: u64, rtt: Duration) -> f64 {
    gain * window * datagram as f64 / rtt.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests;
