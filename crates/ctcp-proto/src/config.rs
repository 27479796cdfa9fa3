//! What an application may set, with the limits on everything a peer can make us hold.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::code::Coding;
use crate::congestion::ControllerFactory;
use crate::crypto::{PublicKey, SecretKey, Suite};
use crate::grant::Grant;
use crate::memory::STREAM_COST;
use crate::profile::Profile;

/// Limits and time-outs of a connection. Both sides have their own; what must agree is negotiated.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Scheme to ask for (client) or to use when the client does not ask (server).
    pub profile: Profile,
    /// What the peer may ask for, and what is made of it.
    pub catalogue: Arc<Catalogue>,
    /// Congestion control of what this side sends, if not the profile's.
    pub controller: Option<ControllerFactory>,
    /// Largest source symbol in bytes. The memory of a window is this times [`Self::symbol_window`].
    pub symbol_size_max: u16,
    /// Source symbols a receiver stores behind the oldest undecoded one.
    pub symbol_window: u32,
    /// The same for a peer that combines by the window code, whose combinations may all wait for one another: as many are stored,
    /// and the memory for their coefficients grows with the square.
    pub coding_window: u32,
    /// Keeps and combines symbols instead of our encoder and decoder: for simulations. Both sides must have the like.
    pub coding: Option<Arc<dyn Coding>>,
    /// `blksize`: most symbols in a block.
    pub block_size: u16,
    /// `numblks`: most blocks in flight.
    pub blocks: u16,
    /// Most packets, or symbols where the window is of symbols, that congestion control lets be in flight.
    pub congestion_window_max: u32,
    /// Stream bytes the peer may have sent that the application has not read, over all streams.
    pub connection_credit: u64,
    /// It grows to this while the application reads fast, or leaves much unread.
    pub connection_credit_max: u64,
    /// The same for one stream.
    pub stream_credit: u64,
    /// It grows to this while the application reads fast.
    pub stream_credit_max: u64,
    /// Streams the peer may have open at once.
    pub streams: u64,
    /// It grows to this while half of them are used.
    pub streams_max: u64,
    /// Without any packet from the peer for so long the connection is over.
    pub idle_timeout: Duration,
    /// A packet is sent at least this often while the connection is idle; `None` lets it die.
    pub keep_alive: Option<Duration>,
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// Largest UDP payload we send or accept.
    pub datagram_size_max: u16,
    /// AEAD suites, best first.
    pub suites: Vec<Suite>,
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
        }
    }
}

impl TransportConfig {
    /// The same for a connection whose first promises may take about `promise` bytes of memory each.
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

    /// Says what is outside its range, if anything is.
    ///
    /// # Errors
    /// The name of the setting and its range.
    pub fn check(&self) -> Result<(), &'static str> {
        let checks = [
            ((256..=16_384).contains(&self.symbol_size_max), "symbol_size_max is 256 to 16384 bytes"),
            ((16..=65_536).contains(&self.symbol_window), "symbol_window is 16 to 65536 symbols"),
            (
                (16..=16_384).contains(&self.coding_window) || self.coding.is_some(),
                "coding_window is 16 to 16384 symbols",
            ),
            (self.profile.check().is_ok(), "the parts of the profile do not fit together"),
            (self.catalogue.has(&self.profile), "the parts of the profile are not in the catalogue"),
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
    /// Anybody who knows the server's public key.
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

/// An endpoint: our key, and what we accept.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Our static private key.
    pub secret_key: SecretKey,
    /// `Some`: answer first packets of these clients. `None`: only connect.
    pub accept: Option<ClientPolicy>,
    /// For accepted connections.
    pub transport: TransportConfig,
    /// The profiles clients may choose besides the server's own.
    pub grant: Grant,
    /// Connections at most; beyond it clients are refused.
    pub connections: usize,
    /// Connections of one client's key at most. Half-open ones do not count, since anybody may claim a key; a client that
    /// proves its key on one too many is told so and closed.
    pub connections_per_client: usize,
    /// Bytes of memory that all connections together may take. A client may take an eighth of what is free.
    pub memory: u64,
}

impl EndpointConfig {
    /// Connections a server holds unless it is told otherwise.
    pub const CONNECTIONS: usize = 10_000;

    /// Connections a client may have unless the server is told otherwise: a household of programs with one key.
    pub const CONNECTIONS_PER_CLIENT: usize = 256;

    /// Memory for all connections of an endpoint unless it is told otherwise: 1 GiB.
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
            memory: Self::MEMORY,
        }
    }

    /// An endpoint that also accepts.
    #[must_use]
    pub fn server(secret_key: SecretKey, accept: ClientPolicy) -> Self {
        Self { accept: Some(accept), ..Self::client(secret_key) }
    }
}
