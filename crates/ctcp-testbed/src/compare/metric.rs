//! The measured quantities, and which direction is better.

use serde::{Deserialize, Serialize};

use crate::probe::DEADLINE;

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Metric {
    /// The application's bits per second, as a share of the link's rate (of all links' if there are several).
    Goodput,
    /// The goodput over the sum of those that our profile `default` has on each path alone.
    OfSum,
    /// The same over the greater one of them.
    OfBetter,
    /// The goodput over that of our profile `default` on the first two paths only.
    OfFirstTwo,
    /// The goodput of the first so many MiB of a transfer, from the request to the last of these bytes, as a share of all links' rate.
    Transfer(u64),
    /// As [`OfSum`](Self::OfSum), of such a transfer.
    TransferOfSum(u64),
    /// As [`OfBetter`](Self::OfBetter), of such a transfer.
    TransferOfBetter(u64),
    /// The goodput of a Cubic flow that shares the link, as a share of the link's rate.
    CubicBeside,
    /// The same over the mean of two Cubic flows that share the link.
    CubicOfCubic,
    /// The share of received symbols that told the client nothing new.
    Wasted,
    /// Bytes of IP packets in the direction of the data per byte of the application.
    SentPerByte,
    /// The same on the first hop of a chain of relays, times the share of its packets that were not lost at random.
    FirstHop,
    /// CPU time of both ends' programs per 10^9 bytes of the application.
    Cpu,
    /// The time from before the connection request to the last of this many bytes.
    Request(u64),
    /// The same for the first request of a tunnel that is up.
    FirstRequest(u64),
    /// The latency, from due to delivered, that this many of 1000 messages did not exceed.
    Delivery(u16),
    /// The share of messages that were not delivered.
    Undelivered,
    /// The share of messages that were not delivered within [`DEADLINE`](crate::probe::DEADLINE).
    Late,
    /// IP packets in the direction of the data per message.
    PacketsPerMessage,
    /// As [`Delivery`](Self::Delivery), without other traffic.
    StreamAlone(u16),
    /// The same alongside a download.
    StreamBeside(u16),
    /// The second 99th percentile over the first.
    StreamRatio,
    /// The goodput of a download without other traffic, as a share of the link's rate.
    DownloadAlone,
    /// The same alongside the stream.
    DownloadBeside,
    /// The second over the first.
    DownloadRatio,
    /// The second over what remains of the first without the bytes of the stream's application.
    DownloadOfRest,
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
            Self::OfSum => "goodput over the sum of ctcp on each path alone".to_owned(),
            Self::OfBetter => "goodput over ctcp on the better path alone".to_owned(),
            Self::OfFirstTwo => "goodput over ctcp on the first two paths".to_owned(),
            Self::Transfer(size) => format!("goodput of the first {size} MiB"),
            Self::TransferOfSum(size) => {
                format!("first {size} MiB: over the sum of ctcp on each path alone")
            }
            Self::TransferOfBetter(size) => {
                format!("first {size} MiB: over ctcp on the better path alone")
            }
            Self::CubicBeside => "the Cubic flow's goodput".to_owned(),
            Self::CubicOfCubic => "the Cubic flow's goodput over the mean of two Cubic flows".to_owned(),
            Self::Wasted => "symbols received in vain".to_owned(),
            Self::SentPerByte => "bytes sent per byte".to_owned(),
            Self::FirstHop => "bytes sent on the first hop per byte, times 1 - p".to_owned(),
            Self::Cpu => "CPU per GB".to_owned(),
            Self::Request(bytes) => format!("request of {}", size(bytes)),
            Self::FirstRequest(bytes) => format!("first request of {}", size(bytes)),
            Self::Delivery(thousandths) => format!("delivery, p{}", f64::from(thousandths) / 10.0),
            Self::Undelivered => "messages not delivered".to_owned(),
            Self::Late => format!("messages lost or later than {} ms", DEADLINE.as_millis()),
            Self::PacketsPerMessage => "packets per message".to_owned(),
            Self::StreamAlone(thousandths) => format!("stream alone, p{}", f64::from(thousandths) / 10.0),
            Self::StreamBeside(thousandths) => {
                format!("stream beside a download, p{}", f64::from(thousandths) / 10.0)
            }
            Self::StreamRatio => "the stream's p99: beside / alone".to_owned(),
            Self::DownloadAlone => "download alone".to_owned(),
            Self::DownloadBeside => "download beside the stream".to_owned(),
            Self::DownloadRatio => "the download: beside / alone".to_owned(),
            Self::DownloadOfRest => "the download: beside / (alone - stream)".to_owned(),
        }
    }

    /// The unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Goodput
            | Self::Transfer(_)
            | Self::CubicBeside
            | Self::DownloadAlone
            | Self::DownloadBeside => "share of the link",
            Self::SentPerByte | Self::FirstHop => "bytes/byte",
            Self::Cpu => "s/GB",
            Self::Request(_) | Self::FirstRequest(_) => "s",
            Self::Delivery(_) | Self::StreamAlone(_) | Self::StreamBeside(_) => "ms",
            Self::Wasted | Self::Undelivered | Self::Late => "share",
            Self::PacketsPerMessage => "packets/message",
            Self::OfSum
            | Self::OfBetter
            | Self::OfFirstTwo
            | Self::TransferOfSum(_)
            | Self::TransferOfBetter(_)
            | Self::CubicOfCubic
            | Self::StreamRatio
            | Self::DownloadRatio
            | Self::DownloadOfRest => "ratio",
        }
    }

    /// Returns true if a larger value is better.
    #[must_use]
    pub fn is_more_better(self) -> bool {
        !matches!(
            self,
            Self::Wasted
                | Self::SentPerByte
                | Self::FirstHop
                | Self::Cpu
                | Self::Request(_)
                | Self::FirstRequest(_)
                | Self::Delivery(_)
                | Self::Undelivered
                | Self::Late
                | Self::PacketsPerMessage
                | Self::StreamAlone(_)
                | Self::StreamBeside(_)
                | Self::StreamRatio
        )
    }

    pub(crate) fn summing(self) -> Summing {
        if matches!(self, Self::Request(_)) { Summing::MedianAndTail } else { Summing::Median }
    }
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    if bytes >= 1_000_000 { format!("{} MB", bytes / 1_000_000) } else { format!("{} KB", bytes / 1_000) }
}
