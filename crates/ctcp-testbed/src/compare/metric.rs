//! The measured quantities, and which direction is better.

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// The application's bits per second, as a share of the link's rate (of all links' if there are several).
    Goodput,
    /// The same for a Cubic flow that shares the link.
    CubicBeside,
    /// Bytes of IP packets in the direction of the data per byte of the application.
    SentPerByte,
    /// CPU time of both ends' programs per 10^9 bytes of the application.
    Cpu,
    /// The time from before the connection request to the last of this many bytes.
    Request(u64),
    /// The latency, from due to delivered, that this many of 1000 messages did not exceed.
    Delivery(u16),
    /// The share of messages that were not delivered.
    Undelivered,
}

/// How the values of repetitions are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summing {
    /// The median.
    Median,
    /// The median, and the 95th percentile in another row.
    MedianAndTail,
}

impl Metric {
    /// The name in scenarios and tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Goodput => "goodput".to_owned(),
            Self::CubicBeside => "the Cubic flow's goodput".to_owned(),
            Self::SentPerByte => "bytes sent per byte".to_owned(),
            Self::Cpu => "CPU per GB".to_owned(),
            Self::Request(bytes) if bytes >= 1_000_000 => format!("request of {} MB", bytes / 1_000_000),
            Self::Request(bytes) => format!("request of {} KB", bytes / 1_000),
            Self::Delivery(500) => "delivery, p50".to_owned(),
            Self::Delivery(990) => "delivery, p99".to_owned(),
            Self::Delivery(thousandths) => format!("delivery, p{}", f64::from(thousandths) / 10.0),
            Self::Undelivered => "messages not delivered".to_owned(),
        }
    }

    /// The unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Goodput | Self::CubicBeside => "share of the link",
            Self::SentPerByte => "bytes/byte",
            Self::Cpu => "s/GB",
            Self::Request(_) => "s",
            Self::Delivery(_) => "ms",
            Self::Undelivered => "share",
        }
    }

    /// Returns true if a larger value is better.
    #[must_use]
    pub fn is_more_better(self) -> bool {
        matches!(self, Self::Goodput | Self::CubicBeside)
    }

    pub(crate) fn summing(self) -> Summing {
        if matches!(self, Self::Request(_)) { Summing::MedianAndTail } else { Summing::Median }
    }
}
