//! Which packets a queue marks or drops before it is full, and in which order they leave.

use core::time::Duration;

use ctcp_base::Rate;

/// How a queue is managed. [`QueueLimit`](crate::QueueLimit) bounds it in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out, and what does not fit is dropped.
    #[default]
    DropTail,
    /// The same, and an ECN-capable packet that has to wait longer than `threshold` is marked on arrival. Packets that
    /// are not capable are only dropped when the queue is full.
    StepMarking {
        /// The longest wait that is not marked.
        threshold: Duration,
    },
    /// Queues for up to 1024 flows that are served in turn by deficit round robin, with CoDel in each (RFC 8290). The
    /// limit holds for all of them together, without the packet being transmitted; beyond it the longest queue loses
    /// its oldest packet.
    FlowQueueCodel(CodelConfig),
}

/// The parameters of CoDel (RFC 8289). A packet that CoDel would drop is marked if it is ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The wait that is left alone (section 4.3).
    pub target: Duration,
    /// How long the wait has to be above the target before the first packet is dropped or marked: a round trip
    /// (section 4.2).
    pub interval: Duration,
}

impl Default for CodelConfig {
    /// 5 ms and 100 ms, the values that RFC 8289 recommends for the Internet.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// A token bucket that drops what exceeds its rate and delays nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// The rate at which the bucket is filled. The rate zero lets nothing pass but the first bucket.
    pub rate: Rate,
    /// The size of the bucket in bytes, full at first. A packet that is larger never passes.
    pub bucket: u64,
}
