//! What is measured, and which way is better.

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// The application's bits a second, as a share of the link's rate (of all links' where there are several).
    Goodput,
    /// The same of a Cubic flow that shares the link.
    CubicBeside,
    /// Bytes of IP packets on the way of the data for each byte of the application.
    SentPerByte,
    /// CPU time of both ends' programs for 10^9 bytes of the application.
    Cpu,
    /// From before a connection is asked for to the last of so many bytes.
    Request(u64),
    /// What so many of 1000 messages did not exceed, from when a message was due to its delivery.
    Delivery(u16),
    /// The share of messages that were not delivered.
    Undelivered,
}

/// How the values of repetitions become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summing {
    /// The median.
    Median,
    /// The median, and in another row the 95th percentile.
    MedianAndTail,
}

impl Metric {
    /// Its name in scenarios and tables.
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

    /// Its unit.
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

    /// Whether more of it is better.
    #[must_use]
    pub fn is_more_better(self) -> bool {
        matches!(self, Self::Goodput | Self::CubicBeside)
    }

    pub(crate) fn summing(self) -> Summing {
        if matches!(self, Self::Request(_)) { Summing::MedianAndTail } else { Summing::Median }
    }
}
