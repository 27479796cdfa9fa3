//! One end: the streams under test, the application above them, and what it sent that is still in flight.

use std::collections::BTreeMap;

use ctcp_proto::fuzzing::{Control, Interactive, Lane, Pace, StreamEvent, Streams, StreamsConfig};
use ctcp_proto::{OpenError, ReadError, ReadOutcome, Role, StreamId, WriteError};

/// A pace on which readers are fast, so that windows grow.
const PACE: Pace = Pace { now: ctcp_base::Instant::ZERO, rtt: core::time::Duration::from_secs(1) };

/// How a stream ended for an application that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Reset(u64),
    StoppedByUs,
}

/// The state of an application for one of its streams.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    written: u64,
    finished: bool,
    reset: Option<u64>,
    /// The peer stopped this side's writing with this code.
    stopped: Option<u64>,
    /// The peer has received all data.
    delivered: bool,
    read: u64,
    end: Option<End>,
    /// This side's own stop.
    stop: Option<u64>,
    /// Whether to try a read: none was blocked since the last event.
    may_read: bool,
    /// The last write was accepted only in part, and no event followed yet.
    waits_for_room: bool,
}

impl Half {
    fn new() -> Self {
        Self {
            written: 0,
            finished: false,
            reset: None,
            stopped: None,
            delivered: false,
            read: 0,
            end: None,
            stop: None,
            may_read: true,
            waits_for_room: false,
        }
    }

    fn is_writable(&self) -> bool {
        !self.finished && self.reset.is_none() && self.stopped.is_none()
    }
}

/// The byte that `role` writes at `offset` of stream `id`.
fn byte_at(id: StreamId, role: Role, offset: u64) -> u8 {
    (id.0 * 31 + offset * 7 + offset / 256 + if role == Role::Client { 0 } else { 101 }) as u8
}

/// One end of the connection.
pub(crate) struct Side {
    pub(crate) streams: Streams,
    /// Sent and not decoded by the peer.
    pub(crate) symbols: Vec<(Lane, u64, Vec<u8>)>,
    /// Sent, and neither acknowledged nor lost.
    pub(crate) controls: Vec<Control>,
    role: Role,
    config: StreamsConfig,
    next_symbols: [u64; 2],
    halves: BTreeMap<StreamId, Half>,
    /// An open failed at the limit, and no event followed yet.
    waits_for_streams: bool,
    /// An accept returned none, and no event followed yet.
    waits_for_peer: bool,
}

impl Side {
    /// Both sides have the same configuration.
    pub(crate) fn new(role: Role, config: StreamsConfig, interactive: Interactive) -> Self {
        let mut streams = Streams::new(role, config);
        streams.set_interactive(interactive);
        streams.set_peer_limits(config.max_data, config.max_stream_data, config.max_streams);
        Self {
            streams,
            symbols: Vec::new(),
            controls: Vec::new(),
            role,
            config,
            next_symbols: [0; 2],
            halves: BTreeMap::new(),
            waits_for_streams: false,
            waits_for_peer: false,
        }
    }

    /// A stream that the application knows.
    pub(crate) fn stream(&self, which: u8) -> Option<StreamId> {
        self.halves.keys().nth(usize::from(which) % self.halves.len().max(1)).copied()
    }

    pub(crate) fn half(&self, id: StreamId) -> Option<&Half> {
        self.halves.get(&id)
    }

    pub(crate) fn open(&mut self) {
        match self.streams.open() {
            Ok(id) => {
                assert_eq!(id.initiator(), Some(self.role));
                assert!(self.halves.insert(id, Half::new()).is_none(), "{id} was opened before");
            }
            Err(OpenError::LimitReached) => self.waits_for_streams = true,
        }
    }

    pub(crate) fn accept(&mut self) {
        match self.streams.accept() {
            Some(id) => {
                assert_eq!(id.initiator(), Some(self.role.peer()));
                assert!(self.halves.insert(id, Half::new()).is_none(), "{id} was accepted before");
            }
            None => self.waits_for_peer = true,
        }
    }

    pub(crate) fn write(&mut self, id: StreamId, amount: usize) {
        let Some(half) = self.halves.get_mut(&id) else { return };
        let data: Vec<u8> = (half.written..).map(|at| byte_at(id, self.role, at)).take(amount).collect();
        match self.streams.write(id, &data) {
            Ok(taken) => {
                assert!(!half.finished && half.reset.is_none(), "{id} accepted bytes after its end");
                assert!(taken > 0 || amount == 0);
                half.written += taken as u64;
                half.waits_for_room = taken < amount;
            }
            Err(WriteError::Finished) => assert!(half.finished),
            Err(WriteError::Reset) => assert!(half.reset.is_some()),
            Err(WriteError::Stopped(code)) => half.stopped = Some(code),
            Err(WriteError::UnknownStream) => {
                assert!(half.end.is_some() && !half.is_writable(), "{id} vanished");
            }
            Err(WriteError::Blocked) => half.waits_for_room = true,
        }
    }

    pub(crate) fn finish(&mut self, id: StreamId) {
        let result = self.streams.finish(id);
        let Some(half) = self.halves.get_mut(&id) else { return };
        match result {
            Ok(()) => {
                assert!(half.is_writable() || half.stopped.is_some());
                half.finished = true;
            }
            Err(WriteError::Stopped(code)) => half.stopped = Some(code),
            Err(_) => assert!(!half.is_writable()),
        }
    }

    pub(crate) fn reset(&mut self, id: StreamId, code: u64) {
        let is_known = self.streams.reset(id, code).is_ok();
        let Some(half) = self.halves.get_mut(&id) else { return };
        if is_known && half.reset.is_none() && half.stopped.is_none() && !half.delivered {
            half.reset = Some(code);
        }
    }

    pub(crate) fn stop(&mut self, id: StreamId, code: u64) {
        let is_known = self.streams.stop(id, code).is_ok();
        let Some(half) = self.halves.get_mut(&id) else { return };
        if is_known && half.end.is_none() {
            (half.stop, half.end) = (Some(code), Some(End::StoppedByUs));
        }
    }

    /// Reads, and compares the bytes with those of `writer`.
    pub(crate) fn read(&mut self, id: StreamId, amount: usize, writer: Option<&Half>) {
        let mut out = vec![0; amount];
        let outcome = self.streams.read(id, &mut out);
        let Some(half) = self.halves.get_mut(&id) else { return };
        match outcome {
            Ok(ReadOutcome::Data(count)) => {
                assert!(half.end.is_none() && (count > 0 || amount == 0));
                let expected = (half.read..).map(|at| byte_at(id, self.role.peer(), at));
                assert!(out[..count].iter().copied().eq(expected.take(count)), "{id}: other bytes");
                half.read += count as u64;
                let writer = writer.expect("bytes came from an application");
                assert!(half.read <= writer.written, "{id}: more read than written");
            }
            Ok(ReadOutcome::Blocked) => {
                assert_eq!(half.end, None);
                half.may_read = false;
            }
            Ok(ReadOutcome::Finished) => {
                let writer = writer.expect("an application finished");
                assert!(writer.finished && half.read == writer.written, "{id} was cut");
                half.end = Some(End::Finished);
            }
            Err(ReadError::Reset(code)) => {
                assert!(matches!(half.end, None | Some(End::Reset(_))));
                half.end = Some(End::Reset(code));
            }
            Err(ReadError::Stopped) => assert_eq!(half.end, Some(End::StoppedByUs)),
            Err(ReadError::UnknownStream) => assert!(half.end.is_some(), "{id} vanished"),
        }
    }

    pub(crate) fn fill_symbol(&mut self, lane: Lane, capacity: usize) {
        let mut symbol = Vec::new();
        let has_data = self.streams.has_data_in(lane);
        let queued = self.streams.queued_bytes();
        let next = &mut self.next_symbols[lane as usize];
        assert_eq!(has_data, self.streams.fill_symbol(lane, *next, capacity, &mut symbol));
        assert!(
            has_data || queued == 0 || self.streams.has_data_to_send() || self.streams.is_blocked_by_credit()
        );
        if has_data {
            assert!(symbol.len() <= capacity);
            self.symbols.push((lane, *next, symbol));
            *next += 1;
        }
    }

    pub(crate) fn oldest_undecoded(&self, lane: Lane) -> u64 {
        let indices = self.symbols.iter().filter(|(other, ..)| *other == lane).map(|(_, index, _)| *index);
        indices.min().unwrap_or(self.next_symbols[lane as usize])
    }

    pub(crate) fn send_control(&mut self) {
        let has_control = self.streams.has_control();
        let control = self.streams.poll_control(PACE);
        assert!(has_control || control.is_none());
        self.controls.extend(control);
    }

    pub(crate) fn take_event(&mut self) {
        let Some(event) = self.streams.poll_event() else { return };
        match event {
            StreamEvent::Opened => self.waits_for_peer = false,
            StreamEvent::Available => self.waits_for_streams = false,
            StreamEvent::Readable(id) => {
                self.halves.get_mut(&id).expect("accepted or opened").may_read = true;
            }
            StreamEvent::Writable(id) => {
                self.halves.get_mut(&id).expect("it was written by this side").waits_for_room = false;
            }
            StreamEvent::Finished(id) => {
                let half = self.halves.get_mut(&id).expect("it was finished by this side");
                assert!(half.finished && !half.delivered);
                // A reset after the finish was too late to change anything.
                (half.delivered, half.reset) = (true, None);
            }
            StreamEvent::Stopped { id, code } => {
                let half = self.halves.get_mut(&id).expect("accepted or opened");
                assert!(half.stopped.is_none_or(|known| known == code));
                half.stopped = Some(code);
            }
        }
    }

    /// The application finishes: takes its events, accepts streams, and finishes its writing as soon as there is room.
    pub(crate) fn wind_up(&mut self) {
        for _ in 0..1000 {
            self.take_event();
        }
        while !self.waits_for_peer {
            self.accept();
        }
        let ids: Vec<StreamId> = self.halves.keys().copied().collect();
        for id in ids {
            if self.halves[&id].is_writable() && !self.halves[&id].waits_for_room {
                self.write(id, 100);
            }
            if self.halves[&id].is_writable() && !self.halves[&id].waits_for_room {
                self.finish(id);
            }
        }
    }

    /// Streams on which to try a read.
    pub(crate) fn readable(&self) -> Vec<StreamId> {
        let waits = |half: &Half| half.may_read && half.end.is_none();
        self.halves.iter().filter(|(_, half)| waits(half)).map(|(&id, _)| id).collect()
    }

    pub(crate) fn check_memory(&self) {
        assert!(self.streams.received_bytes_held() as u64 <= self.config.max_data_ceiling);
        let unread: usize = self.halves.len();
        assert!(
            self.streams.open_streams()
                <= unread + self.config.max_streams.max(self.config.max_streams_ceiling) as usize
        );
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        let is_over = |half: &Half| half.end.is_some() && !half.is_writable();
        self.halves.values().all(is_over)
            && self.streams.open_streams() == 0
            && !self.streams.has_control()
            && self.symbols.is_empty()
            && self.controls.is_empty()
            && !self.waits_for_streams
    }

    pub(crate) fn check_end(&self, peer: &Self) {
        assert_eq!(self.streams.open_streams(), 0, "streams are left: {:?}", self.halves);
        assert_eq!(self.streams.queued_bytes(), 0);
        assert_eq!(self.streams.received_bytes_held(), 0);
        assert!(
            self.is_at_rest(),
            "control left: {}, waits for streams: {}, {:?}",
            self.streams.has_control(),
            self.waits_for_streams,
            self.halves
        );
        // All streams have closed, so the peer may open streams again and was notified if it waited.
        assert!(!self.waits_for_streams, "no event said that streams may be opened again");
        for (id, half) in &self.halves {
            let Some(writer) = peer.half(*id) else {
                // The peer never learnt of it: this side opened it, and there was nothing to send.
                panic!("{id} is not known to the peer");
            };
            match half.end.expect("at rest") {
                End::Finished => assert!(writer.finished && half.read == writer.written),
                End::Reset(code) => assert_eq!(writer.reset.or(writer.stopped), Some(code)),
                End::StoppedByUs => {}
            }
            if writer.stopped.is_some() {
                assert_eq!(writer.stopped, half.stop);
            }
            assert!(writer.delivered || writer.reset.is_some() || writer.stopped.is_some());
        }
    }
}
