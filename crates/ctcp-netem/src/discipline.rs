//! Queue disciplines: which packets a queue marks or drops before it is full, and in which order they leave.

use core::time::Duration;

use ctcp_base::Rate;

/// How a queue is managed. [`QueueLimit`](crate::QueueLimit) limits it in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out. A packet that does not fit is dropped.
    #[default]
    DropTail,
    /// [`Discipline::DropTail`] with marking: an ECN-capable packet that has to wait longer than `threshold` is marked
    /// on arrival. Other packets are only dropped when the queue is full.
    StepMarking {
        /// The longest wait without a mark.
        threshold: Duration,
    },
    /// Queues for up to 1024 flows, served by deficit round robin, with CoDel in each (RFC 8290).
    ///
    /// The limit applies to all queues together, without the packet being transmitted. If it is exceeded, the longest
    /// queue drops its oldest packet.
    FlowQueueCodel(CodelConfig),
}

/// The parameters of CoDel (RFC 8289). A packet that CoDel would drop is marked if it is ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The acceptable wait (section 4.3).
    pub target: Duration,
    /// How long the wait must exceed the target before the first packet is dropped or marked: about a round trip
    /// (section 4.2).
    pub interval: Duration,
}

impl Default for CodelConfig {
    /// Returns 5 ms and 100 ms, the values that RFC 8289 recommends for the Internet.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// The parameters of a token bucket that drops packets exceeding its rate and delays none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// The rate at which the bucket is filled. With the rate zero, only the initial bucket passes.
    pub rate: Rate,
    /// The size of the bucket in bytes. It is initially full. A larger packet never passes.
    pub bucket: u64,
}
