//! Settings of the application, including the limits on what a peer can make this side hold.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::code::Coding;
use crate::congestion::ControllerFactory;
use crate::crypto::{PublicKey, SecretKey, Suite};
use crate::grant::Grant;
use crate::memory::STREAM_COST;
use crate::path::PathMode;
use crate::profile::Profile;
use crate::wire::{ADDRESSES_MAX, is_reachable};

/// Limits and timeouts of a connection. Each side has its own; shared values are negotiated.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The profile that a client asks for, or that a server uses unless it grants the client's.
    pub profile: Profile,
    /// The profiles and parts that are available.
    pub catalogue: Arc<Catalogue>,
    /// The congestion controller for this side's packets, if not the profile's.
    pub controller: Option<ControllerFactory>,
    /// Largest source symbol in bytes. The memory of a window is this times [`Self::symbol_window`].
    pub symbol_size_max: u16,
    /// Source symbols that a receiver stores beyond the oldest undecoded one.
    pub symbol_window: u32,
    /// The same for codes whose combinations may span the window. All combinations may then wait for one another, so as many are stored,
    /// and the memory for their coefficients grows with the square.
    pub coding_window: u32,
    /// Whether the peer may use other contexts than that of the streams: send messages, and small writes in a sliding window.
    pub extra_contexts: bool,
    /// Bits per second that a thin flow may spend on repairs, however little it sends: a ratio means nothing for a message now and then.
    /// Faster flows get more, in proportion to what they send.
    pub thin_repair_rate: u32,
    /// Replaces the encoder and decoder, for simulations. Both sides must use the same kind.
    pub coding: Option<Arc<dyn Coding>>,
    /// `blksize`: maximum number of symbols in a block.
    pub block_size: u16,
    /// `numblks`: maximum number of blocks in flight.
    pub blocks: u16,
    /// Maximum congestion window, in packets, or in symbols if the window counts symbols.
    pub congestion_window_max: u32,
    /// Stream bytes that the peer may send ahead of what the application has read, over all streams.
    pub connection_credit: u64,
    /// Maximum to which `connection_credit` grows while the application reads fast or leaves much unread.
    pub connection_credit_max: u64,
    /// The same for one stream.
    pub stream_credit: u64,
    /// Maximum to which `stream_credit` grows while the application reads fast.
    pub stream_credit_max: u64,
    /// Streams that the peer may have open at the same time.
    pub streams: u64,
    /// Maximum to which `streams` grows while half of the streams are in use.
    pub streams_max: u64,
    /// Time without packets from the peer after which the connection is closed.
    pub idle_timeout: Duration,
    /// Interval of packets that keep an idle connection alive; `None` lets it time out.
    pub keep_alive: Option<Duration>,
    /// Maximum duration of the handshake.
    pub handshake_timeout: Duration,
    /// Largest UDP payload sent or accepted.
    pub datagram_size_max: u16,
    /// AEAD suites, best first.
    pub suites: Vec<Suite>,
    /// How many paths a server lets a client have open at a time, 1..=8.
    pub paths: u8,
    /// Whether a client exchanges connection ids of further paths in the handshake, so that an observer cannot link its paths by them.
    /// Otherwise all paths have the id of the first.
    pub path_ids: bool,
    /// Further addresses at which a server receives, for the paths of its clients; at most 8.
    pub addresses: Vec<SocketAddr>,
    /// How a client uses several paths. A server does as its client asks.
    pub path_mode: PathMode,
    /// Bits per second that copies of latency-sensitive data may take on further paths, in [`PathMode::Redundant`].
    pub copy_rate: u32,
    /// Whether a client asks for tickets, with which a later connection may send data in its first flight.
    pub tickets: bool,
    /// Whether ML-KEM-768 is combined with X25519 if the peer does so, too. It protects what is recorded today from a quantum computer of
    /// the future.
    pub hybrid: bool,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            catalogue: Arc::default(),
            controller: None,
            symbol_size_max: 1440,
            symbol_window: 8192,
            coding_window: 1024,
            extra_contexts: true,
            thin_repair_rate: 128_000,
            coding: None,
            block_size: 256,
            blocks: 64,
            congestion_window_max: 65_536,
            connection_credit: 16 << 20,
            connection_credit_max: 1 << 30,
            stream_credit: 1 << 20,
            stream_credit_max: 16 << 20,
            streams: 256,
            streams_max: 1024,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            handshake_timeout: Duration::from_secs(10),
            datagram_size_max: 1472,
            suites: vec![Suite::Aes256Gcm, Suite::ChaCha20Poly1305],
            tickets: false,
            paths: 4,
            path_ids: false,
            addresses: Vec::new(),
            path_mode: PathMode::Aggregate,
            copy_rate: 8_000_000,
            hybrid: true,
        }
    }
}

impl TransportConfig {
    /// A copy whose initial promises to the peer take about `promise` bytes of memory each.
    pub(crate) fn within(&self, promise: u64) -> Self {
        const CREDIT_MIN: u64 = 64 << 10;
        const STREAMS_MIN: u64 = 4;
        let connection_credit = self.connection_credit.min(promise.max(CREDIT_MIN));
        Self {
            connection_credit,
            stream_credit: self.stream_credit.min(connection_credit),
            streams: self.streams.min((promise / STREAM_COST).max(STREAMS_MIN)),
            ..self.clone()
        }
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// Returns a description of the first setting that is out of range.
    pub fn check(&self) -> Result<(), &'static str> {
        let checks = [
            ((256..=16_384).contains(&self.symbol_size_max), "symbol_size_max is 256 to 16384 bytes"),
            ((1..=8).contains(&self.paths), "paths is 1 to 8"),
            (self.addresses.len() <= ADDRESSES_MAX, "addresses is at most 8"),
            (self.addresses.iter().all(is_reachable), "addresses are no wildcards, and have a port"),
            ((16..=65_536).contains(&self.symbol_window), "symbol_window is 16 to 65536 symbols"),
            (
                (16..=16_384).contains(&self.coding_window) || self.coding.is_some(),
                "coding_window is 16 to 16384 symbols",
            ),
            (self.profile.check().is_ok(), "the parts of the profile do not fit together"),
            (
                self.catalogue.has(&self.profile),
                "the profile, one of its parts or its rules are not in the catalogue",
            ),
            ((1..=4095).contains(&self.block_size), "block_size is 1 to 4095 symbols"),
            (self.congestion_window_max >= 2, "congestion_window_max is at least 2 packets"),
            (self.blocks >= 1, "blocks is at least 1"),
            (self.datagram_size_max >= 1200, "datagram_size_max is at least 1200 bytes"),
            (!self.suites.is_empty(), "at least one AEAD suite is needed"),
            (
                self.connection_credit < 1 << 60 && self.stream_credit < 1 << 60,
                "credits are below 2^60 bytes",
            ),
            (self.streams < 1 << 60, "streams is below 2^60"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }
}

/// Which clients a server accepts.
#[derive(Clone, Debug)]
pub enum ClientPolicy {
    /// Only the listed keys.
    Listed(BTreeSet<PublicKey>),
    /// Any client that knows the server's public key.
    Any,
}

impl ClientPolicy {
    /// Whether a client with this key may connect.
    #[must_use]
    pub fn accepts(&self, key: &PublicKey) -> bool {
        match self {
            Self::Listed(keys) => keys.contains(key),
            Self::Any => true,
        }
    }
}

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// This endpoint's static private key.
    pub secret_key: SecretKey,
    /// `Some`: accept these clients. `None`: only connect.
    pub accept: Option<ClientPolicy>,
    /// The settings of accepted connections.
    pub transport: TransportConfig,
    /// The profiles that clients may choose in addition to the server's own.
    pub grant: Grant,
    /// Maximum number of connections; further clients are refused.
    pub connections: usize,
    /// Maximum number of connections per client key. Half-open ones do not count, since anyone may claim a key. A client that proves its
    /// key on one too many gets a CLOSE with the reason.
    pub connections_per_client: usize,
    /// Keys of relays. Each connection of a relay carries another client, so a relay may have more of them, and use half of the free memory.
    pub relays: BTreeSet<PublicKey>,
    /// Maximum number of connections per relay.
    pub connections_per_relay: usize,
    /// Bytes of memory for all connections together. A client may use an eighth of what is free.
    pub memory: u64,
}

impl EndpointConfig {
    /// The default for [`Self::connections`].
    pub const CONNECTIONS: usize = 10_000;

    /// The default for [`Self::connections_per_client`]: enough for many programs with one key.
    pub const CONNECTIONS_PER_CLIENT: usize = 256;

    /// The default for [`Self::memory`]: 1 GiB.
    pub const MEMORY: u64 = 1 << 30;

    /// An endpoint that only connects.
    #[must_use]
    pub fn client(secret_key: SecretKey) -> Self {
        Self {
            secret_key,
            accept: None,
            transport: TransportConfig::default(),
            grant: Grant::default(),
            connections: Self::CONNECTIONS,
            connections_per_client: Self::CONNECTIONS_PER_CLIENT,
            relays: BTreeSet::new(),
            connections_per_relay: Self::CONNECTIONS,
            memory: Self::MEMORY,
        }
    }

    /// The maximum number of connections of a client.
    pub(crate) fn connections_of(&self, client: &PublicKey) -> usize {
        if self.relays.contains(client) { self.connections_per_relay } else { self.connections_per_client }
    }

    /// An endpoint that also accepts connections.
    #[must_use]
    pub fn server(secret_key: SecretKey, accept: ClientPolicy) -> Self {
        Self { accept: Some(accept), ..Self::client(secret_key) }
    }
}
