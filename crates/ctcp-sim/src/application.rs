//! An application that plays its part of a script on one connection. Like a real application, it is driven by events
//! alone. It reads until it is blocked and then waits for `Readable`. It writes until it is blocked and then waits for
//! `Writable`. A lost event therefore shows up as a stream that never ends.

mod chatter;
pub mod contents;
pub mod script;
mod task;
pub mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::{Connection, ConnectionError, Event, OpenError, Role, StreamId};

use crate::ledger::{ConnectionName, Ledger};
use chatter::Chatter;
use script::Script;
use task::{Call, Task};

pub(crate) use task::SCRATCH;

/// One side of a scripted connection.
#[derive(Debug)]
pub struct Application {
    script: Arc<Script>,
    role: Role,
    /// The name of the connection. A client knows it from the start, a server once the connection is established.
    name: Option<ConnectionName>,
    /// When the connection was established.
    connected: Option<Instant>,
    closed: Option<ConnectionError>,
    tasks: BTreeMap<StreamId, Task>,
    /// Number of streams of the script opened by this side.
    opened: usize,
    /// Whether the peer's stream limit is reached.
    opener_waits: bool,
    /// Streams that may be able to make progress, unordered and with duplicates.
    ready: Vec<StreamId>,
    /// Streams that pause, by the end of the pause.
    pauses: BTreeSet<(Instant, StreamId)>,
    /// Streams that are done.
    over: BTreeSet<StreamId>,
    /// Since when all streams opened so far are done.
    idle_since: Option<Instant>,
    /// Bytes read from all streams.
    read: u64,
    chatter: Chatter,
    /// Number of paths opened and closed.
    path_events: u64,
}

/// The environment of a call of an application.
pub(crate) struct Drive<'a> {
    pub(crate) now: Instant,
    pub(crate) connection: &'a mut Connection,
    pub(crate) ledger: &'a mut Ledger,
    /// Buffer for reads, [`SCRATCH`] bytes.
    pub(crate) scratch: &'a mut [u8],
}

/// The result of driving an application.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Driven {
    /// Number of events handled.
    pub(crate) events: u64,
    /// Whether it ran a stream.
    pub(crate) has_acted: bool,
}

impl Application {
    /// Creates the application of one side of the script. A client's application gets the name of its connection.
    #[must_use]
    pub fn new(script: Arc<Script>, role: Role, name: Option<ConnectionName>) -> Self {
        Self {
            script,
            role,
            name,
            connected: None,
            closed: None,
            tasks: BTreeMap::new(),
            opened: 0,
            opener_waits: false,
            ready: Vec::new(),
            pauses: BTreeSet::new(),
            over: BTreeSet::new(),
            idle_since: None,
            read: 0,
            chatter: Chatter::default(),
            path_events: 0,
        }
    }

    /// Handles the connection's events and does what the script says and the connection allows. Returns the number of
    /// events, and whether anything was done that may make the connection send.
    pub(crate) fn drive(&mut self, call: &mut Drive<'_>) -> Driven {
        let mut driven = Driven::default();
        while let Some(event) = call.connection.poll_event() {
            driven.events += 1;
            self.on_event(event, call);
        }
        if self.closed.is_some() || self.connected.is_none() {
            return driven;
        }
        self.open_due(call);
        let has_chatted = self.chat(call);
        while let Some(&(time, id)) = self.pauses.first().filter(|(time, _)| *time <= call.now) {
            self.pauses.remove(&(time, id));
            self.ready.push(id);
        }
        driven.has_acted = has_chatted || !self.ready.is_empty();
        let mut ready = core::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        for &id in &ready {
            self.run(id, call);
        }
        // No stream becomes ready while the others run. The memory is reused.
        ready.clear();
        self.ready = ready;
        driven
    }

    /// Returns when it must be driven even if nothing happens on the connection.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.closed.is_some() {
            return None;
        }
        let pause = self.pauses.first().map(|(time, _)| *time);
        let start = self.next_start().filter(|_| !self.opener_waits);
        let message = self.chatter.next(self.script.messages.as_ref());
        let message = self.connected.zip(message).map(|(since, after)| since + after);
        pause.into_iter().chain(start).chain(message).min()
    }

    /// Returns whether its part of the script is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.over.len() == self.script.client.len() + self.script.server.len()
    }

    /// Returns the name of the connection, once it was established.
    #[must_use]
    pub fn name(&self) -> Option<ConnectionName> {
        self.connected.and(self.name)
    }

    /// Returns when the connection was established.
    #[must_use]
    pub fn connected_at(&self) -> Option<Instant> {
        self.connected
    }

    /// Returns why the connection ended, if it has.
    #[must_use]
    pub fn closed(&self) -> Option<&ConnectionError> {
        self.closed.as_ref()
    }

    /// Returns the bytes read so far from all streams.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Returns the number of times that a further path became usable or a path was closed.
    #[must_use]
    pub fn path_events(&self) -> u64 {
        self.path_events
    }

    /// Describes the streams that are not done, for messages.
    #[must_use]
    pub fn unfinished(&self) -> String {
        let opened = format!("{} of {} opened", self.opened, self.script.opened_by(self.role).len());
        let tasks = self.tasks.iter().filter(|(_, task)| !task.is_over());
        let tasks: Vec<String> = tasks.take(8).map(|(id, task)| format!("{id}: {task}")).collect();
        format!("{opened}, {} of {} done; {}", self.over.len(), self.tasks.len(), tasks.join("; "))
    }

    fn on_event(&mut self, event: Event, call: &mut Drive<'_>) {
        let Drive { now, connection, ledger, .. } = call;
        if self.closed.is_some() {
            ledger.complain(format!("{:?}: {event:?} after Closed", self.role));
        }
        if self.connected.is_none() && !matches!(event, Event::Connected | Event::Closed(_)) {
            ledger.complain(format!("{:?}: {event:?} before Connected", self.role));
            return;
        }
        match event {
            Event::Connected if self.connected.is_some() => {
                ledger.complain(format!("{:?}: Connected twice", self.role));
            }
            Event::Connected => {
                self.connected = Some(*now);
                let remote = connection.remote();
                self.name = self.name.or_else(|| remote.and_then(|remote| ledger.name_of(remote)));
                if self.name.is_none() {
                    ledger.complain(format!("{:?}: connected to an unknown address {remote:?}", self.role));
                }
                if let Some(script) = self.name.and_then(|name| ledger.script_of(name)) {
                    self.script = script.clone();
                }
            }
            Event::StreamOpened => self.accept(connection, ledger),
            Event::StreamsAvailable => self.opener_waits = false,
            Event::MessageReceived => {
                self.chatter.receive(self.script.messages.as_ref(), self.role, connection, ledger);
            }
            Event::Readable(id) => self.wake(id, |task| task.on_readable()),
            Event::Writable(id) => self.wake(id, |task| task.on_writable()),
            Event::Finished(id) => self.wake(id, |task| task.on_arrival_heard(ledger)),
            Event::Stopped { id, code } => self.wake(id, |task| task.on_stop_heard(code, ledger)),
            Event::PathOpened(_) | Event::PathClosed(_) => self.path_events += 1,
            Event::Closed(error) => self.closed = Some(error),
            other => ledger.complain(format!("{:?}: an unknown event {other:?}", self.role)),
        }
    }

    fn wake(&mut self, id: StreamId, change: impl FnOnce(&mut Task)) {
        // A stream that has not been accepted yet is handled when it is.
        if let Some(task) = self.tasks.get_mut(&id) {
            change(task);
            self.ready.push(id);
        }
    }

    fn accept(&mut self, connection: &mut Connection, ledger: &mut Ledger) {
        while let Some(id) = connection.accept() {
            let plans = self.script.opened_by(self.role.peer());
            let plan = usize::try_from(id.index()).ok().and_then(|index| plans.get(index));
            match plan.zip(self.name()) {
                Some((plan, name)) if !self.tasks.contains_key(&id) => {
                    self.tasks.insert(id, Task::new(plan, (name, id), self.role, ledger));
                    self.ready.push(id);
                }
                _ => ledger.complain(format!("{:?}: accepted {id}, which is not in the script", self.role)),
            }
        }
    }

    /// Sends the messages that are due. Returns whether there were any.
    fn chat(&mut self, call: &mut Drive<'_>) -> bool {
        let (Some(plan), Some(since)) = (&self.script.messages, self.connected) else { return false };
        let mut has_sent = false;
        while self.chatter.next(Some(plan)).is_some_and(|after| since + after <= call.now) {
            self.chatter.send(call.now, plan, self.role, call.connection, call.ledger);
            has_sent = true;
        }
        has_sent
    }

    fn next_start(&self) -> Option<Instant> {
        let plan = self.script.opened_by(self.role).get(self.opened)?;
        let is_next_in_turn = self.script.in_sequence && self.opened > 0;
        let since = if is_next_in_turn { self.idle_since? } else { self.connected? };
        Some(since + plan.start)
    }

    fn open_due(&mut self, call: &mut Drive<'_>) {
        while !self.opener_waits && self.next_start().is_some_and(|start| start <= call.now) {
            match call.connection.open() {
                Ok(id) => {
                    let plan = &self.script.opened_by(self.role)[self.opened];
                    if let Some(name) = self.name {
                        self.tasks.insert(id, Task::new(plan, (name, id), self.role, call.ledger));
                    }
                    self.opened += 1;
                    self.idle_since = None;
                    self.ready.push(id);
                }
                Err(OpenError::LimitReached) => self.opener_waits = true,
            }
        }
    }

    fn run(&mut self, id: StreamId, drive: &mut Drive<'_>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Drive { now, connection, ledger, scratch } = drive;
        let mut call = Call { now: *now, id, connection, ledger, scratch, read: 0 };
        task.run(&mut call);
        self.read += call.read;
        if task.is_over() {
            self.over.insert(id);
            if self.over.len() == self.tasks.len() {
                self.idle_since.get_or_insert(*now);
            }
        } else if let Some(pause) = task.next_timeout() {
            self.pauses.insert((pause, id));
        }
    }
}
