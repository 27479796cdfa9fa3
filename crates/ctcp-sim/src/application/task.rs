//! One stream of a script, as one side sees it: a direction to write and a direction to read.

use core::fmt;

use ctcp_base::{Instant, mix};
use ctcp_proto::{Connection, ReadError, ReadOutcome, Role, StreamId, WriteError};

use super::script::{End, FlowPlan, StreamPlan};
use crate::ledger::{ConnectionName, FlowId, FlowName, Ledger};

/// Bytes a writer offers and a reader asks for at a time.
pub(crate) const SCRATCH: usize = 16 * 1024;

/// What is written over and over when nobody looks at it. Not zeros: the trailing zeros of a combination are not sent.
static PAGE: [u8; 2 * SCRATCH] = page();

const fn page() -> [u8; 2 * SCRATCH] {
    let mut page = [0; 2 * SCRATCH];
    let mut place = 0;
    while place < SCRATCH {
        let byte = mix(place as u64) as u8;
        page[place] = byte;
        page[place + SCRATCH] = byte;
        place += 1;
    }
    page
}

/// What a task needs of the world.
pub(super) struct Call<'a> {
    pub(super) now: Instant,
    pub(super) id: StreamId,
    pub(super) connection: &'a mut Connection,
    pub(super) ledger: &'a mut Ledger,
    /// For what is read, [`SCRATCH`] bytes.
    pub(super) scratch: &'a mut [u8],
    /// Bytes that were read in this call.
    pub(super) read: u64,
}

/// A stream at work.
#[derive(Debug)]
pub(super) struct Task {
    outgoing: Outgoing,
    incoming: Incoming,
    /// We answer, and not before the request was read.
    waits_for_request: bool,
}

#[derive(Debug)]
struct Outgoing {
    flow: FlowId,
    plan: FlowPlan,
    state: Writing,
    written: u64,
    rest_of_chunk: u64,
    /// Bytes made and not yet taken, from `prepared_from` on: each is made once, however little is taken at a time.
    prepared: Vec<u8>,
    prepared_from: usize,
}

#[derive(Debug)]
struct Incoming {
    flow: FlowId,
    plan: FlowPlan,
    state: Reading,
    read: u64,
    rest_of_chunk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    /// The request is not read.
    NotYet,
    Ready,
    Paused(Instant),
    /// `Writable` will come.
    Blocked,
    /// Everything is written; the end waits for its time.
    Lingering(Instant),
    /// `Finished` will come.
    Finished,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Ready,
    Paused(Instant),
    /// `Readable` will come.
    Blocked,
    Over,
}

impl Task {
    pub(super) fn new(
        plan: &StreamPlan,
        (connection, stream): (ConnectionName, StreamId),
        role: Role,
        ledger: &mut Ledger,
    ) -> Self {
        let is_opener = stream.initiator() == Some(role);
        let (mine, theirs) =
            if is_opener { (&plan.request, &plan.response) } else { (&plan.response, &plan.request) };
        let waits_for_request = plan.in_turn && !is_opener;
        let state = if waits_for_request { Writing::NotYet } else { Writing::Ready };
        let mut flow = |writer| ledger.open(FlowName { connection, stream, writer });
        Self {
            outgoing: Outgoing {
                flow: flow(role),
                plan: mine.clone(),
                state,
                written: 0,
                rest_of_chunk: mine.writing.chunk,
                prepared: Vec::new(),
                prepared_from: 0,
            },
            incoming: Incoming {
                flow: flow(role.peer()),
                plan: theirs.clone(),
                state: Reading::Ready,
                read: 0,
                rest_of_chunk: theirs.reading.chunk,
            },
            waits_for_request,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.outgoing.state == Writing::Over && self.incoming.state == Reading::Over
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let write = match self.outgoing.state {
            Writing::Paused(until) | Writing::Lingering(until) => Some(until),
            _ => None,
        };
        let read = if let Reading::Paused(until) = self.incoming.state { Some(until) } else { None };
        write.into_iter().chain(read).min()
    }

    pub(super) fn on_readable(&mut self) {
        if self.incoming.state == Reading::Blocked {
            self.incoming.state = Reading::Ready;
        }
    }

    pub(super) fn on_writable(&mut self) {
        if self.outgoing.state == Writing::Blocked {
            self.outgoing.state = Writing::Ready;
        }
    }

    pub(super) fn on_arrival_heard(&mut self, ledger: &mut Ledger) {
        ledger.on_arrival_heard(self.outgoing.flow);
        if self.outgoing.state == Writing::Over {
            let name = ledger.name(self.outgoing.flow);
            ledger.complain(format!("{name:?}: Finished comes after the end"));
        }
        self.outgoing.state = Writing::Over;
    }

    pub(super) fn on_stop_heard(&mut self, code: u64, ledger: &mut Ledger) {
        ledger.on_stop_heard(self.outgoing.flow, code);
        self.outgoing.state = Writing::Over;
    }

    pub(super) fn run(&mut self, call: &mut Call<'_>) {
        self.incoming.run(call);
        if self.waits_for_request && self.incoming.state == Reading::Over {
            self.waits_for_request = false;
            if self.outgoing.state == Writing::NotYet {
                self.outgoing.state = Writing::Ready;
            }
        }
        self.outgoing.run(call);
    }
}

impl Outgoing {
    fn run(&mut self, call: &mut Call<'_>) {
        match self.state {
            Writing::Paused(until) if until <= call.now => self.state = Writing::Ready,
            Writing::Lingering(until) if until <= call.now => self.end(call),
            _ => {}
        }
        while self.state == Writing::Ready {
            if self.written == self.plan.size {
                self.end(call);
            } else {
                self.write(call);
            }
        }
    }

    fn write(&mut self, call: &mut Call<'_>) {
        let offered = (self.plan.size - self.written).min(self.rest_of_chunk).min(SCRATCH as u64);
        let data = self.data(usize::try_from(offered).unwrap_or(SCRATCH), call.ledger);
        let offered = data.len() as u64;
        match call.connection.write(call.id, data) {
            Ok(taken) => {
                self.prepared_from += taken;
                let taken = taken as u64;
                if taken == 0 || taken > offered {
                    complain(call, self.flow, &format!("write took {taken} of {offered}"));
                }
                self.written += taken;
                call.ledger.on_written(self.flow, taken);
                self.rest_of_chunk -= taken.min(self.rest_of_chunk);
                if taken < offered {
                    self.state = Writing::Blocked;
                } else if self.rest_of_chunk == 0 && self.written < self.plan.size {
                    self.rest_of_chunk = self.plan.writing.chunk;
                    self.state = Writing::Paused(call.now + self.plan.writing.pause);
                }
            }
            Err(WriteError::Blocked) => self.state = Writing::Blocked,
            // The event that says so is on its way.
            Err(WriteError::Stopped(_)) => self.state = Writing::Finished,
            Err(error) => {
                complain(call, self.flow, &format!("cannot write: {error}"));
                self.state = Writing::Over;
            }
        }
    }

    /// The next bytes to write, at most so many.
    fn data(&mut self, most: usize, ledger: &Ledger) -> &[u8] {
        if !ledger.checks_contents() {
            let from = (self.written % SCRATCH as u64) as usize;
            return &PAGE[from..][..most.min(SCRATCH)];
        }
        if self.prepared_from >= self.prepared.len() {
            self.prepared.resize(most, 0);
            self.prepared_from = 0;
            ledger.fill(self.flow, self.written, &mut self.prepared);
        }
        &self.prepared[self.prepared_from..]
    }

    fn end(&mut self, call: &mut Call<'_>) {
        match self.plan.end {
            End::Finish(wait) if !wait.is_zero() && !matches!(self.state, Writing::Lingering(_)) => {
                self.state = Writing::Lingering(call.now + wait);
            }
            End::Finish(_) => {
                self.state = Writing::Finished;
                call.ledger.on_finish(self.flow);
                match call.connection.finish(call.id) {
                    Ok(()) | Err(WriteError::Stopped(_)) => {}
                    Err(error) => complain(call, self.flow, &format!("cannot finish: {error}")),
                }
            }
            End::Reset(code) => {
                self.state = Writing::Over;
                call.ledger.on_reset(self.flow, code);
                if let Err(error) = call.connection.reset(call.id, code) {
                    complain(call, self.flow, &format!("cannot reset: {error}"));
                }
            }
        }
    }
}

impl Incoming {
    fn run(&mut self, call: &mut Call<'_>) {
        if let Reading::Paused(until) = self.state
            && until <= call.now
        {
            self.state = Reading::Ready;
        }
        while self.state == Reading::Ready {
            if let Some((_, code)) = self.plan.stop.filter(|(after, _)| self.read >= *after) {
                self.stop(call, code);
            } else {
                self.read(call);
            }
        }
    }

    fn read(&mut self, call: &mut Call<'_>) {
        let wanted = usize::try_from(self.rest_of_chunk).unwrap_or(usize::MAX).min(call.scratch.len());
        match call.connection.read(call.id, &mut call.scratch[..wanted]) {
            Ok(ReadOutcome::Data(count)) => {
                if count == 0 {
                    complain(call, self.flow, "read no byte");
                    self.state = Reading::Blocked;
                }
                self.read += count as u64;
                call.read += count as u64;
                call.ledger.on_read(self.flow, &call.scratch[..count]);
                self.rest_of_chunk -= count as u64;
                if self.rest_of_chunk == 0 {
                    self.rest_of_chunk = self.plan.reading.chunk;
                    self.state = Reading::Paused(call.now + self.plan.reading.pause);
                }
            }
            Ok(ReadOutcome::Blocked) => self.state = Reading::Blocked,
            Ok(ReadOutcome::Finished) => {
                call.ledger.on_end_read(self.flow);
                self.state = Reading::Over;
            }
            Err(ReadError::Reset(code)) => {
                call.ledger.on_reset_read(self.flow, code);
                self.state = Reading::Over;
            }
            Err(error) => {
                complain(call, self.flow, &format!("cannot read: {error}"));
                self.state = Reading::Over;
            }
        }
    }

    fn stop(&mut self, call: &mut Call<'_>, code: u64) {
        self.state = Reading::Over;
        call.ledger.on_stop(self.flow, code);
        if let Err(error) = call.connection.stop(call.id, code) {
            complain(call, self.flow, &format!("cannot stop: {error}"));
        }
    }
}

fn complain(call: &mut Call<'_>, flow: FlowId, what: &str) {
    let name = call.ledger.name(flow);
    call.ledger.complain(format!("{name:?}: {what}"));
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outgoing, incoming) = (&self.outgoing, &self.incoming);
        write!(
            formatter,
            "wrote {}/{} {:?} {:?} {:?}, read {}/{} {:?} {:?} {:?}",
            outgoing.written,
            outgoing.plan.size,
            outgoing.state,
            outgoing.plan.end,
            outgoing.plan.stop,
            incoming.read,
            incoming.plan.size,
            incoming.state,
            incoming.plan.end,
            incoming.plan.stop,
        )
    }
}
