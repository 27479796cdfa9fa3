//! The books of all streams: what was written, what was read, how each direction ended. The applications of both
//! sides report here, and what one reads is judged against what the other wrote.
//!
//! Invariant, checked with every read: what a reader got is a prefix of what the writer wrote, byte for byte.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use ctcp_base::mix;
use ctcp_proto::fuzzing::SEND_BUFFER_MAX;
use ctcp_proto::{PublicKey, Role, StreamId};

use crate::application::contents::Contents;
use crate::application::script::Script;

/// Names a connection: a client's n-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionName {
    /// Whose.
    pub client: PublicKey,
    /// Which, from 0.
    pub number: u32,
}

/// Names one direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowName {
    /// The connection.
    pub connection: ConnectionName,
    /// The stream.
    pub stream: StreamId,
    /// The writer.
    pub writer: Role,
}

/// A place in the books: short for a [`FlowName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(usize);

/// The books of one direction of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes that the transport took from the writer.
    pub written: u64,
    /// Bytes that the reader got.
    pub read: u64,
    /// The writer finished.
    pub is_finished: bool,
    /// The writer gave up with this code.
    pub reset: Option<u64>,
    /// The reader stopped with this code.
    pub stop: Option<u64>,
}

/// All books.
#[derive(Clone, Debug)]
pub struct Ledger {
    seed: u64,
    /// Most bytes of a stream that may be written and not read: credit and send buffer.
    unread_max: u64,
    /// How many connections a client has begun.
    attempts: BTreeMap<PublicKey, u32>,
    /// Which connection of a client was at an address: no address is used for two.
    addresses: BTreeMap<SocketAddr, ConnectionName>,
    /// What connections play that have a script of their own.
    scripts: BTreeMap<ConnectionName, Arc<Script>>,
    flows: Vec<(FlowName, Contents, Flow)>,
    ids: BTreeMap<FlowName, FlowId>,
    checks_contents: bool,
    read: u64,
    violations: Vec<String>,
}

impl Ledger {
    /// Empty books. `stream_credit` is what the readers of this simulation grant at most.
    #[must_use]
    pub fn new(seed: u64, stream_credit: u64) -> Self {
        Self {
            seed,
            unread_max: stream_credit + SEND_BUFFER_MAX as u64,
            attempts: BTreeMap::new(),
            addresses: BTreeMap::new(),
            scripts: BTreeMap::new(),
            flows: Vec::new(),
            ids: BTreeMap::new(),
            checks_contents: true,
            read: 0,
            violations: Vec::new(),
        }
    }

    /// A client begins a connection from this address.
    pub fn on_attempt(&mut self, client: PublicKey, address: SocketAddr) -> ConnectionName {
        let attempts = self.attempts.entry(client).or_default();
        let name = ConnectionName { client, number: *attempts };
        *attempts += 1;
        self.addresses.insert(address, name);
        name
    }

    /// Whether what is written follows from a seed and what is read is compared with it; otherwise the same page is written over
    /// and over, and bytes are only counted. To be set before anything is written.
    pub fn set_checks_contents(&mut self, checks_contents: bool) {
        self.checks_contents = checks_contents;
    }

    /// See [`Self::set_checks_contents`].
    #[must_use]
    pub fn checks_contents(&self) -> bool {
        self.checks_contents
    }

    /// A connection plays a script of its own, not that of its hosts.
    pub fn on_script(&mut self, name: ConnectionName, script: Arc<Script>) {
        self.scripts.insert(name, script);
    }

    /// The script of its own that a connection plays, if it has one.
    #[must_use]
    pub fn script_of(&self, name: ConnectionName) -> Option<&Arc<Script>> {
        self.scripts.get(&name)
    }

    /// A client, with its newest connection, is at another address now.
    pub fn on_address(&mut self, client: PublicKey, address: SocketAddr) {
        if let Some(number) = self.attempts.get(&client).and_then(|attempts| attempts.checked_sub(1)) {
            self.addresses.insert(address, ConnectionName { client, number });
        }
    }

    /// Whose connection comes from this address.
    #[must_use]
    pub fn name_of(&self, address: SocketAddr) -> Option<ConnectionName> {
        self.addresses.get(&address).copied()
    }

    /// What this direction of a stream carries.
    #[must_use]
    pub fn contents(&self, flow: FlowName) -> Contents {
        let mut seed = self.seed;
        for word in flow.connection.client.0.chunks(8) {
            let word = word.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            seed = mix(seed ^ word);
        }
        seed = mix(seed ^ u64::from(flow.connection.number));
        seed = mix(seed ^ flow.stream.0);
        Contents::new(seed ^ u64::from(flow.writer == Role::Server))
    }

    /// Opens the books of a direction, or finds them open: both sides do this.
    pub fn open(&mut self, name: FlowName) -> FlowId {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let id = FlowId(self.flows.len());
        self.ids.insert(name, id);
        self.flows.push((name, self.contents(name), Flow::default()));
        id
    }

    /// The books of one direction.
    #[must_use]
    pub fn flow(&self, id: FlowId) -> Flow {
        self.flows[id.0].2
    }

    /// The name of one direction.
    #[must_use]
    pub fn name(&self, id: FlowId) -> FlowName {
        self.flows[id.0].0
    }

    /// Every direction of every stream, by its name.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowName, &Flow)> {
        self.ids.iter().map(|(name, id)| (name, &self.flows[id.0].2))
    }

    /// Writes into `out` what the writer sends from its byte number `offset` on.
    pub fn fill(&self, id: FlowId, offset: u64, out: &mut [u8]) {
        self.flows[id.0].1.fill(offset, out);
    }

    /// The transport took `count` more bytes.
    pub fn on_written(&mut self, id: FlowId, count: u64) {
        let (name, _, flow) = &mut self.flows[id.0];
        flow.written += count;
        let unread = flow.written - flow.read;
        if unread > self.unread_max && flow.stop.is_none() {
            let what = format!("{name:?}: {unread} bytes are taken from the writer and not read");
            self.violations.push(what);
        }
    }

    /// The writer finished.
    pub fn on_finish(&mut self, id: FlowId) {
        self.flows[id.0].2.is_finished = true;
    }

    /// The writer gave up.
    pub fn on_reset(&mut self, id: FlowId, code: u64) {
        self.flows[id.0].2.reset = Some(code);
    }

    /// The reader wants no more.
    pub fn on_stop(&mut self, id: FlowId, code: u64) {
        self.flows[id.0].2.stop = Some(code);
    }

    /// The reader got these bytes.
    pub fn on_read(&mut self, id: FlowId, data: &[u8]) {
        let (name, contents, flow) = &mut self.flows[id.0];
        let offset = flow.read;
        flow.read += data.len() as u64;
        self.read += data.len() as u64;
        if flow.read > flow.written {
            let what = format!("{name:?}: read {} of {} bytes written", flow.read, flow.written);
            self.violations.push(what);
        }
        if !self.checks_contents {
            return;
        }
        if let Some(place) = contents.first_difference(offset, data) {
            self.violations.push(format!("{name:?}: the byte at {place} is not what was written"));
        }
    }

    /// The reader was told that this was the end.
    pub fn on_end_read(&mut self, id: FlowId) {
        let (name, flow) = (self.name(id), self.flow(id));
        if !flow.is_finished || flow.read != flow.written {
            self.violations.push(format!("{name:?}: ended for the reader, but {flow:?}"));
        }
    }

    /// The reader was told that the writer gave up.
    pub fn on_reset_read(&mut self, id: FlowId, code: u64) {
        let (name, flow) = (self.name(id), self.flow(id));
        if flow.reset != Some(code) {
            self.violations.push(format!("{name:?}: reset with code {code} for the reader, but {flow:?}"));
        }
    }

    /// The writer was told that the reader wants no more.
    pub fn on_stop_heard(&mut self, id: FlowId, code: u64) {
        let (name, flow) = (self.name(id), self.flow(id));
        if flow.stop != Some(code) {
            self.violations.push(format!("{name:?}: stopped with code {code} for the writer, but {flow:?}"));
        }
    }

    /// The writer was told that everything has arrived.
    pub fn on_arrival_heard(&mut self, id: FlowId) {
        let (name, flow) = (self.name(id), self.flow(id));
        if !flow.is_finished {
            self.violations.push(format!("{name:?}: finished for the writer, but {flow:?}"));
        }
    }

    /// Something else that must not be.
    pub fn complain(&mut self, what: String) {
        self.violations.push(what);
    }

    /// What must not be and was.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Bytes read so far, of all streams.
    #[must_use]
    pub fn total_read(&self) -> u64 {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowName {
        let connection = ConnectionName { client: PublicKey([1; 32]), number: 0 };
        FlowName { connection, stream: StreamId(4), writer: Role::Client }
    }

    fn books() -> (Ledger, FlowId) {
        let mut ledger = Ledger::new(1, 1_000);
        let id = ledger.open(flow());
        (ledger, id)
    }

    fn bytes(ledger: &Ledger, count: usize) -> Vec<u8> {
        let mut data = vec![0; count];
        ledger.contents(flow()).fill(0, &mut data);
        data
    }

    #[test]
    fn a_prefix_of_what_was_written_is_fine_and_more_is_not() {
        let (mut ledger, id) = books();
        ledger.on_written(id, 10);
        let data = bytes(&ledger, 11);
        ledger.on_read(id, &data[..10]);
        assert!(ledger.violations().is_empty());
        ledger.on_read(id, &data[10..]);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn a_wrong_byte_an_early_end_and_an_invented_reset_are_violations() {
        let (mut ledger, id) = books();
        ledger.on_written(id, 10);
        let mut data = bytes(&ledger, 5);
        data[3] ^= 1;
        ledger.on_read(id, &data);
        assert_eq!(ledger.violations().len(), 1);
        ledger.on_finish(id);
        ledger.on_end_read(id);
        assert_eq!(ledger.violations().len(), 2);
        ledger.on_reset_read(id, 7);
        ledger.on_stop_heard(id, 7);
        assert_eq!(ledger.violations().len(), 4);
    }

    #[test]
    fn a_writer_that_runs_away_from_its_reader_is_a_violation() {
        let (mut ledger, id) = books();
        ledger.on_written(id, 1_000 + SEND_BUFFER_MAX as u64);
        assert!(ledger.violations().is_empty());
        ledger.on_written(id, 1);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn without_contents_bytes_are_only_counted() {
        let (mut ledger, id) = books();
        ledger.set_checks_contents(false);
        ledger.on_written(id, 10);
        ledger.on_read(id, &[7; 10]);
        assert_eq!((ledger.violations().len(), ledger.total_read()), (0, 10));
        ledger.on_read(id, &[0]);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn every_direction_of_every_stream_has_contents_of_its_own() {
        let ledger = Ledger::new(1, 1_000);
        let other_way = FlowName { writer: Role::Server, ..flow() };
        let other_stream = FlowName { stream: StreamId(8), ..flow() };
        assert_ne!(ledger.contents(flow()), ledger.contents(other_way));
        assert_ne!(ledger.contents(flow()), ledger.contents(other_stream));
    }
}
