//! The script of the applications on a connection: a list of streams, known to both sides.

use core::time::Duration;

use ctcp_proto::Role;

/// All streams of a connection. Each side opens its streams in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The streams opened by the client, sorted by start time.
    pub client: Vec<StreamPlan>,
    /// The streams opened by the server, sorted by start time.
    pub server: Vec<StreamPlan>,
    /// Whether streams run one after the other: a side opens its next stream `start` after the previous one is done.
    pub in_sequence: bool,
    /// The messages that both sides send.
    pub messages: Option<MessagePlan>,
}

/// Messages that each side sends, from the establishment of the connection on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePlan {
    /// How many each side sends.
    pub count: u32,
    /// Bytes of the messages after a number of four bytes, in turn. Not empty.
    pub sizes: Vec<usize>,
    /// The time between two messages.
    pub interval: Duration,
    /// How long a message is worth sending.
    pub deadline: Duration,
}

/// One stream. The opener sends the request, the other side the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// When it is opened, counted from the establishment of the connection, or in sequence from the end of the previous
    /// stream.
    pub start: Duration,
    /// The direction from the opener.
    pub request: FlowPlan,
    /// The direction to the opener.
    pub response: FlowPlan,
    /// Whether the response waits until the whole request was read.
    pub in_turn: bool,
}

/// One direction of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Bytes to write.
    pub size: u64,
    /// What the writer does after these bytes.
    pub end: End,
    /// The pace of the writer.
    pub writing: Pace,
    /// The pace of the reader.
    pub reading: Pace,
    /// A number of bytes after which the reader stops, and the code it uses.
    pub stop: Option<(u64, u64)>,
}

/// How a direction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Finishes after waiting for this long.
    Finish(Duration),
    /// Resets with this code.
    Reset(u64),
}

/// A number of bytes at a time, followed by a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes between two pauses, at least one.
    pub chunk: u64,
    /// The duration of a pause.
    pub pause: Duration,
}

impl Pace {
    /// As fast as possible.
    pub const FAST: Self = Self { chunk: u64::MAX, pause: Duration::ZERO };
}

impl FlowPlan {
    /// Returns `size` bytes, written and read as fast as possible.
    #[must_use]
    pub fn of(size: u64) -> Self {
        Self { size, end: End::Finish(Duration::ZERO), writing: Pace::FAST, reading: Pace::FAST, stop: None }
    }

    /// Returns how long the pauses of the script take, independent of the network.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        let paced = |pace: Pace| {
            let pauses = u32::try_from(self.size / pace.chunk.max(1)).unwrap_or(u32::MAX);
            pace.pause.saturating_mul(pauses)
        };
        let wait = if let End::Finish(wait) = self.end { wait } else { Duration::ZERO };
        paced(self.writing).saturating_add(paced(self.reading)).saturating_add(wait)
    }
}

impl StreamPlan {
    /// A small request with a response of `size` bytes.
    #[must_use]
    pub fn download(start: Duration, size: u64) -> Self {
        Self { start, request: FlowPlan::of(100), response: FlowPlan::of(size), in_turn: true }
    }

    /// A request of `size` bytes with a small response.
    #[must_use]
    pub fn upload(start: Duration, size: u64) -> Self {
        Self { start, request: FlowPlan::of(size), response: FlowPlan::of(10), in_turn: true }
    }

    /// Returns the bytes of both directions.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.request.size.saturating_add(self.response.size)
    }

    /// Returns how long the start time and the pauses of the script take, from the establishment of the connection on.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        self.start.saturating_add(self.request.own_time()).saturating_add(self.response.own_time())
    }
}

impl Script {
    /// Creates a script of streams that the client opens.
    #[must_use]
    pub fn of_client(mut streams: Vec<StreamPlan>) -> Self {
        streams.sort_by_key(|plan| plan.start);
        Self { client: streams, ..Self::default() }
    }

    /// Returns the streams opened by a side.
    #[must_use]
    pub fn opened_by(&self, role: Role) -> &[StreamPlan] {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// Returns all streams.
    pub fn streams(&self) -> impl Iterator<Item = &StreamPlan> {
        self.client.iter().chain(&self.server)
    }

    /// Returns the bytes of all streams.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.streams().map(StreamPlan::size).fold(0, u64::saturating_add)
    }

    /// Returns how long the script takes if the network takes no time.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        let times = self.streams().map(StreamPlan::own_time);
        if self.in_sequence {
            return times.fold(Duration::ZERO, Duration::saturating_add);
        }
        times.max().unwrap_or_default()
    }
}
