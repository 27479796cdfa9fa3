//! A record of all streams: what was written, what was read, and how each direction ended. The applications of both
//! sides report to it, and what one side reads is compared with what the other side wrote.
//!
//! Invariant, checked at every read: the bytes read are a prefix of the bytes written.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use ctcp_base::mix;
use ctcp_proto::fuzzing::SEND_BUFFER_MAX;
use ctcp_proto::{PublicKey, Role, StreamId};

use crate::application::contents::Contents;
use crate::application::script::Script;

/// Identifies a connection by its client and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionName {
    /// The client.
    pub client: PublicKey,
    /// The number of the client's connection, counted from 0.
    pub number: u32,
}

/// Identifies one direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowName {
    /// The connection.
    pub connection: ConnectionName,
    /// The stream.
    pub stream: StreamId,
    /// The writer.
    pub writer: Role,
}

/// An index in the ledger that stands for a [`FlowName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId(usize);

/// The record of one direction of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes accepted from the writer by the transport.
    pub written: u64,
    /// Bytes read by the reader.
    pub read: u64,
    /// Whether the writer finished the stream.
    pub is_finished: bool,
    /// The code with which the writer reset the stream.
    pub reset: Option<u64>,
    /// The code with which the reader stopped the stream.
    pub stop: Option<u64>,
}

/// The records of all streams.
#[derive(Clone, Debug)]
pub struct Ledger {
    seed: u64,
    /// The maximum number of bytes of a stream that may be written but not read: credit plus send buffer.
    unread_max: u64,
    /// Number of connections begun by each client.
    attempts: BTreeMap<PublicKey, u32>,
    /// The connection of a client that used each address. No address is used for two connections.
    addresses: BTreeMap<SocketAddr, ConnectionName>,
    /// Scripts of connections that have their own.
    scripts: BTreeMap<ConnectionName, Arc<Script>>,
    flows: Vec<(FlowName, Contents, Flow)>,
    ids: BTreeMap<FlowName, FlowId>,
    checks_contents: bool,
    read: u64,
    violations: Vec<String>,
}

impl Ledger {
    /// Creates an empty ledger. `stream_credit` is the most that readers in this simulation grant.
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

    /// Records that a client begins a connection from this address.
    pub fn on_attempt(&mut self, client: PublicKey, address: SocketAddr) -> ConnectionName {
        let attempts = self.attempts.entry(client).or_default();
        let name = ConnectionName { client, number: *attempts };
        *attempts += 1;
        self.addresses.insert(address, name);
        name
    }

    /// Sets whether contents are derived from a seed and compared when read. Otherwise the same page is written
    /// repeatedly and bytes are only counted. Must be set before anything is written.
    pub fn set_checks_contents(&mut self, checks_contents: bool) {
        self.checks_contents = checks_contents;
    }

    /// Returns whether contents are compared; see [`Self::set_checks_contents`].
    #[must_use]
    pub fn checks_contents(&self) -> bool {
        self.checks_contents
    }

    /// Records that a connection plays its own script instead of its hosts'.
    pub fn on_script(&mut self, name: ConnectionName, script: Arc<Script>) {
        self.scripts.insert(name, script);
    }

    /// Returns the connection's own script, if it has one.
    #[must_use]
    pub fn script_of(&self, name: ConnectionName) -> Option<&Arc<Script>> {
        self.scripts.get(&name)
    }

    /// Records that a client with its newest connection now has another address.
    pub fn on_address(&mut self, client: PublicKey, address: SocketAddr) {
        if let Some(number) = self.attempts.get(&client).and_then(|attempts| attempts.checked_sub(1)) {
            self.addresses.insert(address, ConnectionName { client, number });
        }
    }

    /// Returns the connection that uses this address.
    #[must_use]
    pub fn name_of(&self, address: SocketAddr) -> Option<ConnectionName> {
        self.addresses.get(&address).copied()
    }

    /// Returns the contents of this direction of a stream.
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

    /// Returns the id of a direction and creates its record if there is none. Both sides call this.
    pub fn open(&mut self, name: FlowName) -> FlowId {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let id = FlowId(self.flows.len());
        self.ids.insert(name, id);
        self.flows.push((name, self.contents(name), Flow::default()));
        id
    }

    /// Returns the record of one direction.
    #[must_use]
    pub fn flow(&self, id: FlowId) -> Flow {
        self.flows[id.0].2
    }

    /// Returns the name of one direction.
    #[must_use]
    pub fn name(&self, id: FlowId) -> FlowName {
        self.flows[id.0].0
    }

    /// Returns all directions of all streams, sorted by name.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowName, &Flow)> {
        self.ids.iter().map(|(name, id)| (name, &self.flows[id.0].2))
    }

    /// Fills `out` with the writer's bytes starting at `offset`.
    pub fn fill(&self, id: FlowId, offset: u64, out: &mut [u8]) {
        self.flows[id.0].1.fill(offset, out);
    }

    /// Records that the transport accepted `count` more bytes.
    pub fn on_written(&mut self, id: FlowId, count: u64) {
        let (name, _, flow) = &mut self.flows[id.0];
        flow.written += count;
        let unread = flow.written - flow.read;
        if unread > self.unread_max && flow.stop.is_none() {
            let what = format!("{name:?}: {unread} bytes are accepted from the writer but not read");
            self.violations.push(what);
        }
    }

    /// Records that the writer finished the stream.
    pub fn on_finish(&mut self, id: FlowId) {
        self.flows[id.0].2.is_finished = true;
    }

    /// Records that the writer reset the stream.
    pub fn on_reset(&mut self, id: FlowId, code: u64) {
        self.flows[id.0].2.reset = Some(code);
    }

    /// Records that the reader stopped the stream.
    pub fn on_stop(&mut self, id: FlowId, code: u64) {
        self.flows[id.0].2.stop = Some(code);
    }

    /// Records and checks bytes that the reader got.
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

    /// Checks the end of the stream as reported to the reader.
    pub fn on_end_read(&mut self, id: FlowId) {
        let (name, flow) = (self.name(id), self.flow(id));
        if !flow.is_finished || flow.read != flow.written {
            self.violations.push(format!("{name:?}: ended for the reader, but {flow:?}"));
        }
    }

    /// Checks a reset as reported to the reader.
    pub fn on_reset_read(&mut self, id: FlowId, code: u64) {
        let (name, flow) = (self.name(id), self.flow(id));
        if flow.reset != Some(code) {
            self.violations.push(format!("{name:?}: reset with code {code} for the reader, but {flow:?}"));
        }
    }

    /// Checks a stop as reported to the writer.
    pub fn on_stop_heard(&mut self, id: FlowId, code: u64) {
        let (name, flow) = (self.name(id), self.flow(id));
        if flow.stop != Some(code) {
            self.violations.push(format!("{name:?}: stopped with code {code} for the writer, but {flow:?}"));
        }
    }

    /// Checks the arrival of everything as reported to the writer.
    pub fn on_arrival_heard(&mut self, id: FlowId) {
        let (name, flow) = (self.name(id), self.flow(id));
        if !flow.is_finished {
            self.violations.push(format!("{name:?}: finished for the writer, but {flow:?}"));
        }
    }

    /// Records any other violation.
    pub fn complain(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Returns the violations found so far.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Returns the bytes read so far from all streams.
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
    fn reading_more_than_was_written_is_a_violation() {
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
    fn a_writer_too_far_ahead_of_its_reader_is_a_violation() {
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
    fn every_direction_of_every_stream_has_its_own_contents() {
        let ledger = Ledger::new(1, 1_000);
        let other_way = FlowName { writer: Role::Server, ..flow() };
        let other_stream = FlowName { stream: StreamId(8), ..flow() };
        assert_ne!(ledger.contents(flow()), ledger.contents(other_way));
        assert_ne!(ledger.contents(flow()), ledger.contents(other_stream));
    }
}
