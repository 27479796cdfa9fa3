//! Stand-ins for the parts of ctcp-proto that have not landed, with the signatures agreed upon.
//! This file goes away with the real ones.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::all,
    reason = "stand-ins, replaced by the documented originals"
)]

use core::time::Duration;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ctcp_base::Instant;
use ctcp_proto::{ConnectionError, StreamId};

#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    pub fn public_key(&self) -> PublicKey {
        unimplemented!()
    }
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("SecretKey(..)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileName {
    #[default]
    Default,
    Ctcp,
    Tcp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub name: ProfileName,
}

#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub profile: Profile,
    pub symbol_size_max: u16,
    pub symbol_window: u32,
    pub block_size: u16,
    pub blocks: u16,
    pub connection_credit: u64,
    pub stream_credit: u64,
    pub streams: u64,
    pub idle_timeout: Duration,
    pub keep_alive: Option<Duration>,
    pub handshake_timeout: Duration,
    pub datagram_size_max: u16,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            symbol_size_max: 1428,
            symbol_window: 4096,
            block_size: 256,
            blocks: 64,
            connection_credit: 16 << 20,
            stream_credit: 2 << 20,
            streams: 4096,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            handshake_timeout: Duration::from_secs(10),
            datagram_size_max: 1472,
        }
    }
}

#[derive(Clone, Debug)]
pub enum ClientPolicy {
    Listed(BTreeSet<PublicKey>),
    Any,
}

#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub secret_key: SecretKey,
    pub accept: Option<ClientPolicy>,
    pub transport: TransportConfig,
    pub pin_profile: bool,
    pub connections: usize,
}

impl EndpointConfig {
    pub const CONNECTIONS: usize = 10_000;
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    Connected,
    StreamOpened,
    StreamsAvailable,
    Readable(StreamId),
    Writable(StreamId),
    Finished(StreamId),
    Stopped { id: StreamId, code: u64 },
    Closed(ConnectionError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    Confirmed,
    Retired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    NotCapable,
    Ect0,
    Ect1,
    Ce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPath {
    pub local: Option<IpAddr>,
    pub remote: SocketAddr,
}

#[derive(Clone, Debug)]
pub struct Transmit {
    pub destination: SocketAddr,
    pub source: Option<IpAddr>,
    pub ecn: Option<Ecn>,
    pub size: usize,
}

pub struct Incoming(());

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropReason(());

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError(());

impl core::fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("the connection could not be started")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptError(());

pub enum DatagramOutcome {
    Connection(ConnectionHandle),
    Incoming(Incoming),
    Answer(Vec<u8>),
    Dropped(DropReason),
}

#[derive(Clone, Debug, Default)]
pub struct EndpointStats(());

#[derive(Clone, Debug, Default)]
pub struct ConnectionStats {
    pub bytes_received: u64,
}

pub struct Endpoint(());

impl Endpoint {
    pub fn new(_config: EndpointConfig, _seed: [u8; 32]) -> Self {
        unimplemented!()
    }
    pub fn connect(
        &mut self,
        _now: Instant,
        _remote: SocketAddr,
        _server_key: PublicKey,
        _transport: TransportConfig,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        unimplemented!()
    }
    pub fn handle_datagram(
        &mut self,
        _now: Instant,
        _network_path: NetworkPath,
        _ecn: Option<Ecn>,
        _datagram: &[u8],
    ) -> DatagramOutcome {
        unimplemented!()
    }
    pub fn accept(
        &mut self,
        _now: Instant,
        _incoming: Incoming,
    ) -> Result<(ConnectionHandle, Connection), AcceptError> {
        unimplemented!()
    }
    pub fn refuse(&mut self, _incoming: Incoming) {
        unimplemented!()
    }
    pub fn handle_event(&mut self, _handle: ConnectionHandle, _event: EndpointEvent) {
        unimplemented!()
    }
    pub fn handle_timeout(&mut self, _now: Instant) {
        unimplemented!()
    }
    pub fn poll_timeout(&self) -> Option<Instant> {
        unimplemented!()
    }
    pub fn stats(&self) -> EndpointStats {
        unimplemented!()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TimerKind(());

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    LimitReached,
    NotConnected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    UnknownStream,
    Blocked,
    Stopped(u64),
    Finished,
    Reset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    UnknownStream,
    Reset(u64),
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    Data(usize),
    Blocked,
    Finished,
}

pub struct Connection(());

impl Connection {
    pub fn handle_datagram(
        &mut self,
        _now: Instant,
        _network_path: NetworkPath,
        _ecn: Option<Ecn>,
        _datagram: &mut [u8],
    ) {
        unimplemented!()
    }
    pub fn handle_timeout(&mut self, _now: Instant) {
        unimplemented!()
    }
    pub fn close(&mut self, _now: Instant, _code: u64, _reason: &str) {
        unimplemented!()
    }
    pub fn poll_transmit(&mut self, _now: Instant, _buffer: &mut Vec<u8>) -> Option<Transmit> {
        unimplemented!()
    }
    pub fn poll_event(&mut self) -> Option<Event> {
        unimplemented!()
    }
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        unimplemented!()
    }
    pub fn poll_timeout(&mut self) -> Option<(Instant, TimerKind)> {
        unimplemented!()
    }
    pub fn open(&mut self) -> Result<StreamId, OpenError> {
        unimplemented!()
    }
    pub fn accept(&mut self) -> Option<StreamId> {
        unimplemented!()
    }
    pub fn write(&mut self, _id: StreamId, _data: &[u8]) -> Result<usize, WriteError> {
        unimplemented!()
    }
    pub fn read(&mut self, _id: StreamId, _buffer: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        unimplemented!()
    }
    pub fn finish(&mut self, _id: StreamId) -> Result<(), WriteError> {
        unimplemented!()
    }
    pub fn reset(&mut self, _id: StreamId, _code: u64) -> Result<(), WriteError> {
        unimplemented!()
    }
    pub fn stop(&mut self, _id: StreamId, _code: u64) -> Result<(), ReadError> {
        unimplemented!()
    }
    pub fn stats(&self) -> ConnectionStats {
        unimplemented!()
    }
    pub fn peer_key(&self) -> PublicKey {
        unimplemented!()
    }
    pub fn remote(&self) -> Option<SocketAddr> {
        unimplemented!()
    }
    pub fn is_closed(&self) -> bool {
        unimplemented!()
    }
}
