//! The negotiation of parameters in the handshake (PROTOCOL.md section 3.1), as pure functions.

use core::net::SocketAddr;
use core::time::Duration;

use crate::ack::receiver::MAX_ACK_DELAY;
use crate::catalogue::{Catalogue, to_parameter};
use crate::code::CodeLimits;
use crate::config::TransportConfig;
use crate::congestion::WindowOf;
use crate::crypto::{ResetToken, Suite};
use crate::error::Mismatch;
use crate::grant::Grant;
use crate::id::{ConnectionId, Role};
use crate::path::PathMode;
use crate::path::scheduler::PATHS_MAX;
use crate::profile::Profile;
use crate::stream::{Streams, StreamsConfig};
use crate::wire::{Parameters, VERSION};

/// The negotiated parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    /// The profile of both directions.
    pub(crate) profile: Profile,
    pub(crate) suite: Suite,
    /// Whether the keys are also derived from a secret of ML-KEM.
    pub(crate) is_hybrid: bool,
    /// Largest symbol in bytes.
    pub(crate) symbol_size_max: usize,
    /// Symbols that this side stores beyond the oldest undecoded one.
    pub(crate) window: u64,
    /// Symbols that the peer stores beyond the oldest undecoded one.
    pub(crate) peer_window: u64,
    /// The same two numbers for each context other than that of the streams; 0 if it is not granted.
    pub(crate) context_window: u64,
    pub(crate) peer_context_window: u64,
    pub(crate) code: CodeLimits,
    /// Largest datagram that both sides accept.
    pub(crate) datagram_size_max: u64,
    /// How long the peer may be silent before this side gives the connection up.
    pub(crate) idle_timeout: Option<Duration>,
    /// The same for the peer.
    pub(crate) peer_idle_timeout: Option<Duration>,
    pub(crate) peer_max_ack_delay: Duration,
    /// How many paths the client may have open at a time.
    pub(crate) paths: usize,
    /// Further addresses of the server.
    pub(crate) addresses: Vec<SocketAddr>,
    /// How both sides use them.
    pub(crate) path_mode: PathMode,
    /// The token by which this side recognises the server's stateless reset.
    pub(crate) reset_token: Option<ResetToken>,
}

/// The parameters that a client sends.
pub(crate) fn client_parameters(config: &TransportConfig, id: ConnectionId) -> Parameters {
    parameters(config, config.profile, id)
}

/// The parameters of a side with `config` that asks for, or grants, `profile`.
fn parameters(config: &TransportConfig, profile: Profile, id: ConnectionId) -> Parameters {
    let symbol_window = if profile.code.spans_window() {
        config.symbol_window.min(config.coding_window)
    } else {
        config.symbol_window
    };
    // An external encoder knows one context only.
    let takes_contexts = config.extra_contexts && config.coding.is_none();
    Parameters {
        connection_id: id,
        symbol_size_max: usize::from(config.symbol_size_max),
        symbol_window: u64::from(symbol_window),
        max_data: config.connection_credit,
        max_stream_data: config.stream_credit,
        max_streams: config.streams,
        idle_timeout: Some(config.idle_timeout).filter(|timeout| !timeout.is_zero()),
        max_ack_delay: MAX_ACK_DELAY,
        datagram_size_max: usize::from(config.datagram_size_max),
        reset_token: None,
        aead_suites: config.suites.iter().map(|suite| suite.number()).collect(),
        profile: to_parameter(&profile),
        block_size: u64::from(config.block_size),
        blocks: u64::from(config.blocks),
        context_window: if takes_contexts { u64::from(config.coding_window) } else { 0 },
        tickets: config.tickets,
        paths: 1,
        path_mode: config.path_mode.number(),
        path_ids: Vec::new(),
        addresses: Vec::new(),
        hybrid: None,
        versions: VERSIONS.to_vec(),
    }
}

/// The versions that this implementation supports.
pub(crate) const VERSIONS: [u32; 1] = [VERSION];

/// Whether both sides support a newer version than the one they speak, so that someone must have forged a version list (as RFC 9368).
pub(crate) fn is_downgraded(own: &[u32], peer: &[u32]) -> bool {
    own.iter().any(|version| *version > VERSION && peer.contains(version))
}

/// The server's answer to `client`: its own limits, the suite it chose and the profile it grants. If the requested profile is unknown or
/// not allowed by `grant`, the server's own profile is granted.
pub(crate) fn server_parameters(
    config: &TransportConfig,
    grant: &Grant,
    id: ConnectionId,
    token: ResetToken,
    client: &Parameters,
) -> Result<Parameters, Mismatch> {
    let offered = client.aead_suites.iter().filter_map(|&number| Suite::from_number(number));
    let suite = offered.into_iter().find(|suite| config.suites.contains(suite)).ok_or(Mismatch::Suite)?;
    let profile =
        grant.answer(&config.catalogue, config.catalogue.profile_of(&client.profile), config.profile);
    Ok(Parameters {
        reset_token: Some(token.0),
        tickets: false,
        // A scheme whose window counts symbols knows one path.
        paths: if profile.code.window() == WindowOf::Symbols { 1 } else { config.paths },
        path_mode: 0,
        addresses: config.addresses.clone(),
        aead_suites: vec![suite.number()],
        ..parameters(config, profile, id)
    })
}

/// Combines the parameters of this side (`own`) and the peer (`peer`). `answer` is whichever of them the server sent.
///
/// Requirement: C1
pub(crate) fn negotiate(
    catalogue: &Catalogue,
    own: &Parameters,
    peer: &Parameters,
    answer: &Parameters,
) -> Result<Negotiated, Mismatch> {
    let suite = answer.aead_suites.first().and_then(|&number| Suite::from_number(number));
    let suite = suite.filter(|suite| own.aead_suites.contains(&suite.number())).ok_or(Mismatch::Suite)?;
    let smaller = |mine: u64, theirs: u64| u16::try_from(mine.min(theirs)).unwrap_or(u16::MAX);
    Ok(Negotiated {
        profile: catalogue.profile_of(&answer.profile).ok_or(Mismatch::Profile)?,
        suite,
        is_hybrid: answer.hybrid.is_some(),
        symbol_size_max: own.symbol_size_max.min(peer.symbol_size_max),
        window: own.symbol_window,
        peer_window: peer.symbol_window,
        context_window: own.context_window,
        peer_context_window: peer.context_window,
        code: CodeLimits {
            block_size: smaller(own.block_size, peer.block_size),
            blocks: smaller(own.blocks, peer.blocks),
        },
        datagram_size_max: own.datagram_size_max.min(peer.datagram_size_max) as u64,
        idle_timeout: own.idle_timeout,
        peer_idle_timeout: peer.idle_timeout,
        peer_max_ack_delay: peer.max_ack_delay,
        paths: usize::from(answer.paths).min(PATHS_MAX),
        addresses: answer.addresses.clone(),
        // Only the client sends it.
        path_mode: PathMode::from_number(own.path_mode.max(peer.path_mode)),
        reset_token: peer.reset_token.map(ResetToken),
    })
}

/// The streams of a side that sent `own`, before it knows the peer's limits.
pub(crate) fn streams(role: Role, config: &TransportConfig, own: &Parameters) -> Streams {
    let Parameters { max_data, max_stream_data, max_streams, .. } = *own;
    Streams::new(
        role,
        StreamsConfig {
            max_data,
            max_data_ceiling: config.connection_credit_max,
            max_stream_data,
            max_stream_data_ceiling: config.stream_credit_max,
            max_streams,
            max_streams_ceiling: config.streams_max,
        },
    )
}
