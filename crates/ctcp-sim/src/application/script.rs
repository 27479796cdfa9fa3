//! What applications do on a connection: a list of streams, known to both sides.

use core::time::Duration;

use ctcp_proto::Role;

/// All streams of a connection, each side's in the order in which it opens them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// What the client opens, by the time of the start.
    pub client: Vec<StreamPlan>,
    /// What the server opens, by the time of the start.
    pub server: Vec<StreamPlan>,
    /// One after the other: a side opens its next stream `start` after the one before it was over.
    pub in_sequence: bool,
}

/// One stream: the opener sends the request, the other side the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// When it is opened, counted from the moment the opener's connection is up, or, in sequence, since the stream before.
    pub start: Duration,
    /// From the opener.
    pub request: FlowPlan,
    /// To the opener.
    pub response: FlowPlan,
    /// The response waits until the request was read to its end.
    pub in_turn: bool,
}

/// One direction of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Bytes to write.
    pub size: u64,
    /// What the writer does behind them.
    pub end: End,
    /// How the writer takes its time.
    pub writing: Pace,
    /// How the reader takes its time.
    pub reading: Pace,
    /// The reader stops, with this code, when it has read so many bytes.
    pub stop: Option<(u64, u64)>,
}

/// How a direction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In order, after waiting for so long.
    Finish(Duration),
    /// Given up with this code.
    Reset(u64),
}

/// So many bytes at a time with a pause behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes between two pauses, at least one.
    pub chunk: u64,
    /// The pause.
    pub pause: Duration,
}

impl Pace {
    /// As fast as it goes.
    pub const FAST: Self = Self { chunk: u64::MAX, pause: Duration::ZERO };
}

impl FlowPlan {
    /// `size` bytes, written and read as fast as it goes.
    #[must_use]
    pub fn of(size: u64) -> Self {
        Self { size, end: End::Finish(Duration::ZERO), writing: Pace::FAST, reading: Pace::FAST, stop: None }
    }

    /// How long the script itself makes this take, whatever the network does.
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
    /// A small request that is answered by `size` bytes.
    #[must_use]
    pub fn download(start: Duration, size: u64) -> Self {
        Self { start, request: FlowPlan::of(100), response: FlowPlan::of(size), in_turn: true }
    }

    /// `size` bytes that are answered by a few.
    #[must_use]
    pub fn upload(start: Duration, size: u64) -> Self {
        Self { start, request: FlowPlan::of(size), response: FlowPlan::of(10), in_turn: true }
    }

    /// Bytes of both directions.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.request.size.saturating_add(self.response.size)
    }

    /// How long the script itself makes this take from the moment of the connection.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        self.start.saturating_add(self.request.own_time()).saturating_add(self.response.own_time())
    }
}

impl Script {
    /// A script of streams that the client opens.
    #[must_use]
    pub fn of_client(mut streams: Vec<StreamPlan>) -> Self {
        streams.sort_by_key(|plan| plan.start);
        Self { client: streams, ..Self::default() }
    }

    /// The streams that a side opens.
    #[must_use]
    pub fn opened_by(&self, role: Role) -> &[StreamPlan] {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// Every stream.
    pub fn streams(&self) -> impl Iterator<Item = &StreamPlan> {
        self.client.iter().chain(&self.server)
    }

    /// Bytes of all streams.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.streams().map(StreamPlan::size).fold(0, u64::saturating_add)
    }

    /// How long it takes when the network takes no time.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        let times = self.streams().map(StreamPlan::own_time);
        if self.in_sequence {
            return times.fold(Duration::ZERO, Duration::saturating_add);
        }
        times.max().unwrap_or_default()
    }
}
