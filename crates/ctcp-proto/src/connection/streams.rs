//! What an application does with the streams of a connection.

use super::{Connection, State};
use crate::id::StreamId;
use crate::stream::{OpenError, ReadError, ReadOutcome, Streams, UnknownStream, WriteError};

impl Connection {
    /// Opens a bidirectional stream. The peer learns of it with its first byte.
    ///
    /// # Errors
    /// When the peer allows no more now ([`crate::Event::StreamsAvailable`] follows), as none before [`crate::Event::Connected`].
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        self.streams().ok_or(OpenError::LimitReached)?.open()
    }

    /// The next stream that the peer opened, also when the connection is over.
    pub fn accept(&mut self) -> Option<StreamId> {
        self.streams_to_read()?.accept()
    }

    /// Takes bytes to send on a stream and answers how many it took, at least one.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] while the buffer is full ([`crate::Event::Writable`] follows); others when the stream takes
    /// no more.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let result = self.streams().ok_or(WriteError::UnknownStream)?.write(id, data);
        self.settle();
        result
    }

    /// Reads bytes in order. What arrived before the connection was over can still be read.
    ///
    /// # Errors
    /// When the peer reset the stream, or there is no such stream.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        let result = self.streams_to_read().ok_or(ReadError::UnknownStream)?.read(id, buffer);
        self.settle();
        result
    }

    /// Says that nothing more will be written to the stream.
    ///
    /// # Errors
    /// When the stream cannot be finished any more.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams().ok_or(WriteError::UnknownStream)?.finish(id)
    }

    /// Abandons what was not sent yet; the peer's reader gets an error with `code`.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.streams().ok_or(UnknownStream)?.reset(id, code)
    }

    /// Says that we read no more of the stream; the peer's writer gets an error with `code`.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.streams().ok_or(UnknownStream)?.stop(id, code)
    }

    fn streams(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Established(established) => Some(&mut established.streams),
            _ => None,
        }
    }

    /// The same, or what is left of them.
    fn streams_to_read(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Established(established) => Some(&mut established.streams),
            _ => self.remains.as_mut().map(|remains| &mut remains.streams),
        }
    }
}
