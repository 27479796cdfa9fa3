//! What comes from the peer: decoded symbols and control frames.

use super::{Streams, event_flag};
use crate::error::{TransportError, TransportErrorCode};
use crate::id::{StreamId, SymbolIndex};
use crate::stream::control::Control;
use crate::stream::flow_control::STREAMS_MAX;
use crate::stream::send::ResetCause;
use crate::wire::{Malformed, StreamFrame, frames_in_symbol};

impl Streams {
    /// A symbol was decoded: its length field, its content, and any number of the zeros behind it. Symbols come in
    /// any order, each once.
    ///
    /// # Errors
    /// When the peer broke the protocol: the connection ends.
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

    /// A frame names a stream. Opens it (and all below it, RFC 9000 section 2.1) if it is the peer's and new.
    /// Returns false for one that is over.
    fn enter(&mut self, id: StreamId) -> Result<bool, TransportError> {
        const NOT_OPENED: TransportError =
            TransportError::new(TransportErrorCode::StreamState, "a frame for a stream that nobody opened");
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

    /// The peer decoded all symbols below `oldest_undecoded`.
    pub fn on_peer_decoded_below(&mut self, oldest_undecoded: SymbolIndex) {
        while let Some(&(last_symbol, id)) = self.in_flight.first()
            && last_symbol < oldest_undecoded
        {
            self.in_flight.pop_first();
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            stream.send.on_all_decoded();
            self.tell_application(id, event_flag::FINISHED);
        }
    }

    /// MAX_DATA.
    ///
    /// # Errors
    /// None today; the same shape as the other frames.
    pub fn on_max_data(&mut self, limit: u64) -> Result<(), TransportError> {
        self.send_credit.raise(limit);
        Ok(())
    }

    /// MAX_STREAM_DATA.
    ///
    /// # Errors
    /// When the stream is one that nobody opened or may open.
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

    /// MAX_STREAMS.
    ///
    /// # Errors
    /// When the number is larger than ids can express.
    pub fn on_max_streams(&mut self, limit: u64) -> Result<(), TransportError> {
        if limit > STREAMS_MAX {
            return Err(TransportError::new(
                TransportErrorCode::FrameEncoding,
                "more streams than ids can name",
            ));
        }
        self.raise_stream_limit(limit);
        Ok(())
    }

    /// RESET_STREAM.
    ///
    /// # Errors
    /// When the stream is one that nobody opened or may open, or the final size cannot be.
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

    /// STOP_SENDING.
    ///
    /// # Errors
    /// When the stream is one that nobody opened or may open.
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), TransportError> {
        if self.enter(id)? && self.give_up(id, ResetCause::Stopped(code)) {
            self.tell_application(id, event_flag::STOPPED);
        }
        Ok(())
    }

    /// A control frame of ours arrived.
    pub fn on_control_acked(&mut self, control: &Control) {
        let Control::ResetStream { id, .. } = *control else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.send.on_reset_acked();
        self.release_if_over(id);
    }
}
