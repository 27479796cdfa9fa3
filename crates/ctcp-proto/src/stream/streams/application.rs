//! The stream operations of the application.

use super::{Stream, Streams, control_flag, event_flag};
use crate::id::StreamId;
use crate::stream::send::{ResetCause, SendState};
use crate::stream::{OpenError, ReadError, ReadOutcome, StreamEvent, UnknownStream, WriteError};
use crate::wire::VARINT_MAX;

impl Streams {
    /// Opens a stream. The peer learns of it with its first bytes, its end or its reset.
    ///
    /// # Errors
    /// Returns an error if the peer allows no more streams.
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        if self.local.opened == self.local.limit {
            self.local.opener_waits = true;
            return Err(OpenError::LimitReached);
        }
        let id = StreamId::new(self.role, self.local.opened);
        self.local.opened += 1;
        self.insert(id);
        Ok(id)
    }

    /// Returns the next stream that the peer opened, in the order of ids.
    pub fn accept(&mut self) -> Option<StreamId> {
        if self.peer.accepted == self.peer.allowance.opened() {
            self.peer.acceptor_waits = true;
            return None;
        }
        let id = StreamId::new(self.role.peer(), self.peer.accepted);
        self.peer.accepted += 1;
        if let Some(stream) = self.streams.get(&id) {
            self.events.resume(id, stream.events);
        }
        Some(id)
    }

    /// Queues bytes to send. Returns how many were accepted, at least one (zero only for an empty slice).
    ///
    /// # Errors
    /// Returns [`WriteError::Blocked`] if the buffer is full, and other errors if the stream can no longer be written.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let limit = self.send_buffer_limit();
        let stream = self.streams.get_mut(&id).ok_or(WriteError::UnknownStream)?;
        let taken = stream.send.write(&mut self.pool, data, limit)?;
        self.queued += taken;
        if data.is_empty() {
            return Ok(0);
        }
        stream.writer_waits = taken < data.len();
        if taken == 0 {
            return Err(WriteError::Blocked);
        }
        self.schedule(id);
        Ok(taken)
    }

    /// Ends a stream after the bytes written so far.
    ///
    /// # Errors
    /// Returns an error if the stream can no longer be written; never [`WriteError::Blocked`].
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let stream = self.streams.get_mut(&id).ok_or(WriteError::UnknownStream)?;
        stream.send.finish()?;
        self.schedule(id);
        Ok(())
    }

    /// Reads the next bytes in order.
    ///
    /// # Errors
    /// Returns an error if the peer reset the stream, this side stopped it, or it does not exist.
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        let stream = self.streams.get_mut(&id).ok_or(ReadError::UnknownStream)?;
        let outcome = stream.receive.read(&mut self.pool, &mut self.receive_credit, out);
        if outcome == Ok(ReadOutcome::Blocked) {
            stream.reader_waits = true;
        }
        if stream.receive.is_announcement_due() {
            self.control.set(id, &mut stream.control, control_flag::CREDIT);
        }
        self.after_reading(id);
        outcome
    }

    /// Resets the sending half: discards queued bytes and reports `code` to the peer's reader. Codes above [`VARINT_MAX`] are reduced to
    /// it.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist. A half in a final state stays as it is.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        if !self.streams.contains_key(&id) {
            return Err(UnknownStream);
        }
        self.give_up(id, ResetCause::Local(code.min(VARINT_MAX)));
        Ok(())
    }

    /// Stops reading: discards received and future bytes and reports `code` to the peer's writer. Codes above [`VARINT_MAX`] are reduced to
    /// it.
    ///
    /// # Errors
    /// Returns an error if the stream does not exist. A half in a final state stays as it is.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        let stream = self.streams.get_mut(&id).ok_or(UnknownStream)?;
        if stream.receive.stop(&mut self.pool, &mut self.receive_credit, code.min(VARINT_MAX)) {
            self.control.set(id, &mut stream.control, control_flag::STOP);
        }
        self.after_reading(id);
        Ok(())
    }

    /// Returns the next event of streams that the application opened or accepted. Drain it after every input.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        if core::mem::take(&mut self.peer.is_opened_news) {
            return Some(StreamEvent::Opened);
        }
        if core::mem::take(&mut self.local.is_available_news) {
            return Some(StreamEvent::Available);
        }
        loop {
            let id = self.events.first()?;
            let event = self.streams.get_mut(&id).and_then(|stream| Self::take_event(id, stream));
            if self.streams.get(&id).is_none_or(|stream| stream.events.is_empty()) {
                self.events.pop();
                self.release_if_over(id);
            }
            if event.is_some() {
                return event;
            }
        }
    }

    fn take_event(id: StreamId, stream: &mut Stream) -> Option<StreamEvent> {
        if stream.events.take(event_flag::STOPPED) {
            let (SendState::ResetSent(ResetCause::Stopped(code))
            | SendState::ResetReceived(ResetCause::Stopped(code))) = stream.send.state()
            else {
                return None;
            };
            return Some(StreamEvent::Stopped { id, code });
        }
        if stream.events.take(event_flag::READABLE) {
            return Some(StreamEvent::Readable(id));
        }
        if stream.events.take(event_flag::WRITABLE) {
            return Some(StreamEvent::Writable(id));
        }
        stream.events.take(event_flag::FINISHED).then_some(StreamEvent::Finished(id))
    }
}
