//! All streams of a connection.
//!
//! Invariants: a stream is in the map from its opening until both halves are in a final state and its last event was taken. So each queue
//! of ids has at most one entry per stream. `queued` is the sum of all send buffers. A stream is in the scheduler if and only if it has a
//! byte under its own credit or a bare FIN.

mod application;
mod incoming;
mod outgoing;

pub(crate) use outgoing::Outlet;

use std::collections::BTreeMap;

use ctcp_base::Instant;

use super::UnknownStream;
use super::control::{Flagged, Flags};
use super::flight::Flight;
use super::flow_control::{ReceiveCredit, STREAMS_MAX, SendCredit, StreamAllowance};
use super::page::PagePool;
use super::receive::ReceiveHalf;
use super::scheduler::{Scheduler, Share};
use super::send::{ResetCause, SEND_BUFFER_MAX, SendHalf, SendState};
use super::thin::{Interactive, Thin};
use crate::id::{Role, StreamId};
use crate::memory::STREAM_COST;

/// Bytes that all streams together may queue before the limit of each shrinks. Otherwise a peer that opens many streams and grants no
/// credit could make this side hold [`SEND_BUFFER_MAX`] for each.
pub const SEND_TOTAL_MAX: usize = 16 * 1024 * 1024;

/// What a stream may always queue, so that every stream makes progress: about three symbols.
const SEND_BUFFER_MIN: usize = 4 * 1024;

/// The windows that this side grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Bytes of all streams that the peer may send ahead of the readers. This bounds the memory for unread bytes.
    pub max_data: u64,
    /// Maximum to which `max_data` grows while data is read fast.
    pub max_data_ceiling: u64,
    /// Bytes of one stream that the peer may send ahead of its reader.
    pub max_stream_data: u64,
    /// Maximum to which `max_stream_data` grows while the stream is read fast. Four bandwidth-delay products are always enough.
    pub max_stream_data_ceiling: u64,
    /// Streams that the peer may have open at a time. An idle one costs less than 300 bytes here.
    pub max_streams: u64,
    /// Maximum to which `max_streams` grows while half of the streams are in use.
    pub max_streams_ceiling: u64,
}

impl StreamsConfig {
    /// Windows that do not grow.
    #[must_use]
    pub const fn fixed(max_data: u64, max_stream_data: u64, max_streams: u64) -> Self {
        Self {
            max_data,
            max_data_ceiling: max_data,
            max_stream_data,
            max_stream_data_ceiling: max_stream_data,
            max_streams,
            max_streams_ceiling: max_streams,
        }
    }
}

impl Default for StreamsConfig {
    /// 16 MiB for the connection, 1 MiB per stream (25 Mbit/s over 300 ms) and 1024 streams. This is enough for a large browser session
    /// through a proxy, or for a hundred users of one client.
    fn default() -> Self {
        Self::fixed(16 << 20, 1 << 20, 1024)
    }
}

/// Pending events of a stream, in the order in which they are reported.
mod event_flag {
    pub(super) const STOPPED: u8 = 1;
    pub(super) const READABLE: u8 = 2;
    pub(super) const WRITABLE: u8 = 4;
    pub(super) const FINISHED: u8 = 8;
}

/// Pending control frames of a stream.
mod control_flag {
    pub(super) const RESET: u8 = 1;
    pub(super) const STOP: u8 = 2;
    pub(super) const CREDIT: u8 = 4;
}

/// One stream.
struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
    share: Share,
    thin: Thin,
    events: Flags,
    control: Flags,
    /// The last read was blocked, or there was none: report the next byte.
    reader_waits: bool,
    /// The last write was accepted only in part: report room.
    writer_waits: bool,
}

impl Stream {
    fn new(send_credit: u64, receive_window: u64) -> Self {
        Self {
            send: SendHalf::new(send_credit),
            receive: ReceiveHalf::new(receive_window),
            share: Share::default(),
            thin: Thin::default(),
            events: Flags::default(),
            control: Flags::default(),
            reader_waits: true,
            writer_waits: false,
        }
    }

    fn is_over(&self) -> bool {
        self.send.is_over() && self.receive.is_over() && self.events.is_empty()
    }
}

/// The streams opened by this side.
#[derive(Debug, Default)]
struct LocalStreams {
    opened: u64,
    /// How many streams the peer allows.
    limit: u64,
    /// An open failed at the limit.
    opener_waits: bool,
    is_available_news: bool,
}

/// The streams opened by the peer.
#[derive(Debug)]
struct PeerStreams {
    allowance: StreamAllowance,
    accepted: u64,
    /// The last accept returned none: report the next stream.
    acceptor_waits: bool,
    is_opened_news: bool,
    is_limit_untold: bool,
}

/// All streams of a connection.
pub struct Streams {
    role: Role,
    config: StreamsConfig,
    /// Boxed, because a node of the map holds eleven values and is half empty when ids only grow.
    streams: BTreeMap<StreamId, Box<Stream>>,
    local: LocalStreams,
    peer: PeerStreams,
    send_credit: SendCredit,
    /// The initial credit that the peer grants each stream.
    peer_stream_data: u64,
    receive_credit: ReceiveCredit,
    is_credit_untold: bool,
    scheduler: Scheduler,
    pool: PagePool,
    /// Bytes written that are not in symbols.
    queued: usize,
    /// Halves in `DataSent`.
    flight: Flight,
    interactive: Interactive,
    /// The time of the last call that had one.
    now: Instant,
    events: Flagged,
    control: Flagged,
    ignored_bytes: u64,
    /// How many bytes of each stream left as early data. Few streams have some.
    early: Vec<(StreamId, u64)>,
    /// Memory that may still be promised or used.
    room: u64,
}

impl Streams {
    /// The streams of a connection whose local side is `role`. No stream can be opened before [`Self::set_peer_limits`].
    #[must_use]
    pub fn new(role: Role, config: StreamsConfig) -> Self {
        Self {
            role,
            config,
            streams: BTreeMap::new(),
            local: LocalStreams::default(),
            peer: PeerStreams {
                allowance: StreamAllowance::new(config.max_streams, config.max_streams_ceiling),
                accepted: 0,
                acceptor_waits: true,
                is_opened_news: false,
                is_limit_untold: false,
            },
            send_credit: SendCredit::default(),
            peer_stream_data: 0,
            receive_credit: ReceiveCredit::new(config.max_data),
            is_credit_untold: false,
            scheduler: Scheduler::default(),
            pool: PagePool::default(),
            queued: 0,
            flight: Flight::default(),
            interactive: Interactive::None,
            now: Instant::ZERO,
            events: Flagged::default(),
            control: Flagged::default(),
            ignored_bytes: 0,
            early: Vec::new(),
            room: u64::MAX,
        }
    }

    /// Sets the memory that may still be promised or used, in bytes. Credit that was withheld for lack of memory is granted now, since a
    /// peer without credit sends nothing that would trigger it.
    pub fn set_room(&mut self, room: u64) {
        self.room = room;
        self.promise_more();
    }

    /// Sets what goes in the interactive lane. It must not be closed again.
    pub fn set_interactive(&mut self, interactive: Interactive) {
        self.interactive = interactive;
        if interactive != Interactive::None {
            self.scheduler.open_interactive_lane();
        }
    }

    /// Opens the interactive lane for streams that ask for low latency, unless it is open.
    pub fn open_lane_on_request(&mut self) {
        if self.interactive == Interactive::None {
            self.set_interactive(Interactive::OnRequest);
        }
    }

    /// Asks for low latency for all writes of a stream, if there is an interactive lane.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist.
    pub fn set_low_latency(&mut self, id: StreamId, is_wanted: bool) -> Result<(), UnknownStream> {
        let stream = self.streams.get_mut(&id).ok_or(UnknownStream)?;
        stream.thin.set_wanted(is_wanted);
        Ok(())
    }

    /// Sets the current time, which decides which writes count as small.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// Frees memory that only a busy connection needs.
    pub fn shrink(&mut self) {
        self.pool.shrink();
    }

    /// Memory that may still be promised or used, in bytes.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Widens the limits that the peer is using up, as far as memory permits.
    fn promise_more(&mut self) {
        let ceiling = self.data_ceiling();
        self.is_credit_untold |= self.receive_credit.widen_for_unread(ceiling);
        let allowance = &mut self.peer.allowance;
        if self.room >= allowance.concurrent() * STREAM_COST && allowance.widen() {
            self.peer.is_limit_untold |= allowance.is_announcement_due();
        }
    }

    /// Memory used and promised, in bytes: what the peer may send under the announced credit, queued bytes, and the streams themselves.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let streams = (self.streams.len() as u64).max(self.peer.allowance.concurrent());
        self.receive_credit.promised()
            + self.queued as u64
            + self.pool.memory() as u64
            + streams * STREAM_COST
    }

    /// What the connection-level window may grow to now.
    fn data_ceiling(&self) -> u64 {
        self.config.max_data_ceiling.min(self.receive_credit.window().saturating_add(self.room))
    }

    /// Lets streams be opened and written before the peer's limits are known. Nothing is sent of them before [`Self::set_peer_limits`].
    pub(crate) fn allow_early(&mut self, streams: u64) {
        self.local.limit = streams.min(STREAMS_MAX);
    }

    /// How many bytes the application has written to a stream.
    pub(crate) fn written(&self, id: StreamId) -> Option<u64> {
        self.streams.get(&id).map(|stream| stream.send.written())
    }

    /// The first `bytes` of a stream have left as early data.
    pub(crate) fn on_early(&mut self, id: StreamId, bytes: u64) {
        self.early.retain(|(other, _)| *other != id);
        self.early.push((id, bytes));
    }

    /// Streams that this side has opened.
    pub(crate) fn opened(&self) -> u64 {
        self.local.opened
    }

    /// Sets the limits from the peer's parameters: bytes in total, bytes per stream, streams in total.
    pub fn set_peer_limits(&mut self, max_data: u64, max_stream_data: u64, max_streams: u64) {
        self.send_credit.raise(max_data);
        self.peer_stream_data = max_stream_data;
        self.local.limit = self.local.opened;
        self.raise_stream_limit(max_streams);
        // Streams that were opened for early data had no credit.
        for index in 0..self.local.opened {
            let id = StreamId::new(self.role, index);
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.send.on_max_stream_data(max_stream_data);
                self.schedule(id);
            }
        }
    }

    fn raise_stream_limit(&mut self, limit: u64) {
        let limit = limit.min(STREAMS_MAX);
        if limit > self.local.limit {
            self.local.limit = limit;
            self.local.is_available_news |= core::mem::take(&mut self.local.opener_waits);
        }
    }

    fn insert(&mut self, id: StreamId) {
        let stream = Stream::new(self.peer_stream_data, self.config.max_stream_data);
        self.streams.insert(id, Box::new(stream));
    }

    /// Records an event of a stream. It is reported once the application knows the stream.
    fn tell_application(&mut self, id: StreamId, event: u8) {
        let is_known = id.initiator() == Some(self.role) || id.index() < self.peer.accepted;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if is_known {
            self.events.set(id, &mut stream.events, event);
        } else {
            stream.events.insert(event);
        }
    }

    /// How much one stream may queue now. It shrinks when all streams together queue much.
    fn send_buffer_limit(&self) -> usize {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        (SEND_TOTAL_MAX.saturating_sub(self.queued) / 4).min(room).clamp(SEND_BUFFER_MIN, SEND_BUFFER_MAX)
    }

    /// Queues a stream in the scheduler if it has something to send under its own credit.
    fn schedule(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let sendable = stream.send.sendable();
        if sendable > 0 {
            let is_interactive = stream.thin.is_interactive(self.interactive, self.now, sendable);
            self.scheduler.add(id, &mut stream.share, is_interactive);
        } else if stream.send.has_bare_fin() {
            self.scheduler.add_bare_fin(id, &mut stream.share);
        }
    }

    /// Resets the sending half. Returns whether that changed anything.
    fn give_up(&mut self, id: StreamId, cause: ResetCause) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let before = stream.send.state();
        let Some(dropped) = stream.send.reset(&mut self.pool, cause) else { return false };
        if before == SendState::DataSent {
            self.flight.remove(id);
        }
        let early = self.early.iter().find(|(other, _)| *other == id).map_or(0, |(_, bytes)| *bytes);
        self.send_credit.force(stream.send.count_early(early));
        self.queued -= dropped;
        self.scheduler.remove(id, &mut stream.share);
        self.control.set(id, &mut stream.control, control_flag::RESET);
        true
    }

    /// Updates the state after bytes were read or discarded.
    fn after_reading(&mut self, id: StreamId) {
        self.is_credit_untold |= self.receive_credit.is_announcement_due();
        self.release_if_over(id);
    }

    /// Removes a stream if both halves are in a final state and the application has taken all its events. The peer may then open another
    /// one.
    fn release_if_over(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.is_over()) else { return };
        debug_assert!(!stream.share.is_queued(), "{id} is in a final state but has something to send");
        self.control.remove(id, stream.control);
        self.streams.remove(&id);
        if id.initiator() == Some(self.role.peer()) {
            self.peer.allowance.on_closed();
            self.peer.is_limit_untold |= self.peer.allowance.is_announcement_due();
        }
    }

    /// The number of streams that are not released yet.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Bytes buffered for readers. Takes time linear in the number of streams; for statistics and tests.
    #[must_use]
    pub fn received_bytes_held(&self) -> usize {
        self.streams.values().map(|stream| stream.receive.buffered()).sum()
    }

    /// Bytes received for streams that had already closed. This is normal: they were in symbols when the stream was reset or stopped.
    #[must_use]
    pub fn ignored_bytes(&self) -> u64 {
        self.ignored_bytes
    }
}

#[cfg(test)]
mod tests;
