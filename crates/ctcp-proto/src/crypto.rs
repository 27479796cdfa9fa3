//! Keys, packet protection, replay protection and stateless reset (PROTOCOL.md sections 2.2 and 2.3).
//!
//! Nothing here gathers entropy or reads the time: both are arguments. AEAD, header protection, HKDF and HMAC come from ring, ML-KEM
//! from ml-kem. The Noise handshake is in [`crate::handshake`].

pub mod derive;
pub mod exchange;
pub mod first_packet;
pub mod kem;
pub mod keys;
pub mod protection;
pub(crate) mod random;
pub mod replay;
pub mod reset;
pub mod suite;
pub mod ticket;

pub use first_packet::FirstPacketKey;
pub use keys::{KeyError, PublicKey, SecretKey};
pub use protection::{OpenError, Opened, PacketProtection, SealError, SealHeader};
pub use replay::ReplayWindow;
pub use reset::{ResetKey, ResetToken};
pub use suite::Suite;
pub use ticket::Ticket;
pub(crate) use ticket::{EarlyKey, SpentTickets, TICKET_LIFETIME, TicketKey, Visit};
