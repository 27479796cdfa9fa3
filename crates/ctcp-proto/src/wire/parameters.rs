//! The transport parameters that each side sends in the handshake (PROTOCOL.md section 3.1).
//!
//! ```text
//!  | id (varint) | length (varint) | value | ...        in any order, each id at most once
//! ```
//!
//! Invariant of everything parsed: every field is in its documented range.

mod addresses;
mod hybrid;

use core::fmt;
use core::net::SocketAddr;
use core::ops::RangeInclusive;
use core::time::Duration;

use crate::error::{TransportError, TransportErrorCode};
use crate::id::{ConnectionId, Role};
use crate::wire::varint::{Reader, reserved_number, varint_length, write_varint};
use crate::wire::{Malformed, VARINT_MAX, VERSION};

pub(crate) use addresses::is_reachable;
pub use hybrid::HybridParameter;

/// Acceptable values of the largest symbol size. Below, headers would dominate; above, the 16-bit content length gets close to its limit.
pub const SYMBOL_SIZE_RANGE: RangeInclusive<usize> = 256..=16_384;
/// Acceptable numbers of symbols stored beyond the oldest undecoded one: from a few packets to 64 MB of 1 KB symbols.
pub const SYMBOL_WINDOW_RANGE: RangeInclusive<u64> = 16..=65_536;
/// Maximum number of streams in total; there are no more ids.
pub const STREAMS_MAX: u64 = 1 << 60;
/// Maximum block size: what one combination can span.
pub const BLOCK_SIZE_MAX: u64 = 4095;
/// Maximum number of blocks in flight: the number of symbols in the largest window.
pub const BLOCKS_MAX: u64 = 65_536;
/// Largest UDP payload. Larger values are treated as this one.
pub const DATAGRAM_SIZE_MAX: usize = 65_527;
/// Longest delay of an acknowledgement; 2^14 ms as in QUIC.
pub const MAX_ACK_DELAY_MAX: Duration = Duration::from_millis(1 << 14);
/// Maximum number of suites offered. Two are defined.
pub const AEAD_SUITES_MAX: usize = 16;
/// Maximum length of a refusal's text.
pub const REFUSAL_REASON_MAX: usize = 256;
/// Maximum length of all parameters together: what the longest Noise message can carry.
pub const PARAMETERS_MAX: usize = crate::wire::NOISE_MESSAGE_MAX;

/// Maximum number of versions listed.
pub const VERSIONS_MAX: usize = 16;

const DATAGRAM_SIZES: RangeInclusive<u64> = crate::wire::DATAGRAM_SIZE_MIN as u64..=VARINT_MAX;

mod id {
    pub(super) const CONNECTION_ID: u64 = 0x01;
    pub(super) const SYMBOL_SIZE_MAX: u64 = 0x02;
    pub(super) const SYMBOL_WINDOW: u64 = 0x03;
    pub(super) const MAX_DATA: u64 = 0x04;
    pub(super) const MAX_STREAM_DATA: u64 = 0x05;
    pub(super) const MAX_STREAMS: u64 = 0x06;
    pub(super) const IDLE_TIMEOUT: u64 = 0x07;
    pub(super) const MAX_ACK_DELAY: u64 = 0x08;
    pub(super) const DATAGRAM_SIZE_MAX: u64 = 0x09;
    pub(super) const RESET_TOKEN: u64 = 0x0a;
    pub(super) const AEAD_SUITES: u64 = 0x0b;
    pub(super) const PROFILE: u64 = 0x0c;
    pub(super) const BLOCK_SIZE: u64 = 0x0d;
    pub(super) const BLOCKS: u64 = 0x0e;
    pub(super) const REFUSAL: u64 = 0x0f;
    pub(super) const HYBRID: u64 = 0x10;
    pub(super) const VERSIONS: u64 = 0x11;
    pub(super) const CONTEXT_WINDOW: u64 = 0x12;
    pub(super) const TICKETS: u64 = 0x13;
    pub(super) const PATHS: u64 = 0x14;
    pub(super) const PATH_MODE: u64 = 0x15;
    pub(super) const PATH_IDS: u64 = 0x16;
    pub(super) const ADDRESSES: u64 = 0x17;
}

/// The parameters of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The sender's connection id; equal to the source id of its header.
    pub connection_id: ConnectionId,
    /// Largest symbol that this side accepts, in bytes, within [`SYMBOL_SIZE_RANGE`].
    pub symbol_size_max: usize,
    /// Symbols that this side stores beyond the oldest undecoded one, within [`SYMBOL_WINDOW_RANGE`].
    pub symbol_window: u64,
    /// Initial connection-level credit in stream bytes.
    pub max_data: u64,
    /// Initial credit of each stream in bytes.
    pub max_stream_data: u64,
    /// Streams that the peer may open in total, at most [`STREAMS_MAX`].
    pub max_streams: u64,
    /// Time without packets after which this side discards the connection; in whole milliseconds, not zero. `None` for never.
    pub idle_timeout: Option<Duration>,
    /// Maximum delay of an acknowledgement; in whole microseconds, at most [`MAX_ACK_DELAY_MAX`].
    pub max_ack_delay: Duration,
    /// Largest UDP payload it can receive in bytes, [`DATAGRAM_SIZE_MIN`](crate::wire::DATAGRAM_SIZE_MIN)
    /// ..= [`DATAGRAM_SIZE_MAX`].
    pub datagram_size_max: usize,
    /// The token of the server's stateless resets. Only a server sends it.
    pub reset_token: Option<[u8; 16]>,
    /// From a client, the numbers of the suites it offers, best first, 1..=[`AEAD_SUITES_MAX`]. From a server, the one it chose.
    pub aead_suites: Vec<u8>,
    /// From a client, the profile it asks for. From a server, the one it grants.
    pub profile: ProfileParameter,
    /// Maximum number of symbols in a block (`blksize`), 1..=[`BLOCK_SIZE_MAX`].
    pub block_size: u64,
    /// Maximum number of blocks in flight (`numblks`), 1..=[`BLOCKS_MAX`].
    pub blocks: u64,
    /// From a client, the offer of ML-KEM-768. From a server, its acceptance.
    pub hybrid: Option<HybridParameter>,
    /// The versions that this side supports, [`VERSION`] among them; at most [`VERSIONS_MAX`].
    pub versions: Vec<u32>,
    /// From a client: it wants tickets. A server leaves it out.
    pub tickets: bool,
    /// From a server: how many paths the client may have open at a time, 1 to 255. 1 if it is not sent.
    pub paths: u8,
    /// From a client: the number of the way in which both sides use several paths. 0 if it is not sent.
    pub path_mode: u64,
    /// The sender's connection ids for the paths from 1 on, at most [`PATH_IDS_MAX`], each as long as [`Self::connection_id`]. Empty if it is
    /// not sent.
    pub path_ids: Vec<ConnectionId>,
    /// From a server: further addresses at which it receives, at most [`ADDRESSES_MAX`].
    pub addresses: Vec<SocketAddr>,
    /// Symbols that this side stores in each context other than that of the streams, within [`SYMBOL_WINDOW_RANGE`]; 0 if it accepts no
    /// other contexts.
    pub context_window: u64,
}

/// For how many paths a side may give connection ids in the handshake.
pub const PATH_IDS_MAX: usize = 16;

/// How many further addresses a server may tell.
pub const ADDRESSES_MAX: usize = 8;

/// How many paths a server may allow.
const PATHS_RANGE: RangeInclusive<u8> = 1..=255;

/// Whether an id is reserved for parameters that mean nothing. Senders add one now and then, so that peers keep ignoring unknown ids.
#[must_use]
pub const fn is_reserved(id: u64) -> bool {
    id % 31 == 27 && id > 27
}

/// The numbers of the profile parameter. They are interpreted by the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileParameter {
    /// The profile.
    pub profile: u8,
    /// The coding scheme.
    pub code: u8,
    /// The congestion controller.
    pub congestion: u8,
    /// The repair rule.
    pub redundancy: u8,
    /// The repair rule's parameter in millionths.
    pub redundancy_parameter: u32,
}

/// A server's refusal of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The server's connection id; equal to the source id of its header.
    pub connection_id: ConnectionId,
    /// 1: the client's key is not listed; 2: the server is full.
    pub code: u8,
    /// Text for people, at most [`REFUSAL_REASON_MAX`] bytes.
    pub reason: String,
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAnswer {
    /// The server accepted the connection.
    Accepted(Box<Parameters>),
    /// The server refused the connection.
    Refused(Refusal),
}

/// Why parameters were rejected. The handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// They cannot be parsed.
    Malformed(Malformed),
    /// This id occurs more than once.
    Repeated(u64),
    /// This id is required but missing.
    Missing(u64),
    /// The value for this id is out of range.
    OutOfRange(u64),
    /// This side must not send this id.
    Forbidden(u64),
}

impl Parameters {
    /// Parses the parameters of a client.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn parse_from_client(bytes: &[u8]) -> Result<Self, ParameterError> {
        let fields = Fields::parse(bytes)?;
        for forbidden in [id::RESET_TOKEN, id::REFUSAL] {
            if fields.find(forbidden).is_some() {
                return Err(ParameterError::Forbidden(forbidden));
            }
        }
        Self::from_fields(&fields, Role::Client)
    }

    /// Parses the parameters or the refusal of a server.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn parse_from_server(bytes: &[u8]) -> Result<ServerAnswer, ParameterError> {
        let fields = Fields::parse(bytes)?;
        if let Some(value) = fields.find(id::REFUSAL) {
            let connection_id = fields.connection_id()?;
            return Refusal::parse(connection_id, value).map(ServerAnswer::Refused);
        }
        Ok(ServerAnswer::Accepted(Box::new(Self::from_fields(&fields, Role::Server)?)))
    }

    fn from_fields(fields: &Fields<'_>, sender: Role) -> Result<Self, ParameterError> {
        let ack_delays = 0..=MAX_ACK_DELAY_MAX.as_micros() as u64;
        let symbol_sizes = *SYMBOL_SIZE_RANGE.start() as u64..=*SYMBOL_SIZE_RANGE.end() as u64;
        let any = 0..=VARINT_MAX;
        let idle_millis = fields.number(id::IDLE_TIMEOUT, any.clone())?;
        let datagram_size = fields.number(id::DATAGRAM_SIZE_MAX, DATAGRAM_SIZES)?;
        Ok(Self {
            connection_id: fields.connection_id()?,
            symbol_size_max: fields.number(id::SYMBOL_SIZE_MAX, symbol_sizes)? as usize,
            symbol_window: fields.number(id::SYMBOL_WINDOW, SYMBOL_WINDOW_RANGE)?,
            max_data: fields.number(id::MAX_DATA, any.clone())?,
            max_stream_data: fields.number(id::MAX_STREAM_DATA, any)?,
            max_streams: fields.number(id::MAX_STREAMS, 0..=STREAMS_MAX)?,
            idle_timeout: (idle_millis > 0).then(|| Duration::from_millis(idle_millis)),
            max_ack_delay: Duration::from_micros(fields.number(id::MAX_ACK_DELAY, ack_delays)?),
            datagram_size_max: datagram_size.min(DATAGRAM_SIZE_MAX as u64) as usize,
            reset_token: fields.reset_token()?,
            aead_suites: fields.aead_suites(sender)?,
            profile: ProfileParameter::parse(fields.required(id::PROFILE)?)?,
            block_size: fields.number(id::BLOCK_SIZE, 1..=BLOCK_SIZE_MAX)?,
            blocks: fields.number(id::BLOCKS, 1..=BLOCKS_MAX)?,
            hybrid: match fields.find(id::HYBRID) {
                Some(value) => HybridParameter::parse(value, sender)?,
                None => None,
            },
            versions: fields.versions()?,
            context_window: fields.context_window()?,
            tickets: fields.tickets(sender)?,
            paths: fields.paths(sender)?,
            path_mode: fields.path_mode(sender)?,
            path_ids: fields.path_ids()?,
            addresses: fields.addresses(sender)?,
        })
    }

    /// Appends the parameters.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_bytes(out, id::CONNECTION_ID, self.connection_id.as_bytes());
        write_number(out, id::SYMBOL_SIZE_MAX, self.symbol_size_max as u64);
        write_number(out, id::SYMBOL_WINDOW, self.symbol_window);
        write_number(out, id::MAX_DATA, self.max_data);
        write_number(out, id::MAX_STREAM_DATA, self.max_stream_data);
        write_number(out, id::MAX_STREAMS, self.max_streams);
        write_number(out, id::IDLE_TIMEOUT, whole(self.idle_timeout.unwrap_or_default().as_millis()));
        write_number(out, id::MAX_ACK_DELAY, whole(self.max_ack_delay.as_micros()));
        write_number(out, id::DATAGRAM_SIZE_MAX, self.datagram_size_max as u64);
        if let Some(token) = &self.reset_token {
            write_bytes(out, id::RESET_TOKEN, token);
        }
        write_bytes(out, id::AEAD_SUITES, &self.aead_suites);
        let mut profile = Vec::with_capacity(8);
        self.profile.write(&mut profile);
        write_bytes(out, id::PROFILE, &profile);
        write_number(out, id::BLOCK_SIZE, self.block_size);
        write_number(out, id::BLOCKS, self.blocks);
        if let Some(hybrid) = &self.hybrid {
            hybrid.write(out);
        }
        if self.tickets {
            write_bytes(out, id::TICKETS, &[]);
        }
        if self.paths > 1 {
            write_number(out, id::PATHS, u64::from(self.paths));
        }
        if self.path_mode > 0 {
            write_number(out, id::PATH_MODE, self.path_mode);
        }
        if !self.path_ids.is_empty() {
            let ids: Vec<u8> = self.path_ids.iter().flat_map(ConnectionId::as_bytes).copied().collect();
            write_bytes(out, id::PATH_IDS, &ids);
        }
        if !self.addresses.is_empty() {
            write_bytes(out, id::ADDRESSES, &addresses::written(&self.addresses));
        }
        let versions: Vec<u8> = self.versions.iter().flat_map(|version| version.to_be_bytes()).collect();
        write_bytes(out, id::VERSIONS, &versions);
        write_number(out, id::CONTEXT_WINDOW, self.context_window);
    }

    /// Appends a parameter without a meaning. `random` determines its id and value.
    pub fn write_reserved(out: &mut Vec<u8>, random: u64) {
        let bytes = random.to_be_bytes();
        let id = reserved_number(u64::from(bytes[0]));
        write_bytes(out, id, &bytes[1..1 + usize::from(bytes[7] % 7)]);
    }
}

impl ProfileParameter {
    fn parse(value: &[u8]) -> Result<Self, ParameterError> {
        let Some((&[profile, code, congestion, redundancy], number)) = value.split_first_chunk() else {
            return Err(ParameterError::OutOfRange(id::PROFILE));
        };
        let number = number.try_into().map_err(|_| ParameterError::OutOfRange(id::PROFILE))?;
        let redundancy_parameter = u32::from_be_bytes(number);
        Ok(Self { profile, code, congestion, redundancy, redundancy_parameter })
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.profile, self.code, self.congestion, self.redundancy]);
        out.extend_from_slice(&self.redundancy_parameter.to_be_bytes());
    }
}

impl Refusal {
    fn parse(connection_id: ConnectionId, value: &[u8]) -> Result<Self, ParameterError> {
        let out_of_range = ParameterError::OutOfRange(id::REFUSAL);
        let (&code, text) = value.split_first().ok_or(out_of_range)?;
        if text.len() > REFUSAL_REASON_MAX {
            return Err(out_of_range);
        }
        let reason = str::from_utf8(text).map_err(|_| out_of_range)?.to_owned();
        Ok(Self { connection_id, code, reason })
    }

    /// Appends the refusal in place of parameters.
    ///
    /// # Panics
    /// Panics if the reason is longer than [`REFUSAL_REASON_MAX`].
    pub fn write(&self, out: &mut Vec<u8>) {
        assert!(self.reason.len() <= REFUSAL_REASON_MAX, "reason too long");
        write_bytes(out, id::CONNECTION_ID, self.connection_id.as_bytes());
        write_varint(out, id::REFUSAL);
        write_varint(out, 1 + self.reason.len() as u64);
        out.push(self.code);
        out.extend_from_slice(self.reason.as_bytes());
    }
}

/// The raw values by id.
struct Fields<'a> {
    /// At most half of [`PARAMETERS_MAX`] entries.
    values: Vec<(u64, &'a [u8])>,
}

impl<'a> Fields<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ParameterError> {
        if bytes.len() > PARAMETERS_MAX {
            return Err(Malformed::new("parameters too long").into());
        }
        let mut fields = Self { values: Vec::with_capacity(20) };
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint()?;
            let value = reader.prefixed()?;
            if fields.find(id).is_some() {
                return Err(ParameterError::Repeated(id));
            }
            fields.values.push((id, value));
        }
        Ok(fields)
    }

    fn find(&self, id: u64) -> Option<&'a [u8]> {
        self.values.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }

    fn required(&self, id: u64) -> Result<&'a [u8], ParameterError> {
        self.find(id).ok_or(ParameterError::Missing(id))
    }

    fn number(&self, id: u64, range: RangeInclusive<u64>) -> Result<u64, ParameterError> {
        let mut reader = Reader::new(self.required(id)?);
        let value = reader.varint()?;
        if !reader.is_empty() {
            return Err(Malformed::new("bytes after the number of a parameter").into());
        }
        if range.contains(&value) { Ok(value) } else { Err(ParameterError::OutOfRange(id)) }
    }

    fn connection_id(&self) -> Result<ConnectionId, ParameterError> {
        let value = self.required(id::CONNECTION_ID)?;
        ConnectionId::new(value).ok_or(ParameterError::OutOfRange(id::CONNECTION_ID))
    }

    fn reset_token(&self) -> Result<Option<[u8; 16]>, ParameterError> {
        let value = self.find(id::RESET_TOKEN).map(<[u8; 16]>::try_from);
        value.transpose().map_err(|_| ParameterError::OutOfRange(id::RESET_TOKEN))
    }

    fn context_window(&self) -> Result<u64, ParameterError> {
        let window = self.number(id::CONTEXT_WINDOW, 0..=*SYMBOL_WINDOW_RANGE.end())?;
        let is_valid = window == 0 || SYMBOL_WINDOW_RANGE.contains(&window);
        if is_valid { Ok(window) } else { Err(ParameterError::OutOfRange(id::CONTEXT_WINDOW)) }
    }

    fn tickets(&self, sender: Role) -> Result<bool, ParameterError> {
        match (self.find(id::TICKETS), sender) {
            (None, _) => Ok(false),
            (Some([]), Role::Client) => Ok(true),
            (Some(_), Role::Client) => Err(ParameterError::OutOfRange(id::TICKETS)),
            (Some(_), Role::Server) => Err(ParameterError::Forbidden(id::TICKETS)),
        }
    }

    fn paths(&self, sender: Role) -> Result<u8, ParameterError> {
        match (self.find(id::PATHS), sender) {
            (None, _) => Ok(1),
            (Some(_), Role::Server) => {
                let range = u64::from(*PATHS_RANGE.start())..=u64::from(*PATHS_RANGE.end());
                Ok(self.number(id::PATHS, range)? as u8)
            }
            (Some(_), Role::Client) => Err(ParameterError::Forbidden(id::PATHS)),
        }
    }

    fn path_mode(&self, sender: Role) -> Result<u64, ParameterError> {
        match (self.find(id::PATH_MODE), sender) {
            (None, _) => Ok(0),
            (Some(_), Role::Client) => self.number(id::PATH_MODE, 0..=VARINT_MAX),
            (Some(_), Role::Server) => Err(ParameterError::Forbidden(id::PATH_MODE)),
        }
    }

    fn path_ids(&self) -> Result<Vec<ConnectionId>, ParameterError> {
        let Some(value) = self.find(id::PATH_IDS) else { return Ok(Vec::new()) };
        let length = self.connection_id()?.as_bytes().len();
        let is_valid = length > 0 && value.len() % length == 0 && value.len() <= PATH_IDS_MAX * length;
        if !is_valid || value.is_empty() {
            return Err(ParameterError::OutOfRange(id::PATH_IDS));
        }
        Ok(value.chunks_exact(length).filter_map(ConnectionId::new).collect())
    }

    fn addresses(&self, sender: Role) -> Result<Vec<SocketAddr>, ParameterError> {
        match (self.find(id::ADDRESSES), sender) {
            (None, _) => Ok(Vec::new()),
            (Some(value), Role::Server) => {
                addresses::parse(value).ok_or(ParameterError::OutOfRange(id::ADDRESSES))
            }
            (Some(_), Role::Client) => Err(ParameterError::Forbidden(id::ADDRESSES)),
        }
    }

    fn versions(&self) -> Result<Vec<u32>, ParameterError> {
        let value = self.required(id::VERSIONS)?;
        if value.is_empty() || value.len() % 4 != 0 || value.len() > 4 * VERSIONS_MAX {
            return Err(ParameterError::OutOfRange(id::VERSIONS));
        }
        let numbers = value.chunks_exact(4);
        let versions: Vec<u32> =
            numbers.map(|bytes| bytes.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte))).collect();
        // The Noise messages open only if both sides speak this version.
        if versions.contains(&VERSION) { Ok(versions) } else { Err(ParameterError::OutOfRange(id::VERSIONS)) }
    }

    fn aead_suites(&self, sender: Role) -> Result<Vec<u8>, ParameterError> {
        let suites = self.required(id::AEAD_SUITES)?;
        let most = if sender == Role::Server { 1 } else { AEAD_SUITES_MAX };
        if suites.is_empty() || suites.len() > most {
            return Err(ParameterError::OutOfRange(id::AEAD_SUITES));
        }
        Ok(suites.to_vec())
    }
}

fn write_bytes(out: &mut Vec<u8>, id: u64, value: &[u8]) {
    write_varint(out, id);
    write_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn write_number(out: &mut Vec<u8>, id: u64, value: u64) {
    write_varint(out, id);
    write_varint(out, varint_length(value) as u64);
    write_varint(out, value);
}

/// A duration as a whole number of units.
fn whole(units: u128) -> u64 {
    u64::try_from(units).map_or(VARINT_MAX, |units| units.min(VARINT_MAX))
}

impl From<Malformed> for ParameterError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<ParameterError> for TransportError {
    fn from(error: ParameterError) -> Self {
        let reason = match error {
            ParameterError::Malformed(malformed) => malformed.reason(),
            ParameterError::Repeated(_) => "repeated parameter",
            ParameterError::Missing(_) => "missing parameter",
            ParameterError::OutOfRange(_) => "parameter out of range",
            ParameterError::Forbidden(_) => "parameter from the wrong side",
        };
        Self::new(TransportErrorCode::Parameter, reason)
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => write!(formatter, "parameters: {malformed}"),
            Self::Repeated(id) => write!(formatter, "parameter {id:#04x} occurs twice"),
            Self::Missing(id) => write!(formatter, "parameter {id:#04x} is missing"),
            Self::OutOfRange(id) => write!(formatter, "parameter {id:#04x} is out of range"),
            Self::Forbidden(id) => write!(formatter, "parameter {id:#04x} comes from the wrong side"),
        }
    }
}

impl core::error::Error for ParameterError {}

#[cfg(test)]
mod tests;
