//! Identifiers on the wire, each a type of its own so that they cannot be confused.

use core::fmt;

use crate::crypto::random::SecretRng;

/// The index of a source symbol in the connection's symbol space, from 0.
pub type SymbolIndex = u64;

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The side that sent the INITIATE.
    Client,
    /// The side that answered it.
    Server,
}

impl Role {
    /// The other side.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From this side to the peer.
    Send,
    /// From the peer to this side.
    Receive,
}

/// The number of a packet on its path (the paper's `seqno`), from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The following number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{}", self.0)
    }
}

/// A path of a connection. Path 0 is that of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

impl fmt::Display for PathId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "path {}", self.0)
    }
}

/// A context of a connection: an independent sequence of symbols with its own scheme and window (PROTOCOL.md section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContextId {
    /// Streams, coded as the profile says.
    #[default]
    Streams,
    /// Messages with deadlines. The sender gives up symbols that have expired.
    Messages,
    /// Streams of small writes, coded in a sliding window.
    Interactive,
    /// Datagrams of other connections, which relays pass on.
    Relayed,
}

impl ContextId {
    /// All contexts, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Streams, Self::Messages, Self::Interactive, Self::Relayed];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// The context with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|context| context.number() == number)
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Streams => "streams",
            Self::Messages => "messages",
            Self::Interactive => "interactive",
            Self::Relayed => "relayed",
        })
    }
}

/// A bidirectional stream. Ids 0, 4, 8, .. are the client's, 1, 5, 9, .. the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The `index`-th stream (from 0) that `initiator` opens.
    #[must_use]
    pub const fn new(initiator: Role, index: u64) -> Self {
        Self(index << 2 | matches!(initiator, Role::Server) as u64)
    }

    /// The side that opened it; `None` for the reserved residues.
    #[must_use]
    pub const fn initiator(self) -> Option<Role> {
        match self.0 & 3 {
            0 => Some(Role::Client),
            1 => Some(Role::Server),
            _ => None,
        }
    }

    /// The position among the streams of its initiator, from 0.
    #[must_use]
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stream {}", self.0)
    }
}

/// A connection id of 0 to 20 bytes (RFC 8999).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    length: u8,
    bytes: [u8; Self::MAX],
}

impl ConnectionId {
    /// The longest id that RFC 8999 and the header allow.
    pub const MAX: usize = 20;
    /// The length of the ids that an endpoint chooses for itself.
    pub const LOCAL: usize = 8;

    /// Creates an id from bytes. Returns `None` if there are more than [`Self::MAX`].
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self { length: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX] };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// An unpredictable id of [`Self::LOCAL`] bytes. Its first three bits tell load balancers that it names no server (QUIC-LB).
    pub(crate) fn random(rng: &mut SecretRng) -> Self {
        let mut id = Self { length: Self::LOCAL as u8, bytes: [0; Self::MAX] };
        id.bytes[..Self::LOCAL].copy_from_slice(&rng.bytes()[..Self::LOCAL]);
        id.bytes[0] |= 0xe0;
        id
    }

    /// The bytes of the id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_contain_their_initiator_and_index() {
        let id = StreamId::new(Role::Server, 5);
        assert_eq!((id.0, id.initiator(), id.index()), (21, Some(Role::Server), 5));
        assert_eq!(StreamId(2).initiator(), None);
    }

    #[test]
    fn connection_ids_have_at_most_twenty_bytes() {
        assert!(ConnectionId::new(&[1; 21]).is_none());
        assert_eq!(ConnectionId::new(&[1, 2]).map(|id| id.as_bytes().to_vec()), Some(vec![1, 2]));
    }
}
