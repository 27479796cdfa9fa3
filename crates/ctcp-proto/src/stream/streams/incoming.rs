//! The receiving side: decoded symbols and control frames.

use super::{Streams, event_flag};
use crate::code::{Arrived, SymbolSink};
use crate::error::{TransportError, TransportErrorCode};
use crate::id::{StreamId, SymbolIndex};
use crate::stream::control::Control;
use crate::stream::flight::Lane;
use crate::stream::flow_control::STREAMS_MAX;
use crate::stream::send::ResetCause;
use crate::wire::{Malformed, StreamFrame, frames_in_symbol};

impl Streams {
    /// Processes a decoded symbol: its length field, its content, and any number of trailing zeros. Symbols come in any order, each once.
    ///
    /// # Errors
    /// Returns an error if the peer violated the protocol, which closes the connection.
    pub fn on_symbol_decoded(&mut self, symbol: &[u8]) -> Result<(), TransportError> {
        let fault = |malformed: Malformed| malformed.into_error(TransportErrorCode::SymbolEncoding);
        for frame in frames_in_symbol(symbol).map_err(fault)? {
            self.on_stream_frame(frame.map_err(fault)?)?;
        }
        Ok(())
    }

    fn on_stream_frame(&mut self, frame: StreamFrame<'_>) -> Result<(), TransportError> {
        let StreamFrame { id, offset, data, fin } = frame;
        if !self.enter(id)? {
            self.ignored_bytes = self.ignored_bytes.saturating_add(data.len() as u64);
            return Ok(());
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let is_news = stream.receive.on_data(&mut self.pool, &mut self.receive_credit, offset, data, fin)?;
        self.promise_more();
        self.after_receiving(id, is_news);
        Ok(())
    }

    /// Checks the stream id of a frame. Opens the stream (and all below it, RFC 9000 section 2.1) if it is a new one of the peer. Returns
    /// false if the stream has been released.
    fn enter(&mut self, id: StreamId) -> Result<bool, TransportError> {
        const NOT_OPENED: TransportError =
            TransportError::new(TransportErrorCode::StreamState, "frame for a stream that was not opened");
        let initiator = id.initiator().ok_or(NOT_OPENED)?;
        if initiator == self.role {
            let exists = id.index() < self.local.opened;
            return if exists { Ok(self.streams.contains_key(&id)) } else { Err(NOT_OPENED) };
        }
        for index in self.peer.allowance.open_up_to(id.index())? {
            self.insert(StreamId::new(initiator, index));
            self.peer.is_opened_news |= core::mem::take(&mut self.peer.acceptor_waits);
        }
        self.promise_more();
        Ok(self.streams.contains_key(&id))
    }

    fn after_receiving(&mut self, id: StreamId, is_news: bool) {
        if let Some(stream) = self.streams.get_mut(&id)
            && is_news
            && core::mem::take(&mut stream.reader_waits)
        {
            self.tell_application(id, event_flag::READABLE);
        }
        self.after_reading(id);
    }

    /// The peer has decoded all symbols of a lane below `oldest_undecoded`.
    pub fn on_peer_decoded_below(&mut self, lane: Lane, oldest_undecoded: SymbolIndex) {
        self.flight.on_decoded_below(lane, oldest_undecoded);
        while let Some(id) = self.flight.poll(lane) {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.send.on_all_decoded();
            self.tell_application(id, event_flag::FINISHED);
        }
    }

    /// Processes a MAX_DATA.
    ///
    /// # Errors
    /// Never returns an error; the signature matches the other frames.
    pub fn on_max_data(&mut self, limit: u64) -> Result<(), TransportError> {
        self.send_credit.raise(limit);
        Ok(())
    }

    /// Processes a MAX_STREAM_DATA.
    ///
    /// # Errors
    /// Returns an error if the stream was not opened and the peer may not open it.
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), TransportError> {
        if self.enter(id)?
            && let Some(stream) = self.streams.get_mut(&id)
        {
            stream.send.on_max_stream_data(limit);
            self.wake_writer(id);
            self.schedule(id);
        }
        Ok(())
    }

    /// Processes a MAX_STREAMS.
    ///
    /// # Errors
    /// Returns an error if the number is larger than ids can express.
    pub fn on_max_streams(&mut self, limit: u64) -> Result<(), TransportError> {
        if limit > STREAMS_MAX {
            return Err(TransportError::new(
                TransportErrorCode::FrameEncoding,
                "more streams than ids can express",
            ));
        }
        self.raise_stream_limit(limit);
        Ok(())
    }

    /// Processes a RESET_STREAM.
    ///
    /// # Errors
    /// Returns an error if the stream was not opened and the peer may not open it, or if the final size is invalid.
    pub fn on_reset_stream(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: u64,
    ) -> Result<(), TransportError> {
        if self.enter(id)?
            && let Some(stream) = self.streams.get_mut(&id)
        {
            let is_news =
                stream.receive.on_reset(&mut self.pool, &mut self.receive_credit, code, final_size)?;
            self.after_receiving(id, is_news);
        }
        Ok(())
    }

    /// Processes a STOP_SENDING.
    ///
    /// # Errors
    /// Returns an error if the stream was not opened and the peer may not open it.
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), TransportError> {
        if self.enter(id)? && self.give_up(id, ResetCause::Stopped(code)) {
            self.tell_application(id, event_flag::STOPPED);
        }
        Ok(())
    }

    /// A control frame was acknowledged.
    pub fn on_control_acked(&mut self, control: &Control) {
        let Control::ResetStream { id, .. } = *control else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.send.on_reset_acked();
        self.release_if_over(id);
    }
}

impl SymbolSink for Streams {
    fn room(&self) -> u64 {
        self.room()
    }

    fn on_symbol_decoded(&mut self, symbol: &[u8], _arrived: Arrived) -> Result<(), TransportError> {
        self.on_symbol_decoded(symbol)
    }
}
