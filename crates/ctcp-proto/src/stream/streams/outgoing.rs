//! The sending side: symbols and control frames.

use super::{Stream, Streams, control_flag, event_flag};
use crate::code::SymbolSource;
use crate::id::{StreamId, SymbolIndex};
use crate::stream::control::Control;
use crate::stream::flight::{Ends, Lane};
use crate::stream::flow_control::Pace;
use crate::stream::receive::ReceiveState;
use crate::stream::send::{Packed, SendState};
use crate::wire::SymbolBuilder;

impl Streams {
    /// Whether a symbol could be filled now with at least one byte or the end of a stream.
    #[must_use]
    pub fn has_data_to_send(&self) -> bool {
        self.has_data_in(Lane::Bulk) || self.has_data_in(Lane::Interactive)
    }

    /// The same for one lane.
    #[must_use]
    pub fn has_data_in(&self, lane: Lane) -> bool {
        self.scheduler.next(lane, self.is_connection_blocked()).is_some()
    }

    /// Whether bytes are queued that only the peer's credit keeps from being sent.
    #[must_use]
    pub fn is_blocked_by_credit(&self) -> bool {
        self.queued > 0 && !self.has_data_to_send()
    }

    fn is_connection_blocked(&self) -> bool {
        self.send_credit.available() == 0
    }

    /// Bytes written that are not in symbols, with or without credit.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queued
    }

    /// Fills the symbol `index` of a lane with stream frames. `out` becomes the whole symbol, including its length field, in at most
    /// `capacity` bytes and without trailing zeros. Indices must grow from call to call. Returns false, with `out` empty, if there was
    /// nothing to pack.
    pub fn fill_symbol(
        &mut self,
        lane: Lane,
        index: SymbolIndex,
        capacity: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        self.scheduler.set_symbol_capacity(capacity);
        let ends = self.flight.ends_with(lane, index);
        let mut symbol = SymbolBuilder::reusing(core::mem::take(out), capacity);
        while let Some(id) = self.scheduler.next(lane, self.is_connection_blocked()) {
            let Some(stream) = self.streams.get_mut(&id) else {
                debug_assert!(false, "{id} is queued but does not exist");
                break;
            };
            let packed = stream.send.pack(id, &mut symbol, &mut self.send_credit, &mut self.pool);
            let Some(packed) = packed else { break };
            self.on_packed(id, lane, ends, packed);
        }
        let is_filled = !symbol.is_empty();
        *out = symbol.finish();
        if is_filled {
            self.flight.on_filled(lane, index);
        } else {
            out.clear();
        }
        is_filled
    }

    fn on_packed(&mut self, id: StreamId, lane: Lane, ends: Ends, packed: Packed) {
        self.queued -= packed.bytes;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if lane == Lane::Interactive {
            stream.thin.charge(packed.bytes);
        }
        let sendable = stream.send.sendable();
        let is_interactive =
            lane == Lane::Interactive && stream.thin.is_interactive(self.interactive, self.now, sendable);
        let more = (sendable > 0).then_some(is_interactive);
        self.scheduler.on_packed(id, &mut stream.share, packed.total, more);
        if packed.fin {
            self.flight.insert(id, ends);
        }
        self.wake_writer(id);
    }

    /// Wakes a writer when half of its buffer is free, rather than for every symbol.
    pub(super) fn wake_writer(&mut self, id: StreamId) {
        let limit = self.send_buffer_limit();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let has_room = stream.send.queued() <= stream.send.buffer_limit(limit) / 2;
        if stream.send.state() == SendState::Send && has_room && core::mem::take(&mut stream.writer_waits) {
            self.tell_application(id, event_flag::WRITABLE);
        }
    }

    /// Returns the next control frame to send. Each is returned once, with its latest value.
    pub fn poll_control(&mut self, pace: Pace) -> Option<Control> {
        if core::mem::take(&mut self.is_credit_untold) {
            let ceiling = self.data_ceiling();
            return Some(Control::MaxData(self.receive_credit.announce(pace, ceiling)));
        }
        if core::mem::take(&mut self.peer.is_limit_untold) {
            return Some(Control::MaxStreams(self.peer.allowance.announce()));
        }
        let ceiling = self
            .config
            .max_stream_data_ceiling
            .min(self.receive_credit.share_for_stream(self.data_ceiling()));
        loop {
            let id = self.control.first()?;
            let control =
                self.streams.get_mut(&id).and_then(|stream| take_control(id, stream, pace, ceiling));
            if self.streams.get(&id).is_none_or(|stream| stream.control.is_empty()) {
                self.control.pop();
            }
            if control.is_some() {
                return control;
            }
        }
    }

    /// Whether [`Self::poll_control`] may return a frame.
    #[must_use]
    pub fn has_control(&self) -> bool {
        self.is_credit_untold || self.peer.is_limit_untold || self.control.first().is_some()
    }

    /// A control frame was lost. It is sent again if its value is still the latest and still needed.
    pub fn on_control_lost(&mut self, control: &Control) {
        match *control {
            Control::MaxData(limit) => self.is_credit_untold |= limit == self.receive_credit.limit(),
            Control::MaxStreams(limit) => self.peer.is_limit_untold |= limit == self.peer.allowance.limit(),
            Control::MaxStreamData { id, credit } => {
                self.tell_again(id, control_flag::CREDIT, |stream| credit == stream.receive.limit());
            }
            Control::ResetStream { id, .. } => self.tell_again(id, control_flag::RESET, |_| true),
            Control::StopSending { id, .. } => self.tell_again(id, control_flag::STOP, |_| true),
        }
    }

    fn tell_again(&mut self, id: StreamId, flag: u8, is_latest: impl FnOnce(&Stream) -> bool) {
        if let Some(stream) = self.streams.get_mut(&id)
            && is_latest(stream)
        {
            self.control.set(id, &mut stream.control, flag);
        }
    }
}

/// One lane of the streams, which fills the symbols of a context.
pub(crate) struct Outlet<'a> {
    pub(crate) streams: &'a mut Streams,
    pub(crate) lane: Lane,
}

impl SymbolSource for Outlet<'_> {
    fn has_data(&self) -> bool {
        self.streams.has_data_in(self.lane)
    }

    fn fill_symbol(&mut self, index: SymbolIndex, capacity: usize, out: &mut Vec<u8>) -> bool {
        self.streams.fill_symbol(self.lane, index, capacity, out)
    }
}

/// The next control frame of a stream, or `None` if no flagged frame is needed any more.
fn take_control(id: StreamId, stream: &mut Stream, pace: Pace, ceiling: u64) -> Option<Control> {
    if stream.control.take(control_flag::RESET)
        && let Some(reset) = stream.send.reset_frame(id)
    {
        return Some(reset);
    }
    if stream.control.take(control_flag::STOP)
        && let ReceiveState::Stopped { code } = stream.receive.state()
    {
        return Some(Control::StopSending { id, code });
    }
    if stream.control.take(control_flag::CREDIT)
        && let Some(credit) = stream.receive.announce(pace, ceiling)
    {
        return Some(Control::MaxStreamData { id, credit });
    }
    None
}
