//! The stream operations of the application.

use ctcp_base::Instant;

use super::{Connection, Established, State};
use crate::code::Code;
use crate::id::{ContextId, StreamId};
use crate::stream::{OpenError, ReadError, ReadOutcome, Streams, UnknownStream, WriteError};

impl Connection {
    /// Opens a bidirectional stream. The peer learns of it with its first byte.
    ///
    /// # Errors
    /// Returns [`OpenError::LimitReached`] if the peer allows no more streams now ([`crate::Event::StreamsAvailable`] follows) or the
    /// connection is not established.
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        self.streams().ok_or(OpenError::LimitReached)?.open()
    }

    /// Returns the next stream that the peer opened, even after the connection has closed.
    pub fn accept(&mut self) -> Option<StreamId> {
        self.streams_to_read()?.accept()
    }

    /// Buffers bytes to send on a stream. Returns how many were accepted, at least one. The time `now` decides whether they count as a small
    /// write.
    ///
    /// # Errors
    /// Returns [`WriteError::Blocked`] while the buffer is full ([`crate::Event::Writable`] follows), and other errors if the stream no
    /// longer accepts data.
    pub fn write(&mut self, now: Instant, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let now = self.advance(now);
        if let Some(streams) = self.streams() {
            streams.set_now(now);
        }
        let result = self.streams().ok_or(WriteError::UnknownStream)?.write(id, data);
        if let (Some(early), Ok(taken)) = (self.early_flight(), result) {
            early.copy(id, data.get(..taken).unwrap_or_default(), false);
        }
        self.settle();
        result
    }

    /// Reads bytes in order. Data that arrived before the connection closed can still be read.
    ///
    /// # Errors
    /// Returns an error if the peer reset the stream or the stream does not exist.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        let result = self.streams_to_read().ok_or(ReadError::UnknownStream)?.read(id, buffer);
        self.settle();
        result
    }

    /// Ends the stream: no more data will be written to it.
    ///
    /// # Errors
    /// Returns an error if the stream can no longer be finished.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams().ok_or(WriteError::UnknownStream)?.finish(id)?;
        if let Some(early) = self.early_flight() {
            early.copy(id, &[], true);
        }
        Ok(())
    }

    /// Abandons data that has not been sent. The peer's reader gets an error with `code`.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.streams().ok_or(UnknownStream)?.reset(id, code)
    }

    /// Asks for low latency for all data of a stream that this side sends from now on. It then has a sliding window with repairs between
    /// the symbols (decision 0040), at the expense of more bytes. Without this call, streams that send little at a time have it in profiles
    /// that say so. Changes nothing if the peer has no such context, or if the profile codes all streams in this way.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist.
    pub fn set_low_latency(&mut self, id: StreamId, is_wanted: bool) -> Result<(), UnknownStream> {
        self.streams().ok_or(UnknownStream)?.set_low_latency(id, is_wanted)?;
        match &mut self.state {
            State::Handshaking(handshake) => handshake.want_lane(is_wanted),
            State::Established(established) if is_wanted => established.open_lane(),
            _ => {}
        }
        Ok(())
    }

    /// Stops reading from the stream. The peer's writer gets an error with `code`.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.streams().ok_or(UnknownStream)?.stop(id, code)
    }

    fn streams(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Handshaking(handshake) => handshake.early_mut().map(|early| &mut early.streams),
            State::Established(established) => Some(&mut established.streams),
            _ => None,
        }
    }

    /// The streams, also after the connection has closed.
    fn streams_to_read(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Handshaking(handshake) => handshake.early_mut().map(|early| &mut early.streams),
            State::Established(established) => Some(&mut established.streams),
            _ => self.remains.as_mut().map(|remains| &mut remains.streams),
        }
    }
}

impl Established {
    /// Opens the lane of small writes for streams that ask for it, unless all streams are coded like it or the peer has no such context.
    pub(super) fn open_lane(&mut self) {
        let is_sliding = self.negotiated.profile.code == Code::SLIDING;
        if !is_sliding && self.contexts.takes(ContextId::Interactive) {
            self.streams.open_lane_on_request();
        }
    }
}
